/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Netlink interface of sch_dtm: options and statistics of one channel (rtnetlink, kind "dtm"),
 * and one event per reallocation (generic netlink, family "dtm").
 *
 * Both are stable: attributes and structure members are only ever added at the end.
 */
#ifndef PKT_DTM_H
#define PKT_DTM_H

#include <linux/types.h>

/* A slot is 64 bits in each cycle of 125 us: 512 kbit/s. */
#define DTM_SLOT_BITS		64
#define DTM_CYCLE_NS		125000
#define DTM_SLOT_RATE		512000
/* 8192 slots are 4.2 Gbit/s, more than a DTM ring had. */
#define DTM_MAX_SLOTS		8192
/* Rounds of a trace or hysteresis table that fit into one netlink message with the rest. */
#define DTM_MAX_LEVELS		32
#define DTM_MAX_STEPS		256

enum tc_dtm_allocator {
	DTM_STATIC,		/* never changes by itself */
	DTM_RATE,		/* follows the estimated rate of arrivals */
	DTM_BUFFER,		/* follows the backlog between two thresholds */
	DTM_HYSTERESIS,		/* levels, each with a backlog to enter and one to leave */
	DTM_TRACE,		/* follows a list of times and slots */
	__DTM_ALLOCATOR_MAX
};

#define DTM_ALLOCATOR_MAX (__DTM_ALLOCATOR_MAX - 1)

enum tc_dtm_rounding {
	DTM_ROUND_UP,
	DTM_ROUND_NEAREST,
	DTM_ROUND_DOWN,
	__DTM_ROUND_MAX
};

#define DTM_ROUND_MAX (__DTM_ROUND_MAX - 1)

enum tc_dtm_count {
	DTM_COUNT_ARRIVALS,	/* the estimator sees what the queue drops, too */
	DTM_COUNT_ACCEPTED,
	__DTM_COUNT_MAX
};

#define DTM_COUNT_MAX (__DTM_COUNT_MAX - 1)

/* Options; times in ns, rates in bit/s. Absent ones keep their value, or take the default. */
enum {
	TCA_DTM_UNSPEC,
	TCA_DTM_PAD,
	TCA_DTM_SLOTS,		/* u32, 1..8192: at the start or from now on; default 20 */
	TCA_DTM_LIMIT,		/* u32, 1..: packets, the one in service included; default 1000 */
	TCA_DTM_LIMIT_BYTES,	/* u32: the same in bytes on the link; default 0, no such limit */
	TCA_DTM_OVERHEAD,	/* s32, -64..1024: added to a frame's size; default 0 */
	TCA_DTM_FRAMED,		/* u8, 0..1: a packet leaves at the end of a cycle; default 0 */
	TCA_DTM_ALLOCATOR,	/* u8, enum tc_dtm_allocator; default static */
	TCA_DTM_MIN_SLOTS,	/* u32, 1..8192: allocators go no lower; default 1 */
	TCA_DTM_MAX_SLOTS,	/* u32, 1..8192: and no higher; default 8192 */
	TCA_DTM_CHANGE,		/* u64, 0..3600 s: least time between two changes; default 1 s */
	TCA_DTM_SIGNALLING,	/* u64, 0..60 s: from a decision to its effect; default 0 */
	TCA_DTM_SAMPLE,		/* u64, 1 ms..60 s, rate: interval of estimates; default 100 ms */
	TCA_DTM_SHIFT_UP,	/* u8, 0..16, rate: gain 2^-shift when it grows; default 3 */
	TCA_DTM_SHIFT_DOWN,	/* u8, 0..16, rate: and when it shrinks; default 3 */
	TCA_DTM_MARGIN,		/* u32, 0..8192000 thousandths of a slot, rate; default 750 */
	TCA_DTM_CORRIDOR,	/* u32, 0..8192000 thousandths of a slot, rate; default 2000 */
	TCA_DTM_ROUNDING,	/* u8, enum tc_dtm_rounding, rate: to whole slots; default up */
	TCA_DTM_COUNT,		/* u8, enum tc_dtm_count, rate; default arrivals */
	TCA_DTM_HOLD_ON_LOSS,	/* u64, 0..60 s, rate: no decrease for so long after a drop; 0 */
	TCA_DTM_ESTIMATE,	/* u64, 0..2^40 bit/s, rate: at the start or from now on; 0 */
	TCA_DTM_HIGH,		/* u32, 1.., bytes, buffer: above it asks for slots; 30000 */
	TCA_DTM_LOW,		/* u32 bytes, < high, buffer: backlog below it gives back; 3000 */
	TCA_DTM_RISE,		/* u64, 0..60 s, buffer: above high for so long; default 10 ms */
	TCA_DTM_FALL,		/* u64, 0..60 s, buffer: below low for so long; default 100 ms */
	TCA_DTM_STEP,		/* u32, 1..8192, buffer: slots per change; default 1 */
	TCA_DTM_LEVELS,		/* struct tc_dtm_level[2..32], hysteresis: required */
	TCA_DTM_TRACE,		/* struct tc_dtm_step[1..256], trace: required */
	TCA_DTM_POOL,		/* u32, 1..8192: slots of the link that its pooled channels share */
	TCA_DTM_OWNED,		/* u32, 0..8192, pool: slots of this channel's own; default 0 */
	__TCA_DTM_MAX
};

