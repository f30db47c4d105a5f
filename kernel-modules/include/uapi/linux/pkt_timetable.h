/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* The queueing discipline "timetable" as seen from user space: options of tc. */
#ifndef _UAPI_LINUX_PKT_TIMETABLE_H
#define _UAPI_LINUX_PKT_TIMETABLE_H

#include <linux/types.h>

/* The most steps of a table: those of a cell's trace with an opportunity each ms for 17 minutes. */
#define TC_TIMETABLE_MAX_STEPS	(1 << 20)
/* The most steps of one message, which is what tc has room for. */
#define TC_TIMETABLE_MESSAGE_STEPS	2000
/* The latest time of a step and the longest period, ns. */
#define TC_TIMETABLE_LONGEST	(1ULL << 60)
/* The largest value of a step: 104 days of a delay. */
#define TC_TIMETABLE_MOST	(1ULL << 53)
/* The least that a repeated table must carry in each period, bytes. */
#define TC_TIMETABLE_LEAST_BYTES	1500
/* The latest start, ns of CLOCK_REALTIME: in the year 2116. */
#define TC_TIMETABLE_LATEST_START	(1ULL << 62)
/* The largest packet that GSO makes, bytes: its product with a table's steps is bounded. */
#define TC_TIMETABLE_LARGEST_PACKET	65536

/**
 * enum tc_timetable_kind - what the values of a table's steps are
 * @TC_TIMETABLE_RATE: bytes/s from the step on
 * @TC_TIMETABLE_OPPORTUNITY: bytes that may leave at the time of the step
 * @TC_TIMETABLE_DELAY: ns from a packet's arrival to its departure, from the step on
 */
enum tc_timetable_kind {
	TC_TIMETABLE_RATE,
	TC_TIMETABLE_OPPORTUNITY,
	TC_TIMETABLE_DELAY,
	__TC_TIMETABLE_KIND_MAX
};

#define TC_TIMETABLE_KIND_MAX (__TC_TIMETABLE_KIND_MAX - 1)

enum {
	TCA_TIMETABLE_UNSPEC,
	TCA_TIMETABLE_KIND,	/* u8 */
	TCA_TIMETABLE_LIMIT,	/* u32: packets */
	TCA_TIMETABLE_OVERHEAD,	/* s32: bytes that the link adds to a packet */
	TCA_TIMETABLE_START,	/* u64: when the table starts, ns of CLOCK_REALTIME */
	TCA_TIMETABLE_PERIOD,	/* u64: ns after which it starts again; 0: the last step lasts */
	TCA_TIMETABLE_STEPS,	/* nests TCA_TIMETABLE_ENTRY of TCA_TIMETABLE_STEP_* */
	TCA_TIMETABLE_N_STEPS,	/* u32: how many there are; only dumped */
	TCA_TIMETABLE_DIGEST,	/* u64: FNV-1a of their words; only dumped */
	TCA_TIMETABLE_PAD,
	__TCA_TIMETABLE_MAX
};

#define TCA_TIMETABLE_MAX (__TCA_TIMETABLE_MAX - 1)

/* An entry of TCA_TIMETABLE_STEPS: these are a new table if the first is at 0, else more steps. */
#define TCA_TIMETABLE_ENTRY	1

enum {
	TCA_TIMETABLE_STEP_UNSPEC,
	TCA_TIMETABLE_STEP_AT,		/* u64: ns since the start; later than the step before */
	TCA_TIMETABLE_STEP_VALUE,	/* u64: see enum tc_timetable_kind */
	__TCA_TIMETABLE_STEP_MAX
};

#define TCA_TIMETABLE_STEP_MAX (__TCA_TIMETABLE_STEP_MAX - 1)

#endif /* _UAPI_LINUX_PKT_TIMETABLE_H */
