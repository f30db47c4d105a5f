/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The queueing discipline "dtm" as seen from user space: options and statistics of tc, and the
 * generic netlink family "dtm", which has the pools of channels.
 * Documentation: tc/tc-dtm.8; netlink/dtm.yaml describes the family.
 */
#ifndef _UAPI_LINUX_PKT_DTM_H
#define _UAPI_LINUX_PKT_DTM_H

#include <linux/types.h>

/* A slot carries 64 bits in each cycle of 125 us: 512 kbit/s, the default of TCA_DTM_SLOT_RATE. */
#define TC_DTM_SLOT_BITS	64
#define TC_DTM_CYCLE_NS		125000
#define TC_DTM_SLOT_RATE	512000
/* 65535 slots are 33.6 Gbit/s. */
#define TC_DTM_MAX_SLOTS	65535
#define TC_DTM_MAX_LEVELS	32
#define TC_DTM_MAX_STEPS	1024
/* A pool's name, the terminating zero included. */
#define TC_DTM_POOL_NAME	16

/**
 * enum tc_dtm_allocator - who decides how many slots a channel has
 * @TC_DTM_STATIC: the operator alone
 * @TC_DTM_RATE: the estimated rate of arrivals
 * @TC_DTM_BUFFER: the backlog, with two thresholds
 * @TC_DTM_HYSTERESIS: the backlog, with levels, each with a threshold to enter and one to leave
 * @TC_DTM_TRACE: a list of times and slots
 */
enum tc_dtm_allocator {
	TC_DTM_STATIC,
	TC_DTM_RATE,
	TC_DTM_BUFFER,
	TC_DTM_HYSTERESIS,
	TC_DTM_TRACE,
	__TC_DTM_ALLOCATOR_MAX
};

#define TC_DTM_ALLOCATOR_MAX (__TC_DTM_ALLOCATOR_MAX - 1)

/* How the allocator "rate" gets from an estimate to whole slots. */
enum tc_dtm_rounding {
	TC_DTM_ROUND_UP,
	TC_DTM_ROUND_NEAREST,
	TC_DTM_ROUND_DOWN,
	__TC_DTM_ROUND_MAX
};

#define TC_DTM_ROUND_MAX (__TC_DTM_ROUND_MAX - 1)

/* Which packets the allocator "rate" counts. */
enum tc_dtm_count {
	TC_DTM_COUNT_ARRIVALS,	/* those that the queue drops, too */
	TC_DTM_COUNT_ACCEPTED,
	__TC_DTM_COUNT_MAX
};

#define TC_DTM_COUNT_MAX (__TC_DTM_COUNT_MAX - 1)

/* When the allocator "rate" may change slots. */
enum tc_dtm_pace {
	TC_DTM_PACE_APART,	/* TCA_DTM_CHANGE after the last change, or later */
	TC_DTM_PACE_GRID,	/* at multiples of it since the allocator's start */
	__TC_DTM_PACE_MAX
};

#define TC_DTM_PACE_MAX (__TC_DTM_PACE_MAX - 1)

/* What the allocator "rate" holds after a drop. */
enum tc_dtm_hold {
	TC_DTM_HOLD_ESTIMATE,	/* it does not decrease */
	TC_DTM_HOLD_SLOTS,	/* the estimate moves, and slots do not change */
	__TC_DTM_HOLD_MAX
};

#define TC_DTM_HOLD_MAX (__TC_DTM_HOLD_MAX - 1)

/*
 * Options. Times are in ns, rates in bit/s. Absent ones keep their value, or have the default. An
 * option that belongs to an allocator is refused with any other, and not shown with any other.
 * A change that is given a dump's options changes nothing.
 */