#define TCA_DTM_MAX (__TCA_DTM_MAX - 1)

/*
 * Levels are sorted: slots rise, and so do the thresholds. At level k a backlog of up_bytes or
 * more leads to k + 1, one of down_bytes or less to k - 1. up_bytes of the last and down_bytes
 * of the first level are not used.
 */
struct tc_dtm_level {
	__u32 slots;
	__u32 up_bytes;
	__u32 down_bytes;
};

/* Times run from the qdisc's creation, or from the change that set the trace. */
struct tc_dtm_step {
	__u32 after_us;		/* since the step before */
	__u32 slots;
};

/* TCA_STATS_APP. Times in ns since the qdisc's creation. */
struct tc_dtm_xstats {
	__u32 slots;		/* now */
	__u32 target;		/* wanted; differs from slots while signalled or denied */
	__u32 borrowed;		/* slots beyond those owned, of a pool */
	__u32 pool_free;	/* slots of the pool that nobody uses */
	__u64 estimate;		/* bit/s */
	__u64 lower;		/* the corridor's edges, bit/s */
	__u64 upper;
	__u64 samples;		/* estimates made */
	__u64 grows;		/* changes to more slots */
	__u64 shrinks;		/* changes to fewer */
	__u64 denied;		/* requests that the pool met in part or not at all */
	__u64 reclaimed;	/* slots that their owners took back */
	__u64 slot_seconds;	/* slots held, integrated over time: whole, and the rest ... */
	__u64 slot_ns;		/* ... below 10^9 slot-nanoseconds */
	__u64 age_ns;		/* time up to which all of this counts */
	__u64 last_change_ns;	/* when the number of slots last changed */
	__u32 peak_packets;	/* highest backlog */
	__u32 peak_bytes;
};

/*
 * Generic netlink: family "dtm". Reallocations are multicast to the group "reallocations", soon
 * after they happen and in the order in which they happen on a link.
 *
 * Each has the sequence number DTM_A_SEQUENCE, which rises by one from event to event of a network
 * namespace. A gap is the number of events that did not get through, because they happened faster
 * than they could be sent or because the socket had no room (then recv() fails with ENOBUFS, too).
 */
#define DTM_GENL_NAME		"dtm"
#define DTM_GENL_VERSION	1
#define DTM_GENL_GROUP		"reallocations"

enum {
	DTM_CMD_UNSPEC,
	DTM_CMD_REALLOCATION,	/* sent, never received */
	/*
	 * A request without attributes, for anybody. It is answered when all events that happened
	 * before it have been sent, with the DTM_A_SEQUENCE that the next one will have at least.
	 */
	DTM_CMD_SYNC,
};

enum tc_dtm_cause {
	DTM_CAUSE_ALLOCATOR,	/* the channel's own wish */
	DTM_CAUSE_DENIED,	/* the same, but the pool did not have what it wanted */
	DTM_CAUSE_RECLAIMED,	/* slots went back to their owner */
	DTM_CAUSE_OPERATOR,	/* tc qdisc change */
	DTM_CAUSE_START,	/* none: an allocator starts, afresh, with the slots there are */
};

enum {
	DTM_A_UNSPEC,
	DTM_A_PAD,
	DTM_A_TIME,		/* u64: CLOCK_REALTIME, ns, of the change itself */
	DTM_A_IFINDEX,		/* u32 */
	DTM_A_HANDLE,		/* u32: of the qdisc */
	DTM_A_CAUSE,		/* u8, enum tc_dtm_cause */
	DTM_A_FROM,		/* u32: slots before */
	DTM_A_TO,		/* u32: slots after */
	DTM_A_WANTED,		/* u32: slots asked for */
	DTM_A_ESTIMATE,		/* u64: bit/s */
	DTM_A_BACKLOG,		/* u32: bytes on the link */
	DTM_A_SEQUENCE,		/* u32: of the event; wraps */
	__DTM_A_MAX
};

#define DTM_A_MAX (__DTM_A_MAX - 1)

#endif /* PKT_DTM_H */
