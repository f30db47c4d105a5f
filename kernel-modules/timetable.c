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
	if (tt->period && (s64)(time - tt->lap) >= (s64)tt->period) {
		tt->lap += div64_u64(time - tt->lap, tt->period) * tt->period;
		tt->step = 0;
	}
	while ((s64)(timetable_next(tt) - time) <= 0)
		timetable_step(tt);
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

/*
 * Each packet must leave at some time: the work of a table that is repeated is bounded from below,
 * the last rate of another is not 0. And the largest packet must be placed in as many steps as the
 * longest table has: the queue's lock is held meanwhile.
 */
int timetable_check(const struct timetable *tt, struct netlink_ext_ack *extack)
{
	const struct timetable_step *step = tt->steps, *last = step + tt->n_steps - 1;
	u64 bytes = 0;	/* that a lap carries, up to the largest packet */

	if (!tt->n_steps)
		return twoway_refuse(extack, "a timetable needs steps");
	if (step->at_ns)
		return twoway_refuse(extack, "the first step is at 0");
	if (tt->period && tt->period <= last->at_ns)
		return twoway_refuse(extack, "the period is longer than the table");
	for (; step < last || (step == last && tt->period); step++) {
		u64 end = step < last ? step[1].at_ns : tt->period, work;

		if (end <= step->at_ns)
			return twoway_refuse(extack, "each step is later than the one before");
		if (tt->kind == TC_TIMETABLE_OPPORTUNITY)
			work = step->value;
		else if (check_mul_overflow(step->value, end - step->at_ns, &work))
			work = U64_MAX;
		else
			work = div_u64(work, NSEC_PER_SEC);
		bytes = min_t(u64, bytes + min_t(u64, work, TC_TIMETABLE_LARGEST_PACKET),
			      TC_TIMETABLE_LARGEST_PACKET);
	}
	if (tt->kind == TC_TIMETABLE_DELAY)
		return 0;
	if (!tt->period && tt->kind == TC_TIMETABLE_OPPORTUNITY)
		return twoway_refuse(extack, "opportunities need a period");
	if (tt->period ? bytes < TC_TIMETABLE_LEAST_BYTES : !last->value)
		return twoway_refuse(extack,
				     "the table ends without a rate, or carries less than 1500 bytes each time");
	if (tt->period && DIV_ROUND_UP_ULL(TC_TIMETABLE_LARGEST_PACKET, bytes) * tt->n_steps >
				  TC_TIMETABLE_MAX_STEPS)
		return twoway_refuse(extack,
				     "too many steps for the little that the table carries each time");
	return 0;
}

u64 timetable_digest(const struct timetable *tt)
{
	u64 digest = 0xcbf29ce484222325ULL;

	for (u32 i = 0; i < tt->n_steps; i++) {
		digest = (digest ^ tt->steps[i].at_ns) * 0x100000001b3ULL;
		digest = (digest ^ tt->steps[i].value) * 0x100000001b3ULL;
	}
	return digest;
}
