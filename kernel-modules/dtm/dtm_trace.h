/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event dtm:dtm_reallocation of ftrace and perf, by which reallocations get to user space. It is
 * written where the change happens, under the link's lock: netlink may not be called there.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dtm

#if !defined(DTM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DTM_TRACE_H

#include <linux/netdevice.h>
#include <linux/tracepoint.h>

#include "dtm_core.h"

TRACE_EVENT(dtm_reallocation,
	TP_PROTO(const struct net_device *dev, u32 handle, const struct dtm_channel *ch, u64 now,
		 u32 from, u32 wanted, u8 cause),
	TP_ARGS(dev, handle, ch, now, from, wanted, cause),
	TP_STRUCT__entry(
		__field(u64, time_ns)
		__field(u64, estimate)
		__field(u64, bytes)
		__field(u32, netns)
		__field(u32, ifindex)
		__field(u32, handle)
		__field(u32, from)
		__field(u32, to)
		__field(u32, wanted)
		__field(u8, cause)
		__array(char, dev, IFNAMSIZ)
	),
	TP_fast_assign(
		__entry->time_ns = ktime_to_ns(ktime_mono_to_real(ns_to_ktime(now)));
		__entry->estimate = ch->rate.estimate;
		__entry->netns = dev_net(dev)->ns.inum;
		__entry->ifindex = dev->ifindex;
		__entry->handle = handle;
		__entry->from = from;
		__entry->to = ch->slots;
		__entry->wanted = wanted;
		__entry->bytes = ch->bytes;
		__entry->cause = cause;
		strscpy(__entry->dev, dev->name, IFNAMSIZ);
	),
	TP_printk("time_ns=%llu netns=%u ifindex=%u dev=%s handle=%x cause=%u from=%u to=%u wanted=%u estimate=%llu bytes=%llu",
		  __entry->time_ns, __entry->netns, __entry->ifindex, __entry->dev,
		  __entry->handle, __entry->cause, __entry->from, __entry->to, __entry->wanted,
		  __entry->estimate, __entry->bytes)
);

#endif /* DTM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE dtm_trace
#include <trace/define_trace.h>
