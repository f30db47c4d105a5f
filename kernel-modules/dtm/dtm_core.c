// SPDX-License-Identifier: GPL-2.0-only
/* Channels of a DTM link and the pool of its slots; see dtm_core.h. */

#include <linux/math64.h>
#include <linux/time64.h>

#include "dtm_core.h"

/* As many slots as 10 Mbit/s take, where the DTM link of the paper's figure 3 starts. */
#define DTM_DEFAULT_SLOTS 20

const struct dtm_config dtm_defaults = {
	.initial	= DTM_DEFAULT_SLOTS,
	.limit		= 1000,
	.min_slots	= 1,
	.max_slots	= TC_DTM_MAX_SLOTS,
	.change_ns	= NSEC_PER_SEC,
	.sample_ns	= 100 * NSEC_PER_MSEC,
	.shift_up	= 3,
	.shift_down	= 3,
	.margin		= 750,
	.corridor	= 2000,
	.high		= 30000,
	.low		= 3000,
	.rise_ns	= 10 * NSEC_PER_MSEC,
	.fall_ns	= 100 * NSEC_PER_MSEC,
	.step		= 1,
	.slot_rate	= TC_DTM_SLOT_RATE,
};

/* The heap: a binary one, of the times of the members' next events */

static bool dtm_is_before(const struct dtm_channel *a, const struct dtm_channel *b)
{
	return a->due < b->due || (a->due == b->due && a->number < b->number);
}

static void dtm_heap_put(struct dtm_pool *pool, u32 place, struct dtm_channel *ch)
{
	pool->heap[place] = ch;
	ch->place = place;
}

