// SPDX-License-Identifier: GPL-2.0-only
/* Allocator "trace": a list of times and slots, taken as it is. */

#include "dtm_core.h"

static void dtm_schedule_step(struct dtm_channel *ch, u64 from)
{
	if (ch->step < ch->config->n_steps)
		ch->step_at = from + ch->config->steps[ch->step].after_ns;
	else
		ch->step_at = DTM_NEVER;
}

static void dtm_start_trace(struct dtm_channel *ch, u64 now)
{
	ch->step = 0;
	dtm_schedule_step(ch, now);
}

static u64 dtm_next_trace(const struct dtm_channel *ch)
{
	return ch->step_at;
}

static void dtm_fire_trace(struct dtm_channel *ch, u64 now, u64 until)
{
	dtm_request(ch, now, ch->config->steps[ch->step].slots, TC_DTM_CAUSE_ALLOCATOR);
	ch->step++;
	dtm_schedule_step(ch, now);
}

const struct dtm_allocator dtm_alloc_trace = {
	.start	= dtm_start_trace,
	.next	= dtm_next_trace,
	.fire	= dtm_fire_trace,
};
