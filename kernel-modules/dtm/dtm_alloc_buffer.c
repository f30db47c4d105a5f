// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocator "buffer": ask for a step of slots after a time with the backlog above one threshold,
 * give one back after a time below another, after Lundqvist's scheme for IP over DTM. The time
 * starts again with each step.
 */

#include "dtm_core.h"

static void dtm_backlog_buffer(struct dtm_channel *ch, u64 now)
{
	if (ch->bytes <= ch->config->high)
		ch->above_ns = DTM_NEVER;
	else if (ch->above_ns == DTM_NEVER)
		ch->above_ns = now;
	if (ch->bytes >= ch->config->low)
		ch->below_ns = DTM_NEVER;
	else if (ch->below_ns == DTM_NEVER)
		ch->below_ns = now;
}

static void dtm_start_buffer(struct dtm_channel *ch, u64 now)
{
	ch->above_ns = DTM_NEVER;
	ch->below_ns = DTM_NEVER;
	dtm_backlog_buffer(ch, now);
}

static u64 dtm_next_buffer(const struct dtm_channel *ch)
{
	bool waits = !list_empty(&ch->waiting);
	u64 due = DTM_NEVER;

	if (ch->above_ns != DTM_NEVER && ch->slots < ch->config->max_slots && !waits)
		due = ch->above_ns + ch->config->rise_ns;
	else if (ch->below_ns != DTM_NEVER && ch->slots > ch->config->min_slots)
		due = ch->below_ns + ch->config->fall_ns;
	return max(due, dtm_may_decide(ch));
}

static void dtm_fire_buffer(struct dtm_channel *ch, u64 now, u64 until)
{
	u32 step = ch->config->step;

	if (ch->above_ns != DTM_NEVER) {
		ch->above_ns = now;
		dtm_decide(ch, now, ch->slots + step);
	} else {
		ch->below_ns = now;
		dtm_decide(ch, now, ch->slots > step ? ch->slots - step : 1);
	}
}

const struct dtm_allocator dtm_alloc_buffer = {
	.start		= dtm_start_buffer,
	.next		= dtm_next_buffer,
	.fire		= dtm_fire_buffer,
	.backlog	= dtm_backlog_buffer,
};
