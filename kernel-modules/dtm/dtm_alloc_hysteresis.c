// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocator "hysteresis": levels, each with a backlog to enter and one to leave, after Krishnan
 * and Sterbenz, "TCP over load-reactive links" (ICNP 2001).
 */

#include "dtm_core.h"

static u32 dtm_wanted_level(const struct dtm_channel *ch)
{
	const struct dtm_config *c = ch->config;

	if (ch->level + 1 < c->n_levels && ch->bytes >= c->levels[ch->level].up_bytes)
		return ch->level + 1;
	if (ch->level && ch->bytes <= c->levels[ch->level].down_bytes)
		return ch->level - 1;
	return ch->level;
}

/* The highest level that has no more slots than the channel. */
static void dtm_start_hysteresis(struct dtm_channel *ch, u64 now)
{
	const struct dtm_config *c = ch->config;

	ch->level = 0;
	while (ch->level + 1 < c->n_levels && c->levels[ch->level + 1].slots <= ch->slots)
		ch->level++;
}

static u64 dtm_next_hysteresis(const struct dtm_channel *ch)
{
	if (dtm_wanted_level(ch) == ch->level &&
	    ch->config->levels[ch->level].slots == ch->target)
		return DTM_NEVER;
	return dtm_may_decide(ch);
}

static void dtm_fire_hysteresis(struct dtm_channel *ch, u64 now, u64 until)
{
	ch->level = dtm_wanted_level(ch);
	dtm_decide(ch, now, ch->config->levels[ch->level].slots);
}

/* Empty: dtm_next_hysteresis() reads the backlog, and is called because there is this function. */
static void dtm_backlog_hysteresis(struct dtm_channel *ch, u64 now)
{
}

const struct dtm_allocator dtm_alloc_hysteresis = {
	.start		= dtm_start_hysteresis,
	.next		= dtm_next_hysteresis,
	.fire		= dtm_fire_hysteresis,
	.backlog	= dtm_backlog_hysteresis,
};
