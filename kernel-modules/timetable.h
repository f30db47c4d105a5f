/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When packets leave a link that changes by a table, in whole numbers.
 *
 * Let W(t) be the work that the link has offered by time t: of rates their integral, in 10^-9
 * bytes; of opportunities the bytes of those up to t. A packet of L bytes that arrives at time a
 * leaves when W reaches its tag
 *
 *	F = max(F of the packet before it, W(a)) + L
 *
 * at the earliest whole nanosecond. What an idle link offers is lost, and so is an opportunity at
 * the very time of an arrival. The future of W is known, so that a packet's departure is computed
 * when it arrives. Instead of tags, which would overflow, we keep when the last packet leaves, and
 * what W then is above its tag: those that wait behind it may use that.
 *
 * Of delays, a packet that arrives at a leaves at a + d(a), never before the packet before it.
 *
 * Pure: no locks, no time source; shared by sch_timetable and its test in user space.
 */
#ifndef TIMETABLE_H
#define TIMETABLE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/pkt_timetable.h>
#include <linux/time64.h>
#include <linux/types.h>

/* Later than any time. A lap may have begun before the clock did: times are compared by sign. */
#define TIMETABLE_NEVER ((u64)S64_MAX)
/* Packets leave at most so long after their arrival, ns: 36 years, so that no time overflows. */
#define TIMETABLE_HORIZON (U64_MAX >> 4)

/**
 * struct timetable - a table, and how far the link is in it
 * @kind: of enum tc_timetable_kind
 * @n_steps: how many steps, at least one
 * @steps: the steps
 * @period: ns after which the table starts again; 0: its last step lasts
 * @lap: when the table started last, ns
 * @step: the step in force
 * @free_at: when the last packet leaves, ns
 * @rest: work of before @free_at that the last packet does not need
 */
struct timetable {
	u8 kind;
	u32 n_steps;
	const struct tc_timetable_step *steps;
	u64 period;
	u64 lap;
	u32 step;
	u64 free_at;
	u64 rest;
};

/* When the step after the one in force begins. */
static inline u64 timetable_next(const struct timetable *tt)
{
	if (tt->step + 1 < tt->n_steps)
		return tt->lap + tt->steps[tt->step + 1].at_ns;
	return tt->period ? tt->lap + tt->period : TIMETABLE_NEVER;
}

static inline void timetable_step(struct timetable *tt)
{
	if (++tt->step < tt->n_steps)
		return;
	tt->step = 0;
	tt->lap += tt->period;
}

/* Let the step of a time be in force, which is not before the one that is. */
static inline void timetable_seek(struct timetable *tt, u64 time)
{
	if (tt->period && (s64)(time - tt->lap) >= (s64)tt->period) {
		tt->lap += div64_u64(time - tt->lap, tt->period) * tt->period;
		tt->step = 0;
	}
	while ((s64)(timetable_next(tt) - time) <= 0)
		timetable_step(tt);
}

/* Start at a time: before it, a table that is repeated has been so, and another's first step is. */
static inline void timetable_start(struct timetable *tt, u64 start, u64 now)
{
	tt->step = 0;
	tt->lap = start;
	if (tt->period && (s64)(start - now) > 0)
		tt->lap -= div64_u64(start - now + tt->period - 1, tt->period) * tt->period;
	timetable_seek(tt, tt->kind == TC_TIMETABLE_DELAY ? now : max(now, tt->free_at));
}

static inline u64 timetable_value(const struct timetable *tt)
{
	return tt->steps[tt->step].value;
}

/*
 * When work of a rate, or so many bytes of opportunities, has been done from a time on. NEVER, if
 * that takes longer than until another, or more steps than the longest table has.
 */
static inline u64 timetable_by_rate(struct timetable *tt, u64 time, u64 work, u64 until)
{
	for (u32 steps = 0; steps <= TC_TIMETABLE_MAX_STEPS && time <= until; steps++) {
		u64 rate = timetable_value(tt), next = timetable_next(tt), room, took;

		if (check_mul_overflow(rate, next - time, &room) || room >= work) {
			took = div64_u64(work + rate - 1, rate);
			tt->rest = took * rate - work;
			return time + took;
		}
		work -= room;
		time = next;
		timetable_step(tt);
	}
	return TIMETABLE_NEVER;
}

static inline u64 timetable_by_opportunity(struct timetable *tt, u64 bytes, u64 until)
{
	u64 time = 0;

	for (u32 steps = 0; steps <= TC_TIMETABLE_MAX_STEPS && time <= until; steps++) {
		time = timetable_next(tt);
		timetable_step(tt);
		tt->rest = timetable_value(tt);
		if (tt->rest >= bytes) {
			tt->rest -= bytes;
			return time;
		}
		bytes -= tt->rest;
	}
	return TIMETABLE_NEVER;
}

