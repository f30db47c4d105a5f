// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocator "rate": the estimator of Abrahamsson, Hagsand and Marsh, "TCP over high speed variable
 * capacity links" (2002), figure 1:
 *
 *	new      = 8 * incoming bytes / sample interval
 *	current += (new - current) >> shift_up		or	-= (current - new) >> shift_down
 *
 *	counted  = current, or its whole multiples of a grain
 *
 *	if counted > upper or counted < lower:
 *		slots = counted + margin + corridor / 2	in slots, rounded
 *		upper, lower = counted +- corridor / 2
 *
 * All of it in whole bit/s. The paper prints neither the last line nor the start: we let the
 * corridor's middle follow the estimate at each decision, which leaves the allocation above the
 * upper edge by the margin and gives the 1 Mbit/s above a 5 Mbit/s flow of its figure 4; and both
 * edges start at the initial estimate, so that the first traffic causes the first decision.
 */

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "dtm_core.h"

/* Bit/s of a sample; rounded down, as all of the estimator is. */
static u64 dtm_rate_measure(u64 bytes, u64 sample_ns)
{
	return mul_u64_u64_div_u64(bytes, 8ULL * NSEC_PER_SEC, sample_ns);
}

/* The estimate, moved towards a new measurement by 2^-shift of their distance. */
static u64 dtm_rate_step(u64 estimate, u64 new_bit, u8 shift_up, u8 shift_down)
{
	if (new_bit < estimate)
		return estimate - ((estimate - new_bit) >> shift_down);
	return estimate + ((new_bit - estimate) >> shift_up);
}

/* The part of an estimate that counts: all of it, or its whole multiples of a grain. */
static u64 dtm_rate_counted(const struct dtm_config *c, u64 estimate)
{
	u32 rest = 0;

	if (c->grain)
		div_u64_rem(estimate, c->grain, &rest);
	return estimate - rest;
}

static bool dtm_rate_is_outside(const struct dtm_rate *rate, u64 counted)
{
	return counted > rate->upper || counted < rate->lower;
}

/* Bit/s of thousandths of a slot, each a whole number of them. */
static u64 dtm_rate_of(const struct dtm_config *c, u32 thousandths)
{
	return (u64)thousandths * (c->slot_rate / 1000);
}

/* Centre the corridor on the counted part of the estimate. */
static void dtm_rate_centre(const struct dtm_config *c, struct dtm_rate *rate, u64 counted)
{
	u64 half = dtm_rate_of(c, c->corridor) / 2;

	rate->lower = counted > half ? counted - half : 0;
	rate->upper = counted + half;
}

/* Slots for the counted part of an estimate: at least 1. */
static u32 dtm_rate_slots(const struct dtm_config *c, u64 counted)
{
	u64 bit = counted + dtm_rate_of(c, c->margin) + dtm_rate_of(c, c->corridor) / 2;
	u64 slots;

	if (c->rounding == TC_DTM_ROUND_UP)
		bit += c->slot_rate - 1;
	else if (c->rounding == TC_DTM_ROUND_NEAREST)
		bit += c->slot_rate / 2;
	slots = div_u64(bit, c->slot_rate);
	return clamp_t(u64, slots, 1, TC_DTM_MAX_SLOTS);
}

static void dtm_start_rate(struct dtm_channel *ch, u64 now)
{
	ch->rate.estimate = ch->config->estimate;
	ch->rate.lower = ch->config->estimate;
	ch->rate.upper = ch->config->estimate;
	ch->sample_at = now + ch->config->sample_ns;
	ch->sample_bytes = 0;
	ch->dropped_ns = DTM_NEVER;
}

static u64 dtm_next_rate(const struct dtm_channel *ch)
{
	return ch->sample_at;
}

/* The time until which the last drop holds the estimate, or the slots. */
static u64 dtm_rate_held_until(const struct dtm_channel *ch)
{
	return ch->dropped_ns == DTM_NEVER ? 0 : ch->dropped_ns + ch->config->hold_ns;
}

