/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one place that knows kernel versions. The modules are written for 6.12.
 *
 * Built without a warning on Debian's 6.1, 6.12 and 7.2 and on user-mode Linux 6.12
 * (tests/test_module_builds.py at the top). A newer kernel is not refused: its compiler knows
 * better than a number here.
 */
#ifndef TWOWAY_COMPAT_H
#define TWOWAY_COMPAT_H

#include <linux/module.h>
#include <linux/version.h>
#include <net/inet_connection_sock.h>
#include <net/pkt_sched.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "twoway's modules need Linux 6.1 or newer, the oldest kernel that they are tested on"
#endif

/* What the module was built from, for modinfo: Kbuild knows. */
MODULE_INFO(revision, TWOWAY_REVISION);

/* skb_gso_segment() moved out of linux/netdevice.h in 6.5. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

/* Since 6.8 a qdisc is asked for by this alias; before, by the module's name, sch_<id>. */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("net-sch-" id)
#endif

/*
 * The parameters of tcp_congestion_ops.cong_control: since 6.10 it is told the number and the
 * flags of the ACK, too, which no module here asks for.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define TWOWAY_CONG_CONTROL_ARGS(sk, rs) \
	struct sock *sk, u32 ack, int flag, const struct rate_sample *rs
#else
#define TWOWAY_CONG_CONTROL_ARGS(sk, rs) struct sock *sk, const struct rate_sample *rs
#endif

/*
 * What a congestion control does before the first segment after a pause: an operation of
 * its own in 7.x, one of cwnd_event's events before. Behind the function comes
 * TWOWAY_CWND_EVENT_TX_START(fn), in the ops table TWOWAY_TX_START_OP(fn).
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define TWOWAY_CWND_EVENT_TX_START(fn)	\
	static_assert(__same_type(fn, void (struct sock *)))
#define TWOWAY_TX_START_OP(fn) .cwnd_event_tx_start = fn
#else
#define TWOWAY_CWND_EVENT_TX_START(fn)					\
static void fn##_event(struct sock *sk, enum tcp_ca_event event)	\
{									\
	if (event == CA_EVENT_TX_START)					\
		fn(sk);							\
}									\
static_assert(true)
#define TWOWAY_TX_START_OP(fn) .cwnd_event = fn##_event
#endif

/*
 * Wake TCP's retransmission timer before it is due, so that it waits for the rest: until 6.15,
 * where the timer itself became the only record of when it is due.
 */
static inline void twoway_wake_early(struct sock *sk, unsigned long when)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
	sk_reset_timer(sk, &inet_csk(sk)->icsk_retransmit_timer, when);
#endif
}

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#endif /* TWOWAY_COMPAT_H */