enum {
	TCA_DTM_UNSPEC,
	TCA_DTM_PAD,
	TCA_DTM_SLOTS,		/* u32, 1..65535: from now on, never dumped; sets INITIAL, too */
	TCA_DTM_RESTART,	/* flag, never dumped: the allocator starts afresh */
	TCA_DTM_INITIAL,	/* u32, 1..65535: slots at the start; default 20 */
	TCA_DTM_LIMIT,		/* u32, 1..10^9 packets, the one in service included; 1000 */
	TCA_DTM_LIMIT_BYTES,	/* u32: the same in bytes on the link; default 0, no such limit */
	TCA_DTM_OVERHEAD,	/* s32, -64..1024: added to a frame's size; default 0 */
	TCA_DTM_FRAMED,		/* u8, 0..1: whole slots, departures at ends of cycles; 0 */
	TCA_DTM_ALLOCATOR,	/* u8, enum tc_dtm_allocator; default static */
	TCA_DTM_MIN_SLOTS,	/* u32, 1..65535: allocators go no lower; default 1 */
	TCA_DTM_MAX_SLOTS,	/* u32, 1..65535: and no higher; default 65535 */
	TCA_DTM_CHANGE,		/* u64, 0..3600 s: least time between two decisions; 1 s */
	TCA_DTM_SIGNALLING,	/* u64, 0..60 s: from a decision to its effect; default 0 */
	TCA_DTM_POOL,		/* string: the pool that the channel joins when it is added */
	TCA_DTM_OWNED,		/* u32, 0..65535, pool: slots of the channel's own; default 0 */
	/* rate */
	TCA_DTM_SAMPLE,		/* u64, 1 ms..60 s: interval of estimates; default 100 ms */
	TCA_DTM_SHIFT_UP,	/* u8, 0..10: gain 2^-shift when it grows; default 3 */
	TCA_DTM_SHIFT_DOWN,	/* u8, 0..10: and when it shrinks; default 3 */
	TCA_DTM_MARGIN,		/* u32, 0..65535000 thousandths of a slot; default 750 */
	TCA_DTM_CORRIDOR,	/* u32, 0..65535000 thousandths of a slot; default 2000 */
	TCA_DTM_ROUNDING,	/* u8, enum tc_dtm_rounding; default up */
	TCA_DTM_COUNT,		/* u8, enum tc_dtm_count; default arrivals */
	TCA_DTM_HOLD_ON_LOSS,	/* u64, 0..60 s: HOLD lasts so long after a drop; 0 */
	TCA_DTM_ESTIMATE,	/* u64, 0..2^40 bit/s: at the start; default 0 */
	/* buffer */
	TCA_DTM_HIGH,		/* u32, 1.. bytes: above it asks for slots; default 30000 */
	TCA_DTM_LOW,		/* u32 bytes, below HIGH: below it gives back; default 3000 */
	TCA_DTM_RISE,		/* u64, 0..60 s: above HIGH for so long; default 10 ms */
	TCA_DTM_FALL,		/* u64, 0..60 s: below LOW for so long; default 100 ms */
	TCA_DTM_STEP,		/* u32, 1..65535: slots per change; default 1 */
	/* hysteresis */
	TCA_DTM_LEVELS,		/* 2..32 nests TCA_DTM_ENTRY of TCA_DTM_LEVEL_*; required */
	/* trace */
	TCA_DTM_STEPS,		/* 1..1024 nests TCA_DTM_ENTRY of TCA_DTM_STEP_*; required */
	TCA_DTM_N_STEPS,	/* u32, only dumped: instead of STEPS where those find no room */
	/* The network namespace of the pool, if another than the device's */
	TCA_DTM_POOL_NETNS_FD,	/* u32, never dumped: by an open file */
	TCA_DTM_POOL_NETNSID,	/* s32: by its number in the device's; -1: it has ended */
	/*
	 * u32, 1000..512000 bit/s, whole kbit/s that divide 8 Gbit/s: of a slot; default 512000.
	 * Less takes neither FRAMED nor POOL; chosen when the channel is added.
	 */
	TCA_DTM_SLOT_RATE,
	/* rate */
	TCA_DTM_GRAIN,		/* u32, bit/s: only its whole multiples count of an estimate; 0 */
	TCA_DTM_PACE,		/* u8, enum tc_dtm_pace; default apart */
	TCA_DTM_HOLD,		/* u8, enum tc_dtm_hold; default estimate */
	__TCA_DTM_MAX
};

#define TCA_DTM_MAX (__TCA_DTM_MAX - 1)

/* An entry of TCA_DTM_LEVELS or TCA_DTM_STEPS. */
enum {
	TCA_DTM_ENTRY_UNSPEC,
	TCA_DTM_ENTRY,		/* nest */
};

/*
 * Levels are sorted: slots rise, and so do the thresholds. At level k a backlog of UP or more
 * leads to k + 1, one of DOWN or less to k - 1. UP of the last and DOWN of the first level are
 * not used.
 */
enum {
	TCA_DTM_LEVEL_UNSPEC,
	TCA_DTM_LEVEL_SLOTS,	/* u32, required */
	TCA_DTM_LEVEL_UP,	/* u32, bytes; default 0 */
	TCA_DTM_LEVEL_DOWN,	/* u32, bytes; default 0 */
	__TCA_DTM_LEVEL_MAX
};

#define TCA_DTM_LEVEL_MAX (__TCA_DTM_LEVEL_MAX - 1)

