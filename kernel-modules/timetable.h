/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When packets leave a link that changes by a table, in whole numbers.
 *
 * Let W(t) be the work that the link has offered by time t: for rates their integral, in 10^-9
 * bytes; for opportunities the bytes of those up to t. A packet of L bytes that arrives at time a
 * leaves when W reaches its tag
 *
 *	F = max(F of the packet before it, W(a)) + L
 *
 * at the earliest whole nanosecond. What an idle link offers is lost, and so is an opportunity at
 * the very time of an arrival. The future of W is known, so that a packet's departure is computed
 * when it arrives. Instead of tags, which would overflow, we keep when the last packet leaves, and
 * what W then is above its tag: those that wait behind it may use that.
 *
 * With delays, a packet that arrives at a leaves at a + d(a), never before the packet before it.
 *
 * Pure: no locks, no time source; shared by sch_timetable and its test in user space.
 */
#ifndef TIMETABLE_H
#define TIMETABLE_H

#include <linux/pkt_timetable.h>
#include <linux/types.h>

struct netlink_ext_ack;

/* Later than any time. A lap may have begun before the clock did: times are compared by sign. */
#define TIMETABLE_NEVER ((u64)S64_MAX)

/* A step of a table. */
struct timetable_step {
	u64 at_ns;	/* its time since the table's start */
	u64 value;	/* see enum tc_timetable_kind */
};

/* A table, and how far the link is in it. */
struct timetable {
	u8 kind;	/* of enum tc_timetable_kind */
	u32 n_steps;	/* how many steps, at least one */
	u32 room;	/* how many @steps has room for */
	struct timetable_step *steps;	/* the steps */
	u64 period;	/* ns after which the table starts again; 0: its last step lasts */
	u64 lap;	/* when the table started last, ns */
	u32 step;	/* the step in force */
	u64 free_at;	/* when the last packet leaves, ns */
	u64 rest;	/* work up to @free_at that the last packet does not need */
	u32 carried;	/* bytes by all steps but the last, up to the largest packet */
	u64 digest;	/* of the steps: it identifies a kernel's table without a dump */
};

/*
 * 0, or refuse a table by which a packet might never leave, or need too many steps. The first
 * @checked steps have been checked.
 */
int timetable_check(struct timetable *tt, u32 checked, struct netlink_ext_ack *extack);
/* Start at a time. Earlier, a repeated table is repeated backwards, another has its first step. */
void timetable_start(struct timetable *tt, u64 start, u64 now);
/* A packet arrives; returns when it leaves, or NEVER if that is too late, and ignores it. */
u64 timetable_arrive(struct timetable *tt, u64 now, u32 bytes);
/* All packets are gone, and the link is free. */
void timetable_clear(struct timetable *tt, u64 now);

#endif /* TIMETABLE_H */
