// SPDX-License-Identifier: GPL-2.0-only
/* Allocator "rate": follows the estimated rate of arrivals; see dtm_rate.h. */

#include "dtm_core.h"

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

/* Until when the estimate does not fall. */
static u64 dtm_rate_held_until(const struct dtm_channel *ch)
{
	return ch->dropped_ns == DTM_NEVER ? 0 : ch->dropped_ns + ch->config->hold_ns;
}

/* Nothing comes in and nothing moves: pass over the samples until then. */
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
 * channel alone. The next sample that does is an event of its own, so that it takes its turn among
 * those of other channels. While a channel idles its estimate falls to a value that does not move,
 * within at most some 15000 samples (with the greatest shift; 200 with the default); the rest is
 * passed over at once, and so are those of a hold.
 */
static void dtm_fire_rate(struct dtm_channel *ch, u64 now, u64 until)
{
	const struct dtm_config *c = ch->config;
	u64 others_due = dtm_others_due(ch->pool);

	for (; ch->sample_at <= until && ch->sample_at < ch->request_ns; ch->pool->work++) {
		u64 at = ch->sample_at, may_decide = dtm_may_decide(ch);
		u64 measured = dtm_rate_measure(ch->sample_bytes, c->sample_ns);
		struct dtm_rate rate = ch->rate;
		u64 held_until = dtm_rate_held_until(ch);
		bool held, moves, decides;
		u32 want = ch->target;

		/* The rest is an event of its own. */
		if (ch->pool->work >= DTM_MOST_WORK)
			return;
		rate.estimate = dtm_rate_step(rate.estimate, measured, c->shift_up, c->shift_down);
		held = rate.estimate < ch->rate.estimate && at < held_until;
		if (held)
			rate.estimate = ch->rate.estimate;
		moves = measured || rate.estimate != ch->rate.estimate;
		decides = dtm_rate_is_outside(&rate) && at >= may_decide;
		if (decides) {
			dtm_rate_centre(&rate, c->corridor);
			want = dtm_within_bounds(ch, dtm_rate_slots(rate.estimate, c->margin,
								    c->corridor, c->rounding));
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
			if (dtm_rate_is_outside(&rate))
				idle_until = min(idle_until, may_decide - 1);
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