/* Move a channel to where its time belongs. */
static void dtm_heap_move(struct dtm_channel *ch)
{
	struct dtm_pool *pool = ch->pool;
	u32 place = ch->place;

	while (place && dtm_is_before(ch, pool->heap[(place - 1) / 2])) {
		dtm_heap_put(pool, place, pool->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	for (;;) {
		u32 child = 2 * place + 1;

		if (child + 1 < pool->members &&
		    dtm_is_before(pool->heap[child + 1], pool->heap[child]))
			child++;
		if (child >= pool->members || !dtm_is_before(pool->heap[child], ch))
			break;
		dtm_heap_put(pool, place, pool->heap[child]);
		place = child;
	}
	dtm_heap_put(pool, place, ch);
}

static void dtm_heap_add(struct dtm_channel *ch)
{
	dtm_heap_put(ch->pool, ch->pool->members++, ch);
	dtm_heap_move(ch);
}

static void dtm_heap_remove(struct dtm_channel *ch)
{
	struct dtm_pool *pool = ch->pool;
	struct dtm_channel *last = pool->heap[--pool->members];

	if (last == ch)
		return;
	dtm_heap_put(pool, ch->place, last);
	dtm_heap_move(last);
}

u64 dtm_others_due(const struct dtm_pool *pool)
{
	u64 due = DTM_NEVER;
	u32 i;

	for (i = 1; i <= 2 && i < pool->members; i++)
		due = min(due, pool->heap[i]->due);
	return due;
}

/* Note when the next event is due, after anything that it depends on. */
static void dtm_plan(struct dtm_channel *ch)
{
	const struct dtm_allocator *allocator = ch->config->calls;
	u64 due = ch->request_ns;

	if (allocator->next)
		due = min(due, allocator->next(ch));
	/* Never earlier than the event that made it due. */
	due = max(due, ch->pool->now);
	if (due != ch->due) {
		ch->due = due;
		dtm_heap_move(ch);
	}
}

/* Slots */

void dtm_count_slots(struct dtm_channel *ch, u64 now)
{
	u32 rest;
	u64 seconds = div_u64_rem(now - ch->counted_ns, NSEC_PER_SEC, &rest);
	u64 ns = ch->slot_ns + (u64)rest * ch->slots;

	ch->slot_seconds += seconds * ch->slots + div_u64_rem(ns, NSEC_PER_SEC, &rest);
	ch->slot_ns = rest;
	ch->counted_ns = now;
}

u32 dtm_borrowed(const struct dtm_channel *ch)
{
	return ch->config->pool[0] && ch->slots > ch->config->owned ?
	       ch->slots - ch->config->owned : 0;
}

static void dtm_set_slots(struct dtm_channel *ch, u64 now, u32 slots, u32 wanted,
			  enum tc_dtm_cause cause)
{
	u32 from = ch->slots;

	dtm_count_slots(ch, now);
	dtm_service_advance(&ch->service, now, from);
	ch->pool->used += slots - from;
	ch->pool->work++;
	ch->slots = slots;
	ch->changed_ns = now;
	if (slots > from)
		ch->grows++;
	else
		ch->shrinks++;
	dtm_plan(ch);
	dtm_channel_changed(ch, now, from, wanted, cause);
}

static void dtm_wait(struct dtm_channel *ch, u32 slots)
{
	ch->awaited = slots;
	list_add_tail(&ch->waiting, &ch->pool->waiting);
}

/* Give free slots to those who wait, in their order. */
static void dtm_serve_waiting(struct dtm_pool *pool, u64 now)
{
	while (pool->used < pool->size && !list_empty(&pool->waiting)) {
		struct dtm_channel *ch = list_first_entry(&pool->waiting, struct dtm_channel,
							  waiting);
		u32 missing = ch->awaited - ch->slots, unused = pool->size - pool->used;

		if (missing <= unused)
			list_del_init(&ch->waiting);
		dtm_set_slots(ch, now, ch->slots + min(missing, unused), ch->target,
			      TC_DTM_CAUSE_GRANTED);
	}
}

/* Take up to `slots` back from those who hold more than they are guaranteed. */
static u32 dtm_reclaim(struct dtm_channel *owner, u64 now, u32 slots)
{
	struct dtm_channel *ch;
	u32 got = 0;

	list_for_each_entry(ch, &owner->pool->in_order, in_order) {
		u32 keeps = dtm_guaranteed(ch->config), taken;
		/* A request that is still being signalled asks the pool for nothing yet. */
		u32 wants = min(ch->slots, ch->target);

		if (got == slots)
			break;
		owner->pool->work++;
		if (ch == owner || ch->slots <= keeps)
			continue;
		taken = min(ch->slots - keeps, slots - got);
		ch->reclaimed += taken;
		got += taken;
		if (list_empty(&ch->waiting) && ch->slots - taken < wants)
			dtm_wait(ch, wants);
		dtm_set_slots(ch, now, ch->slots - taken, ch->target, TC_DTM_CAUSE_RECLAIMED);
	}
	return got;
}

void dtm_request(struct dtm_channel *ch, u64 now, u32 want, enum tc_dtm_cause cause)
{
	u32 from = ch->slots, granted = want;

	list_del_init(&ch->waiting);
	ch->target = want;
	if (want > from) {
		u32 most = from + ch->pool->size - ch->pool->used;
		u32 own = min(want, dtm_guaranteed(ch->config));

		if (own > most)
			most += dtm_reclaim(ch, now, own - most);
		granted = min(want, most);
	}
	if (granted < want) {
		ch->denied++;
		cause = TC_DTM_CAUSE_DENIED;
		dtm_wait(ch, want);
	}
	if (granted != from)
		dtm_set_slots(ch, now, granted, want, cause);
	else
		dtm_channel_changed(ch, now, from, want, cause);
	if (granted < from)
		dtm_serve_waiting(ch->pool, now);
}

/* Decisions */

/* A link changes at most once a cycle. */
u64 dtm_may_decide(const struct dtm_channel *ch)
{
	if (ch->request_ns != DTM_NEVER)
		return DTM_NEVER;
	return ch->decided_ns + max_t(u64, ch->config->change_ns, TC_DTM_CYCLE_NS);
}

u32 dtm_within_bounds(const struct dtm_channel *ch, u32 want)
{
	return clamp(want, ch->config->min_slots, ch->config->max_slots);
}

void dtm_decide(struct dtm_channel *ch, u64 now, u32 want)
{
	want = dtm_within_bounds(ch, want);
	if (want == ch->target)
		return;
	/* It no longer waits for what it wanted before. */
	list_del_init(&ch->waiting);
	ch->target = want;
	ch->decided_ns = now;
	if (ch->config->signalling_ns)
		ch->request_ns = now + ch->config->signalling_ns;
	else
		dtm_request(ch, now, want, TC_DTM_CAUSE_ALLOCATOR);
}

/* Time */

static void dtm_fire(struct dtm_channel *ch, u64 now, u64 until)
{
	if (ch->request_ns <= now) {
		ch->request_ns = DTM_NEVER;
		dtm_request(ch, now, ch->target, TC_DTM_CAUSE_ALLOCATOR);
	} else {
		ch->config->calls->fire(ch, now, until);
	}
	dtm_plan(ch);
}

/* Let all that is due until now happen, in order; of one instant, in the order of joining. */
bool dtm_pool_advance(struct dtm_pool *pool, u64 now)
{
	pool->behind = false;
	for (pool->work = 0; pool->members && pool->heap[0]->due <= now; pool->work++) {
		struct dtm_channel *ch = pool->heap[0];

		pool->behind = pool->work >= DTM_MOST_WORK;
		if (pool->behind)
			return false;
		pool->now = ch->due;
		dtm_fire(ch, pool->now, now);
	}
	pool->now = max(pool->now, now);
	return true;
}

u64 dtm_next(const struct dtm_channel *ch)
{
	/* A channel that waits gets slots when other channels' events free some. */
	return list_empty(&ch->waiting) ? ch->due : ch->pool->heap[0]->due;
}

static void dtm_backlog_changed(struct dtm_channel *ch, u64 now)
{
	const struct dtm_allocator *allocator = ch->config->calls;

	if (!allocator->backlog)
		return;
	allocator->backlog(ch, now);
	dtm_plan(ch);
}

/* Traffic */

bool dtm_has_room(const struct dtm_channel *ch, u32 bytes)
{
	const struct dtm_config *c = ch->config;

	return ch->packets < c->limit && (!c->limit_bytes || ch->bytes + bytes <= c->limit_bytes);
}

bool dtm_notes_drops(const struct dtm_channel *ch)
{
	return ch->config->calls->drop;
}

void dtm_drop(struct dtm_channel *ch, u64 now, u32 bytes)
{
	ch->config->calls->drop(ch, now, bytes);
}

void dtm_arrive(struct dtm_channel *ch, u64 bytes)
{
	ch->sample_bytes += bytes;
}

u64 dtm_serve(struct dtm_channel *ch, u64 now, u32 bytes)
{
	return dtm_service_arrive(&ch->service, now, ch->slots, bytes, ch->config->framed,
				  ch->config->slot_rate);
}

u64 dtm_sent_at(const struct dtm_channel *ch, u64 tag)
{
	return dtm_service_end(&ch->service, tag, ch->slots, ch->config->framed);
}

void dtm_backlog(struct dtm_channel *ch, u64 now, u32 packets, u64 bytes, bool waits)
{
	if (waits != ch->service.waits)
		dtm_service_wait(&ch->service, now, ch->slots, waits);
	ch->packets = packets;
	ch->bytes = bytes;
	ch->peak_packets = max(ch->peak_packets, packets);
	ch->peak_bytes = max(ch->peak_bytes, bytes);
	dtm_backlog_changed(ch, now);
}

void dtm_clear(struct dtm_channel *ch, u64 now)
{
	dtm_service_clear(&ch->service, now, ch->slots);
	dtm_backlog(ch, now, 0, 0, false);
}

/* Membership and configuration */

/* Start an allocator afresh; counters and the transmission go on. */
static void dtm_restart(struct dtm_channel *ch, u64 now)
{
	ch->started_ns = now;
	ch->decided_ns = now;
	ch->request_ns = DTM_NEVER;
	ch->target = list_empty(&ch->waiting) ? ch->slots : ch->awaited;
	ch->sample_at = DTM_NEVER;
	if (ch->config->calls->start)
		ch->config->calls->start(ch, now);
	dtm_plan(ch);
	dtm_channel_changed(ch, now, ch->slots, ch->target, TC_DTM_CAUSE_START);
}

void dtm_pool_init(struct dtm_pool *pool, u32 size)
{
	*pool = (struct dtm_pool) { .size = size };
	INIT_LIST_HEAD(&pool->in_order);
	INIT_LIST_HEAD(&pool->waiting);
}

bool dtm_pool_has_room(const struct dtm_pool *pool, u32 guaranteed)
{
	return guaranteed <= pool->size - pool->guaranteed;
}

void dtm_pool_join(struct dtm_pool *pool, struct dtm_channel *ch, const struct dtm_config *config,
		   u64 now)
{
	ch->config = config;
	ch->pool = pool;
	ch->number = pool->joined++;
	ch->due = DTM_NEVER;
	ch->request_ns = DTM_NEVER;
	ch->created_ns = now;
	ch->counted_ns = now;
	INIT_LIST_HEAD(&ch->waiting);
	list_add_tail(&ch->in_order, &pool->in_order);
	dtm_heap_add(ch);
	pool->guaranteed += dtm_guaranteed(config);
	dtm_request(ch, now, config->initial, TC_DTM_CAUSE_OPERATOR);
	dtm_restart(ch, now);
	ch->grows = 0;
	ch->changed_ns = now;
}

void dtm_pool_leave(struct dtm_channel *ch, u64 now)
{
	struct dtm_pool *pool = ch->pool;
	u32 from = ch->slots;

	list_del(&ch->in_order);
	list_del_init(&ch->waiting);
	dtm_heap_remove(ch);
	pool->used -= from;
	pool->guaranteed -= dtm_guaranteed(ch->config);
	ch->slots = 0;
	dtm_channel_changed(ch, now, from, 0, TC_DTM_CAUSE_LEFT);
	dtm_serve_waiting(pool, now);
}

/* A request that is being signalled, or waits, was made within other bounds. */
static void dtm_fit_target(struct dtm_channel *ch, u64 now)
{
	ch->target = dtm_within_bounds(ch, ch->target);
	if (ch->request_ns != DTM_NEVER) {
		ch->awaited = min(ch->awaited, ch->target);
		if (ch->awaited <= ch->slots)
			list_del_init(&ch->waiting);
	} else if (!list_empty(&ch->waiting)) {
		dtm_request(ch, now, ch->target, TC_DTM_CAUSE_OPERATOR);
	}
}

void dtm_reconfigure(struct dtm_channel *ch, const struct dtm_config *config, u64 now,
		     bool restart, u32 slots)
{
	bool resample = config->sample_ns != ch->config->sample_ns;

	ch->pool->guaranteed += dtm_guaranteed(config) - dtm_guaranteed(ch->config);
	ch->config = config;
	if (dtm_within_bounds(ch, ch->target) != ch->target)
		dtm_fit_target(ch, now);
	if (slots || dtm_within_bounds(ch, ch->slots) != ch->slots) {
		ch->decided_ns = now;
		ch->request_ns = DTM_NEVER;
		dtm_request(ch, now, slots ?: dtm_within_bounds(ch, ch->slots),
			    TC_DTM_CAUSE_OPERATOR);
	}
	if (restart) {
		dtm_restart(ch, now);
	} else if (resample) {
		ch->sample_at = now + config->sample_ns;
		ch->sample_bytes = 0;
	}
	dtm_backlog_changed(ch, now);
	dtm_plan(ch);
}
