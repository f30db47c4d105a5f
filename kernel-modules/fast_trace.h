/* SPDX-License-Identifier: GPL-2.0-only */
/* The event fast:fast_update of ftrace and perf, for kernels that have them: each move of a window. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM fast

#if !defined(FAST_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define FAST_TRACE_H

#include <linux/ipv6.h>
#include <linux/tracepoint.h>
#include <net/tcp.h>
#include <trace/events/net_probe_common.h>

#include "fast_window.h"

/*
 * window is w after the update, in thousandths of a packet; rtt the averaged round trip that moved
 * it; base the one without queues; the queueing delay is their difference, or 0.
 */
TRACE_EVENT(fast_update,
	TP_PROTO(const struct sock *sk, u64 window, u64 average_rtt, u32 base_rtt_us, u32 alpha),
	TP_ARGS(sk, window, average_rtt, base_rtt_us, alpha),
	TP_STRUCT__entry(
		__array(__u8, saddr, sizeof(struct sockaddr_in6))
		__array(__u8, daddr, sizeof(struct sockaddr_in6))
		__field(u64, window_milli)
		__field(u64, rtt_ns)
		__field(u64, base_rtt_ns)
		__field(u64, queueing_delay_ns)
		__field(u32, alpha)
		__field(u32, cwnd)
	),
	TP_fast_assign(
		const struct inet_sock *inet = inet_sk(sk);

		memset(__entry->saddr, 0, sizeof(struct sockaddr_in6));
		memset(__entry->daddr, 0, sizeof(struct sockaddr_in6));
		TP_STORE_ADDR_PORTS(__entry, inet, sk);
		__entry->window_milli = fast_thousandths(window);
		__entry->rtt_ns = fast_thousandths(average_rtt);
		__entry->base_rtt_ns = 1000ULL * base_rtt_us;
		__entry->queueing_delay_ns = __entry->rtt_ns > __entry->base_rtt_ns ?
					     __entry->rtt_ns - __entry->base_rtt_ns : 0;
		__entry->alpha = alpha;
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
	),
	TP_printk("src=%pISpc dest=%pISpc window_milli=%llu cwnd=%u alpha=%u base_rtt_ns=%llu rtt_ns=%llu queueing_delay_ns=%llu",
		  __entry->saddr, __entry->daddr, __entry->window_milli, __entry->cwnd,
		  __entry->alpha, __entry->base_rtt_ns, __entry->rtt_ns,
		  __entry->queueing_delay_ns)
);

#endif /* FAST_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE fast_trace
#include <trace/define_trace.h>