/* Times run from the start of the allocator: the qdisc's creation, or what restarted it. */
enum {
	TCA_DTM_STEP_UNSPEC,
	TCA_DTM_STEP_PAD,
	TCA_DTM_STEP_AFTER,	/* u64, 0..3600 s since the step before, not 0 but for the first */
	TCA_DTM_STEP_SLOTS,	/* u32, required */
	__TCA_DTM_STEP_MAX
};

#define TCA_DTM_STEP_MAX (__TCA_DTM_STEP_MAX - 1)

/* TCA_STATS_APP. */
struct tc_dtm_xstats {
	__u32 slots;		/* held now */
	/* wanted; differs from @slots while a request is signalled, or waits for free slots */
	__u32 target;
	__u32 borrowed;		/* slots beyond those owned, of a pool */
	__u32 pool_free;	/* slots of the pool that nobody holds */
	__u64 estimate;		/* of the rate of arrivals, bit/s */
	__u64 lower;		/* of the corridor around it, bit/s */
	__u64 upper;		/* of the corridor around it, bit/s */
	__u64 samples;		/* estimates made */
	__u64 grows;		/* changes to more slots */
	__u64 shrinks;		/* changes to fewer slots */
	__u64 denied;		/* requests that the pool met in part or not at all */
	__u64 reclaimed;	/* slots that their owners took back */
	__u64 slot_seconds;	/* slots held, integrated over time: whole slot-seconds */
	__u64 slot_ns;		/* and the rest, below 10^9 slot-nanoseconds */
	/* time since the qdisc's creation, up to which all of this counts */
	__u64 age_ns;
	/* when the number of slots last changed, in ns since the qdisc's creation */
	__u64 last_change_ns;
	__u64 peak_bytes;	/* highest backlog */
	__u32 peak_packets;	/* highest backlog */
	__u32 reserved;		/* 0 */
};

/* Generic netlink: pools. Reallocations are the trace event dtm:dtm_reallocation. */
#define DTM_GENL_NAME		"dtm"
#define DTM_GENL_VERSION	2

/**
 * enum dtm_command - commands of the family
 * @DTM_CMD_UNSPEC: invalid
 * @DTM_CMD_POOL_NEW: make a pool of DTM_A_POOL_SLOTS slots with the name DTM_A_POOL
 * @DTM_CMD_POOL_DEL: remove a pool of this network namespace, which must have no channels
 * @DTM_CMD_POOL_GET: dump the pools of this network namespace
 */
enum dtm_command {
	DTM_CMD_UNSPEC,
	DTM_CMD_POOL_NEW,
	DTM_CMD_POOL_DEL,
	DTM_CMD_POOL_GET,
};

/**
 * enum tc_dtm_cause - why an event happened
 * @TC_DTM_CAUSE_ALLOCATOR: the channel wanted it (FROM equals TO: it stops waiting for more)
 * @TC_DTM_CAUSE_DENIED: the same, but the pool did not have all of it, or nothing (FROM equals TO)
 * @TC_DTM_CAUSE_RECLAIMED: slots went back to their owner
 * @TC_DTM_CAUSE_OPERATOR: the channel was added, or changed by tc
 * @TC_DTM_CAUSE_START: the allocator starts, with the slots there are
 * @TC_DTM_CAUSE_GRANTED: slots became free, and the channel had been denied some
 * @TC_DTM_CAUSE_LEFT: the channel was deleted
 */
enum tc_dtm_cause {
	TC_DTM_CAUSE_ALLOCATOR,
	TC_DTM_CAUSE_DENIED,
	TC_DTM_CAUSE_RECLAIMED,
	TC_DTM_CAUSE_OPERATOR,
	TC_DTM_CAUSE_START,
	TC_DTM_CAUSE_GRANTED,
	TC_DTM_CAUSE_LEFT,
};

enum {
	DTM_A_UNSPEC,
	DTM_A_POOL,		/* string: a pool's name */
	DTM_A_POOL_SLOTS,	/* u32: slots of the link */
	DTM_A_POOL_USED,	/* u32: those that channels hold */
	DTM_A_POOL_GUARANTEED,	/* u32: those that channels own or have as their minimum */
	DTM_A_POOL_CHANNELS,	/* u32: members */
	DTM_A_POOL_WAITING,	/* u32: members that were denied slots and wait for some */
	__DTM_A_MAX
};

#define DTM_A_MAX (__DTM_A_MAX - 1)

#endif /* _UAPI_LINUX_PKT_DTM_H */
