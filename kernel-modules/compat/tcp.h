/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel versions, for a congestion control. */
#ifndef TWOWAY_COMPAT_TCP_H
#define TWOWAY_COMPAT_TCP_H

#include <net/inet_connection_sock.h>
#include <net/net_namespace.h>

#include "common.h"

/*
 * The parameters of tcp_congestion_ops.cong_control: since 6.10 it is given the number and the
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
 * its own in 7.x, one of cwnd_event's events before. Write TWOWAY_CWND_EVENT_TX_START(fn) after the
 * function, and TWOWAY_TX_START_OP(fn) in the ops table.
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
#define TWOWAY_WAKES_EARLY (LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0))

static inline void twoway_wake_early(struct sock *sk, unsigned long when)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
	sk_reset_timer(sk, &inet_csk(sk)->icsk_retransmit_timer, when);
#endif
}

/* Flags of a control for L4S: it asks for ECN, and in 7.x for AccECN or none, and an ECT(1) SYN. */
#ifdef TCP_CONG_NEEDS_ACCECN
#define TWOWAY_CONG_L4S \
	(TCP_CONG_NEEDS_ECN | TCP_CONG_NEEDS_ACCECN | TCP_CONG_NO_FALLBACK_RFC3168 | \
	 TCP_CONG_ECT_1_NEGOTIATION)
#else
#define TWOWAY_CONG_L4S TCP_CONG_NEEDS_ECN
#endif

/* Before 6.6 a table of sysctls has no size: an empty entry ends it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
static inline struct ctl_table_header *register_net_sysctl_sz(struct net *net, const char *path,
							      struct ctl_table *table, size_t size)
{
	return register_net_sysctl(net, path, table);
}
#endif

#endif /* TWOWAY_COMPAT_TCP_H */
