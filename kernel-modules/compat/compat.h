/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel versions, for a queueing discipline. */
#ifndef TWOWAY_COMPAT_H
#define TWOWAY_COMPAT_H

#include <net/pkt_sched.h>

#include "common.h"

/* skb_gso_segment() moved out of linux/netdevice.h in 6.5. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

/* Since 6.8 a qdisc is asked for by this alias; before, by the module's name, sch_<id>. */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("net-sch-" id)
#endif

/*
 * Since 6.19 an skb records how many packets it counts as; a segment has its GSO buffer's number.
 */
static inline void twoway_one_segment(struct sk_buff *skb)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

#endif /* TWOWAY_COMPAT_H */