/* The first time from `at` on at which slots may change. */
static u64 dtm_rate_may_decide(const struct dtm_channel *ch, u64 at)
{
	u64 may = dtm_may_decide(ch), start = ch->started_ns, pace = ch->config->change_ns;

	if (ch->config->hold == TC_DTM_HOLD_SLOTS)
		may = max(may, dtm_rate_held_until(ch));
	if (ch->config->pace == TC_DTM_PACE_APART || !pace || may == DTM_NEVER)
		return may;
	return start + DIV64_U64_ROUND_UP(max(may, at) - start, pace) * pace;
}

/* Skip samples until then: no bytes arrive, and the estimate does not move. */
static void dtm_rate_skip(struct dtm_channel *ch, u64 until)
{
	u64 samples;

	if (ch->sample_at > until)
		return;
	samples = div64_u64(until - ch->sample_at, ch->config->sample_ns) + 1;
	ch->samples += samples;
	ch->sample_at += samples * ch->config->sample_ns;
}

/*
 * Take the sample that is due, and those up to `until` that change no slots: they concern this
 * channel alone. The next sample that changes slots is an event of its own, in its order among
 * other channels' events. While a channel idles its estimate falls to a value that does not move,
 * within at most some 15000 samples (with the greatest shift; 200 with the default); the other
 * samples are skipped at once, and so are those of a hold.
 */
static void dtm_fire_rate(struct dtm_channel *ch, u64 now, u64 until)
{
	const struct dtm_config *c = ch->config;
	u64 others_due = dtm_others_due(ch->pool);

	for (; ch->sample_at <= until && ch->sample_at < ch->request_ns; ch->pool->work++) {
		u64 at = ch->sample_at, may_decide = dtm_rate_may_decide(ch, at - c->sample_ns + 1);
		u64 measured = dtm_rate_measure(ch->sample_bytes, c->sample_ns);
		struct dtm_rate rate = ch->rate;
		u64 held_until = dtm_rate_held_until(ch);
		bool held, moves, decides;
		u32 want = ch->target;
		u64 counted;

		/* The samples that remain are another event. */
		if (ch->pool->work >= DTM_MOST_WORK)
			return;
		rate.estimate = dtm_rate_step(rate.estimate, measured, c->shift_up, c->shift_down);
		held = rate.estimate < ch->rate.estimate && at < held_until &&
		       c->hold == TC_DTM_HOLD_ESTIMATE;
		if (held)
			rate.estimate = ch->rate.estimate;
		moves = measured || rate.estimate != ch->rate.estimate;
		counted = dtm_rate_counted(c, rate.estimate);
		decides = dtm_rate_is_outside(&rate, counted) && at >= may_decide;
		if (decides) {
			dtm_rate_centre(c, &rate, counted);
			want = dtm_within_bounds(ch, dtm_rate_slots(c, counted));
		}
		if (want != ch->target && at != now && at >= others_due)
			return;
		ch->rate = rate;
		ch->sample_bytes = 0;
		ch->sample_at += c->sample_ns;
		ch->samples++;
		if (want != ch->target) {
			ch->pool->now = at;
			dtm_decide(ch, at, want);
			return;
		}
		if (!moves) {
			u64 idle_until = min(until, ch->request_ns - 1);

			if (held)
				idle_until = min(idle_until, held_until - 1);
			if (dtm_rate_is_outside(&rate, counted))
				idle_until = min(idle_until, dtm_rate_may_decide(ch, at + 1) - 1);
			dtm_rate_skip(ch, idle_until);
		}
	}
}

static void dtm_drop_rate(struct dtm_channel *ch, u64 now, u32 bytes)
{
	if (ch->config->count == TC_DTM_COUNT_ARRIVALS)
		ch->sample_bytes += bytes;
	ch->dropped_ns = now;
}

const struct dtm_allocator dtm_alloc_rate = {
	.start	= dtm_start_rate,
	.next	= dtm_next_rate,
	.fire	= dtm_fire_rate,
	.drop	= dtm_drop_rate,
};