static inline void timetable_place(struct timetable *tt, u64 now, u64 until, u32 bytes)
{
	u64 free_at = max(now, tt->free_at), work = bytes;

	if (tt->kind == TC_TIMETABLE_DELAY) {
		timetable_seek(tt, now);
		tt->free_at = max(tt->free_at, now + timetable_value(tt));
		return;
	}
	if (tt->kind == TC_TIMETABLE_RATE)
		work *= NSEC_PER_SEC;
	if (now < tt->free_at) {
		if (work <= tt->rest) {
			tt->rest -= work;
			return;
		}
		work -= tt->rest;
	}
	timetable_seek(tt, free_at);
	if (tt->kind == TC_TIMETABLE_RATE)
		tt->free_at = timetable_by_rate(tt, free_at, work, until);
	else
		tt->free_at = timetable_by_opportunity(tt, work, until);
}

/* A packet arrives: when it leaves. NEVER if that is too far, as if it had not come. */
static inline u64 timetable_arrive(struct timetable *tt, u64 now, u32 bytes)
{
	struct timetable after = *tt;

	timetable_place(&after, now, now + TIMETABLE_HORIZON, bytes);
	if (after.free_at > now + TIMETABLE_HORIZON)
		return TIMETABLE_NEVER;
	*tt = after;
	return tt->free_at;
}

/* All packets are gone, and the link is free. */
static inline void timetable_clear(struct timetable *tt, u64 now)
{
	tt->free_at = now;
	timetable_start(tt, tt->lap, now);
}

/* The largest value of a step: 104 days of a delay, 2^40 bytes, or bytes per second. */
static inline u64 timetable_most(u8 kind)
{
	return kind == TC_TIMETABLE_DELAY ? 1ULL << 53 : 1ULL << 40;
}

/*
 * What is wrong with a table, if anything. Each packet must leave at some time: the work of a table
 * that is repeated is bounded from below, the last rate of another is not 0. And the largest packet
 * must be placed in so many steps as the longest table has: the queue's lock is held meanwhile.
 */
static inline const char *timetable_problem(const struct timetable *tt)
{
	const struct tc_timetable_step *steps = tt->steps;
	u64 bytes = 0;	/* that a lap carries, up to the largest packet */

	if (!tt->n_steps || steps[0].at_ns)
		return "the first step is at 0";
	for (u32 i = 0; i < tt->n_steps; i++) {
		u64 end = i + 1 < tt->n_steps ? steps[i + 1].at_ns : tt->period, work;

		if (i + 1 == tt->n_steps && !tt->period)
			break;
		if (end <= steps[i].at_ns)
			return i + 1 < tt->n_steps ? "each step is later than the one before" :
						     "the period is longer than the table";
		if (steps[i].value > timetable_most(tt->kind) || end > 1ULL << 60)
			return "a value or time is too large";
		if (tt->kind == TC_TIMETABLE_OPPORTUNITY)
			work = steps[i].value;
		else if (check_mul_overflow(steps[i].value, end - steps[i].at_ns, &work))
			work = U64_MAX;
		else
			work = div_u64(work, NSEC_PER_SEC);
		bytes = min_t(u64, bytes + min_t(u64, work, TC_TIMETABLE_LARGEST_PACKET),
			      TC_TIMETABLE_LARGEST_PACKET);
	}
	if (steps[tt->n_steps - 1].value > timetable_most(tt->kind))
		return "a value or time is too large";
	if (tt->kind == TC_TIMETABLE_DELAY)
		return NULL;
	if (!tt->period && tt->kind == TC_TIMETABLE_OPPORTUNITY)
		return "opportunities need a period";
	if (tt->period ? bytes < TC_TIMETABLE_LEAST_BYTES : !steps[tt->n_steps - 1].value)
		return "the table ends without a rate, or carries less than 1500 bytes each time";
	if (tt->period && DIV_ROUND_UP_ULL(TC_TIMETABLE_LARGEST_PACKET, bytes) * tt->n_steps >
				  TC_TIMETABLE_MAX_STEPS)
		return "too many steps for the little that the table carries each time";
	return NULL;
}

/* FNV-1a of the steps, a word at a time: which table a kernel has can be told without a dump. */
static inline u64 timetable_digest(const struct timetable *tt)
{
	u64 digest = 0xcbf29ce484222325ULL;

	for (u32 i = 0; i < tt->n_steps; i++) {
		digest = (digest ^ tt->steps[i].at_ns) * 0x100000001b3ULL;
		digest = (digest ^ tt->steps[i].value) * 0x100000001b3ULL;
	}
	return digest;
}

#endif /* TIMETABLE_H */
