// SPDX-License-Identifier: GPL-2.0-only
/* When packets leave a link that changes by a table; see timetable.h. */

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/time64.h>

#include "compat/netlink.h"
#include "timetable.h"

/* Longest time from arrival to departure, ns: 36 years, so that no time overflows. */
#define TIMETABLE_HORIZON (U64_MAX >> 4)

/* When the step after the one in force begins. */
static u64 timetable_next(const struct timetable *tt)
{
	if (tt->step + 1 < tt->n_steps)
		return tt->lap + tt->steps[tt->step + 1].at_ns;
	return tt->period ? tt->lap + tt->period : TIMETABLE_NEVER;
}

static void timetable_step(struct timetable *tt)
{
	if (++tt->step < tt->n_steps)
		return;
	tt->step = 0;
	tt->lap += tt->period;
}

/* Put the step of a time into force; it is the present one or a later one. */
static void timetable_seek(struct timetable *tt, u64 time)
{
	u32 after = tt->n_steps;

	if (tt->period && (s64)(time - tt->lap) >= (s64)tt->period) {
		tt->lap += div64_u64(time - tt->lap, tt->period) * tt->period;
		tt->step = 0;
	}
	if ((s64)(timetable_next(tt) - time) > 0)
		return;
	while (after - tt->step > 1) {
		u32 middle = tt->step + (after - tt->step) / 2;

		if ((s64)(tt->lap + tt->steps[middle].at_ns - time) <= 0)
			tt->step = middle;
		else
			after = middle;
	}
}

void timetable_start(struct timetable *tt, u64 start, u64 now)
{
	tt->step = 0;
	tt->lap = start;
	if (tt->period && (s64)(start - now) > 0)
		tt->lap -= div64_u64(start - now + tt->period - 1, tt->period) * tt->period;
	timetable_seek(tt, tt->kind == TC_TIMETABLE_DELAY ? now : max(now, tt->free_at));
}

static u64 timetable_value(const struct timetable *tt)
{
	return tt->steps[tt->step].value;
}

/*
 * When an amount of work that begins at a time is done, in 10^-9 bytes of a rate. NEVER, if that is
 * after `until`, or takes more steps than the longest table has.
 */
static u64 timetable_by_rate(struct timetable *tt, u64 time, u64 work, u64 until)
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

static u64 timetable_by_opportunity(struct timetable *tt, u64 bytes, u64 until)
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

static void timetable_place(struct timetable *tt, u64 now, u64 until, u32 bytes)
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

u64 timetable_arrive(struct timetable *tt, u64 now, u32 bytes)
{
	struct timetable after = *tt;

	timetable_place(&after, now, now + TIMETABLE_HORIZON, bytes);
	if (after.free_at > now + TIMETABLE_HORIZON)
		return TIMETABLE_NEVER;
	*tt = after;
	return tt->free_at;
}

void timetable_clear(struct timetable *tt, u64 now)
{
	tt->free_at = now;
	timetable_start(tt, tt->lap, now);
}

/* What a step carries until the next, in bytes, or all that matters of it. */
static u32 timetable_carries(const struct timetable *tt, const struct timetable_step *step, u64 end)
{
	u64 work = step->value;

	if (tt->kind != TC_TIMETABLE_OPPORTUNITY) {
		if (check_mul_overflow(work, end - step->at_ns, &work))
			return TC_TIMETABLE_LARGEST_PACKET;
		work = div_u64(work, NSEC_PER_SEC);
	}
	return min_t(u64, work, TC_TIMETABLE_LARGEST_PACKET);
}

/* FNV-1a, a word at a time. */
static u64 timetable_digest(const struct timetable_step *step, u64 digest)
{
	digest = (digest ^ step->at_ns) * 0x100000001b3ULL;
	return (digest ^ step->value) * 0x100000001b3ULL;
}

/*
 * Each packet must leave at some time: the work of a table that is repeated is bounded from below,
 * the last rate of another is not 0. And the largest packet must be placed in as many steps as the
 * longest table has: the queue's lock is held meanwhile.
 */
int timetable_check(struct timetable *tt, u32 checked, struct netlink_ext_ack *extack)
{
	const struct timetable_step *step = tt->steps, *last = step + tt->n_steps - 1;
	u64 bytes;	/* that a lap carries, up to the largest packet */

	if (!tt->n_steps)
		return twoway_refuse(extack, "a timetable needs steps");
	if (step->at_ns)
		return twoway_refuse(extack, "the first step is at 0");
	if (tt->period && tt->period <= last->at_ns)
		return twoway_refuse(extack, "the period is longer than the table");
	if (!checked) {
		tt->carried = 0;
		tt->digest = timetable_digest(step, 0xcbf29ce484222325ULL);
		checked = 1;
	}
	for (step += checked - 1; step < last; step++) {
		if (step[1].at_ns <= step->at_ns)
			return twoway_refuse(extack, "each step is later than the one before");
		bytes = tt->carried + timetable_carries(tt, step, step[1].at_ns);
		tt->carried = min_t(u64, bytes, TC_TIMETABLE_LARGEST_PACKET);
		tt->digest = timetable_digest(step + 1, tt->digest);
	}
	if (tt->kind == TC_TIMETABLE_DELAY)
		return 0;
	if (!tt->period && tt->kind == TC_TIMETABLE_OPPORTUNITY)
		return twoway_refuse(extack, "opportunities need a period");
	if (!tt->period && last->value)
		return 0;
	bytes = tt->period ? tt->carried + timetable_carries(tt, last, tt->period) : 0;
	bytes = min_t(u64, bytes, TC_TIMETABLE_LARGEST_PACKET);
	if (bytes < TC_TIMETABLE_LEAST_BYTES)
		return twoway_refuse(extack,
				     "the table ends without a rate, or carries less than 1500 bytes each time");
	if (DIV_ROUND_UP_ULL(TC_TIMETABLE_LARGEST_PACKET, bytes) * tt->n_steps >
	    TC_TIMETABLE_MAX_STEPS)
		return twoway_refuse(extack,
				     "too many steps for the little that the table carries each time");
	return 0;
}
