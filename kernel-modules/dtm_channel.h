/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A DTM channel: how many slots it has, who decides that, and what it shares with others.
 *
 * Time moves by events. Each channel knows the time of its next one: an estimate, a threshold
 * crossed for long enough, the end of a hold, a step of a trace, a signalled request coming into
 * effect. dtm_pool_advance() lets the events of all channels of a pool happen in the order of
 * their times, up to now; it is called before anything else is done to any of them. So it does
 * not matter how late an event is noticed: an idle channel needs no timer, and every slot is
 * counted to the nanosecond. The caller need only be there in time for what changes the end of a
 * transmission, that is, at dtm_next() of a channel with packets.
 *
 *	arrival, departure, statistics, change
 *		 |
 *		 v				      allocator (one of five)
 *	dtm_pool_advance(now): earliest dtm_next() --> fire --> dtm_decide(want)
 *								|  signalling delay
 *								v
 *	service pro rata <-- dtm_set_slots() <-- dtm_reallocate(): what the pool grants
 *
 * The pool. A link has `size` slots; channels hold `used` of them. A channel may use slots that
 * nobody holds (others' included: they are lent), and an owner gets its own back at once, taken
 * from those who hold more than they are guaranteed, in the order in which they joined. What is
 * guaranteed to a channel is what it owns, or its minimum if that is more, and no channel joins
 * if the guarantees would exceed the link. A channel without a pool has one of its own.
 *
 * Pure: the caller holds the pool's lock and provides dtm_channel_changed(). Included once, by
 * sch_dtm, and by a test in user space.
 */
#ifndef DTM_CHANNEL_H
#define DTM_CHANNEL_H

#include "dtm_rate.h"
#include "dtm_service.h"
#include "pkt_dtm.h"

#define DTM_NEVER	((u64)-1)

struct dtm_config {
	u64 change_ns;		/* least time between decisions */
	u64 signalling_ns;	/* from a decision to its effect */
	u64 sample_ns;		/* rate: interval of estimates */
	u64 hold_ns;		/* rate: no decrease for so long after a drop */
	u64 estimate;		/* rate: bit/s at the start */
	u64 rise_ns;		/* buffer: backlog above `high` for so long asks for more */
	u64 fall_ns;		/* buffer: below `low` for so long gives back */
	u32 slots;		/* at the start */
	u32 limit;		/* packets, in service included */
	u32 limit_bytes;	/* 0: none */
	s32 overhead;		/* bytes added to each frame */
	u32 min_slots;
	u32 max_slots;
	u32 margin;		/* rate: thousandths of a slot */
	u32 corridor;		/* rate: thousandths of a slot */
	u32 high;		/* buffer: bytes */
	u32 low;		/* buffer: bytes */
	u32 step;		/* buffer: slots per change */
	u32 pool;		/* slots of the link; 0: not shared */
	u32 owned;
	u32 n_levels;
	u32 n_steps;
	u8 allocator;
	u8 shift_up;
	u8 shift_down;
	u8 rounding;
	u8 count;
	u8 framed;
	struct tc_dtm_level levels[DTM_MAX_LEVELS];
	struct tc_dtm_step steps[DTM_MAX_STEPS];
};

/* As many slots as 10 Mbit/s take, where the DTM link of the paper's figure 3 starts. */
#define DTM_DEFAULT_SLOTS 20

static const struct dtm_config dtm_defaults = {
	.slots		= DTM_DEFAULT_SLOTS,
	.limit		= 1000,
	.min_slots	= 1,
	.max_slots	= DTM_MAX_SLOTS,
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
};

struct dtm_pool {
	struct dtm_channel *first;	/* members, in the order in which they joined */
	u64 now;			/* ns: everything due by then has happened */
	u32 size;			/* slots of the link */
	u32 used;			/* slots that members hold: never more than size */
	u32 guaranteed;			/* sum over members: never more than size */
};

struct dtm_channel {
	const struct dtm_config *config;
	struct dtm_pool *pool;
	struct dtm_channel *next;	/* in the pool */
	struct dtm_service service;
	u64 due;		/* when the next event is; see dtm_plan() */

	u32 slots;		/* held */
	u32 target;		/* wanted */
	u32 packets;		/* backlog, the packet in service included */
	u32 bytes;		/* the same, on the link */
	u64 created_ns;
	u64 decided_ns;		/* last decision, or creation */
	u64 request_ns;		/* when a signalled request takes effect; DTM_NEVER: none */
	u32 requested;		/* slots that it asks for */

	struct dtm_rate rate;
	u64 sample_at;		/* when the next estimate is due */
	u64 sample_bytes;	/* came in since the last */
	u64 dropped_ns;		/* last drop; DTM_NEVER: none yet */
	u64 above_ns;		/* buffer: since when above `high`; DTM_NEVER: is not */
	u64 below_ns;		/* buffer: since when below `low`; DTM_NEVER: is not */
	u32 level;		/* hysteresis */
	u32 step;		/* trace: the next one */
	u64 step_at;		/* when it is due; DTM_NEVER: done */

	u64 counted_ns;		/* up to when slot_seconds are */
	u64 slot_seconds;
	u64 slot_ns;		/* below 10^9 */
	u64 changed_ns;		/* last change of slots */
	u64 samples;
	u64 grows;
	u64 shrinks;
	u64 denied;
	u64 reclaimed;
	u32 peak_packets;
	u32 peak_bytes;
};

/*
 * What distinguishes allocators. `next` tells when `fire` wants to be called, from the state
 * alone; `fire` must then move that time on. `idle_until`: nothing else happens before. `backlog`
 * is told of arrivals and departures. A static channel has none of them.
 */
struct dtm_allocator {
	void (*start)(struct dtm_channel *ch, u64 now);
	u64 (*next)(const struct dtm_channel *ch);
	void (*fire)(struct dtm_channel *ch, u64 now, u64 idle_until);
	void (*backlog)(struct dtm_channel *ch, u64 now);
};

static inline void dtm_plan(struct dtm_channel *ch);

/* Provided by whoever includes this: the channel's slots have just changed from `from`, or its
 * allocator has just started.
 */
static void dtm_channel_changed(const struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
				enum tc_dtm_cause cause);

/* Slots */

static inline u32 dtm_guaranteed(const struct dtm_config *config)
{
	return max(config->owned, config->min_slots);
}

static inline u32 dtm_borrowed(const struct dtm_channel *ch)
{
	return ch->config->pool && ch->slots > ch->config->owned ?
	       ch->slots - ch->config->owned : 0;
}

static inline void dtm_count_slots(struct dtm_channel *ch, u64 now)
{
	u32 rest;
	u64 seconds = div_u64_rem(now - ch->counted_ns, NSEC_PER_SEC, &rest);
	u64 ns = ch->slot_ns + (u64)rest * ch->slots;

	ch->slot_seconds += seconds * ch->slots + div_u64_rem(ns, NSEC_PER_SEC, &rest);
	ch->slot_ns = rest;
	ch->counted_ns = now;
}

static inline void dtm_set_slots(struct dtm_channel *ch, u64 now, u32 slots, u32 wanted,
				 enum tc_dtm_cause cause)
{
	u32 from = ch->slots;

	if (slots == from)
		return;
	dtm_count_slots(ch, now);
	dtm_service_advance(&ch->service, now, from);
	ch->pool->used += slots - from;
	ch->slots = slots;
	ch->changed_ns = now;
	if (slots > from)
		ch->grows++;
	else
		ch->shrinks++;
	dtm_plan(ch);
	dtm_channel_changed(ch, now, from, wanted, cause);
}

/* Take up to `slots` back from those who hold more than they are guaranteed. */
static inline u32 dtm_reclaim(struct dtm_channel *owner, u64 now, u32 slots)
{
	struct dtm_channel *ch;
	u32 got = 0;

	for (ch = owner->pool->first; ch && got < slots; ch = ch->next) {
		u32 keeps = dtm_guaranteed(ch->config), taken;

		if (ch == owner || ch->slots <= keeps)
			continue;
		taken = min(ch->slots - keeps, slots - got);
		ch->reclaimed += taken;
		got += taken;
		dtm_set_slots(ch, now, ch->slots - taken, ch->target, DTM_CAUSE_RECLAIMED);
	}
	return got;
}

/* Give the channel the slots it wants, or what the pool has of them. */
static inline void dtm_reallocate(struct dtm_channel *ch, u64 now, u32 want,
				  enum tc_dtm_cause cause)
{
	u32 granted = want;

	if (want > ch->slots) {
		u32 most = ch->slots + ch->pool->size - ch->pool->used;
		u32 own = min(want, dtm_guaranteed(ch->config));

		if (own > most)
			most += dtm_reclaim(ch, now, own - most);
		granted = min(want, most);
	}
	if (granted < want) {
		ch->denied++;
		cause = DTM_CAUSE_DENIED;
	}
	dtm_set_slots(ch, now, granted, want, cause);
}

/* The earliest time of the next decision. A link changes at most once a cycle. */
static inline u64 dtm_may_decide(const struct dtm_channel *ch)
{
	if (ch->request_ns != DTM_NEVER)
		return DTM_NEVER;
	return ch->decided_ns + max_t(u64, ch->config->change_ns, DTM_CYCLE_NS);
}

static inline void dtm_decide(struct dtm_channel *ch, u64 now, u32 want)
{
	want = clamp(want, ch->config->min_slots, ch->config->max_slots);
	ch->target = want;
	if (want == ch->slots)
		return;
	ch->decided_ns = now;
	if (ch->config->signalling_ns) {
		ch->request_ns = now + ch->config->signalling_ns;
		ch->requested = want;
	} else {
		dtm_reallocate(ch, now, want, DTM_CAUSE_ALLOCATOR);
	}
}

/* Allocator "rate": see dtm_rate.h */

static inline void dtm_start_rate(struct dtm_channel *ch, u64 now)
{
	ch->rate.estimate = ch->config->estimate;
	ch->rate.lower = ch->config->estimate;
	ch->rate.upper = ch->config->estimate;
	ch->sample_at = now + ch->config->sample_ns;
	ch->sample_bytes = 0;
}

static inline u64 dtm_next_rate(const struct dtm_channel *ch)
{
	return ch->sample_at;
}

static inline bool dtm_rate_wants_change(const struct dtm_channel *ch)
{
	return dtm_rate_is_outside(&ch->rate) || ch->target > ch->slots;
}

static inline void dtm_fire_rate(struct dtm_channel *ch, u64 now, u64 idle_until)
{
	const struct dtm_config *c = ch->config;
	u64 measured = dtm_rate_measure(ch->sample_bytes, c->sample_ns);
	u64 estimate = dtm_rate_step(ch->rate.estimate, measured, c->shift_up, c->shift_down);
	bool held = ch->dropped_ns != DTM_NEVER && now - ch->dropped_ns < c->hold_ns;
	bool moved = estimate != ch->rate.estimate;

	if (!(held && estimate < ch->rate.estimate))
		ch->rate.estimate = estimate;
	ch->sample_bytes = 0;
	ch->sample_at += c->sample_ns;
	ch->samples++;
	if (dtm_rate_wants_change(ch)) {
		u64 may_decide = dtm_may_decide(ch);

		if (now >= may_decide) {
			dtm_rate_centre(&ch->rate, c->corridor);
			dtm_decide(ch, now, dtm_rate_slots(ch->rate.estimate, c->margin,
							   c->corridor, c->rounding));
			return;
		}
		idle_until = min(idle_until, min(may_decide, ch->request_ns) - 1);
	}
	if (!measured && !moved && ch->sample_at <= idle_until) {
		/* Nothing came in and nothing moves: no sample changes anything before then. */
		u64 samples = div64_u64(idle_until - ch->sample_at, c->sample_ns) + 1;

		ch->samples += samples;
		ch->sample_at += samples * c->sample_ns;
	}
}

/* Allocator "buffer": backlog above or below a threshold for long enough */

static inline void dtm_backlog_buffer(struct dtm_channel *ch, u64 now)
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

static inline void dtm_start_buffer(struct dtm_channel *ch, u64 now)
{
	ch->above_ns = DTM_NEVER;
	ch->below_ns = DTM_NEVER;
	dtm_backlog_buffer(ch, now);
}

static inline u64 dtm_next_buffer(const struct dtm_channel *ch)
{
	u64 due = DTM_NEVER;

	if (ch->above_ns != DTM_NEVER && ch->slots < ch->config->max_slots)
		due = ch->above_ns + ch->config->rise_ns;
	else if (ch->below_ns != DTM_NEVER && ch->slots > ch->config->min_slots)
		due = ch->below_ns + ch->config->fall_ns;
	return max(due, dtm_may_decide(ch));
}

static inline void dtm_fire_buffer(struct dtm_channel *ch, u64 now, u64 idle_until)
{
	u32 step = ch->config->step;

	/* The next change takes as long on the far side of the threshold. */
	if (ch->above_ns != DTM_NEVER) {
		ch->above_ns = now;
		dtm_decide(ch, now, ch->slots + step);
	} else {
		ch->below_ns = now;
		dtm_decide(ch, now, ch->slots > step ? ch->slots - step : 1);
	}
}

/* Allocator "hysteresis": levels, each with a backlog to enter and one to leave */

static inline u32 dtm_wanted_level(const struct dtm_channel *ch)
{
	const struct dtm_config *c = ch->config;

	if (ch->level + 1 < c->n_levels && ch->bytes >= c->levels[ch->level].up_bytes)
		return ch->level + 1;
	if (ch->level && ch->bytes <= c->levels[ch->level].down_bytes)
		return ch->level - 1;
	return ch->level;
}

static inline void dtm_start_hysteresis(struct dtm_channel *ch, u64 now)
{
	const struct dtm_config *c = ch->config;

	ch->level = 0;
	while (ch->level + 1 < c->n_levels && c->levels[ch->level + 1].slots <= ch->slots)
		ch->level++;
}

static inline u64 dtm_next_hysteresis(const struct dtm_channel *ch)
{
	if (dtm_wanted_level(ch) == ch->level &&
	    ch->config->levels[ch->level].slots == ch->slots)
		return DTM_NEVER;
	return dtm_may_decide(ch);
}

static inline void dtm_fire_hysteresis(struct dtm_channel *ch, u64 now, u64 idle_until)
{
	ch->level = dtm_wanted_level(ch);
	dtm_decide(ch, now, ch->config->levels[ch->level].slots);
}

/* Allocator "trace": a list of times and slots, taken as it is */

static inline void dtm_schedule_step(struct dtm_channel *ch, u64 from)
{
	if (ch->step < ch->config->n_steps)
		ch->step_at = from + ch->config->steps[ch->step].after_us * (u64)NSEC_PER_USEC;
	else
		ch->step_at = DTM_NEVER;
}

static inline void dtm_start_trace(struct dtm_channel *ch, u64 now)
{
	ch->step = 0;
	dtm_schedule_step(ch, now);
}

static inline u64 dtm_next_trace(const struct dtm_channel *ch)
{
	return ch->step_at;
}

static inline void dtm_fire_trace(struct dtm_channel *ch, u64 now, u64 idle_until)
{
	ch->target = ch->config->steps[ch->step].slots;
	dtm_reallocate(ch, now, ch->target, DTM_CAUSE_ALLOCATOR);
	ch->step++;
	dtm_schedule_step(ch, now);
}

/* Hysteresis only looks when asked: `next` has the backlog in it. */
static inline void dtm_backlog_hysteresis(struct dtm_channel *ch, u64 now)
{
}

static const struct dtm_allocator dtm_allocators[] = {
	[DTM_STATIC]	 = {},
	[DTM_RATE]	 = { dtm_start_rate, dtm_next_rate, dtm_fire_rate },
	[DTM_BUFFER]	 = { dtm_start_buffer, dtm_next_buffer, dtm_fire_buffer,
			     dtm_backlog_buffer },
	[DTM_HYSTERESIS] = { dtm_start_hysteresis, dtm_next_hysteresis, dtm_fire_hysteresis,
			     dtm_backlog_hysteresis },
	[DTM_TRACE]	 = { dtm_start_trace, dtm_next_trace, dtm_fire_trace },
};

static inline const struct dtm_allocator *dtm_allocator(const struct dtm_channel *ch)
{
	return &dtm_allocators[ch->config->allocator];
}

/* Time */

/* Note when the next event is due, after anything that it depends on. */
static inline void dtm_plan(struct dtm_channel *ch)
{
	const struct dtm_allocator *allocator = dtm_allocator(ch);

	ch->due = ch->request_ns;
	if (allocator->next)
		ch->due = min(ch->due, allocator->next(ch));
}

/* When the channel's next event is due: not before what made it due. */
static inline u64 dtm_next(const struct dtm_channel *ch)
{
	return max(ch->pool->now, ch->due);
}

static inline void dtm_backlog_changed(struct dtm_channel *ch, u64 now)
{
	const struct dtm_allocator *allocator = dtm_allocator(ch);

	if (!allocator->backlog)
		return;
	allocator->backlog(ch, now);
	dtm_plan(ch);
}

static inline void dtm_fire(struct dtm_channel *ch, u64 now, u64 idle_until)
{
	if (ch->request_ns <= now) {
		ch->request_ns = DTM_NEVER;
		dtm_reallocate(ch, now, ch->requested, DTM_CAUSE_ALLOCATOR);
	} else {
		dtm_allocator(ch)->fire(ch, now, idle_until);
	}
	dtm_plan(ch);
}

/* Let all that is due until now happen, in order; of one instant, in the order of joining. */
static inline void dtm_pool_advance(struct dtm_pool *pool, u64 now)
{
	for (;;) {
		struct dtm_channel *ch, *earliest = NULL;
		u64 first = DTM_NEVER, second = DTM_NEVER;

		for (ch = pool->first; ch; ch = ch->next) {
			u64 due = dtm_next(ch);

			if (due < first) {
				second = first;
				first = due;
				earliest = ch;
			} else if (due < second) {
				second = due;
			}
		}
		if (first > now)
			break;
		pool->now = first;
		/* What others do at `second` may concern this one: not idle beyond it. */
		dtm_fire(earliest, first, second > now ? now : second - 1);
	}
	pool->now = max(pool->now, now);
}

/* Traffic; the caller has advanced the pool to now. */

static inline bool dtm_has_room(const struct dtm_channel *ch, u32 bytes)
{
	const struct dtm_config *c = ch->config;

	return ch->packets < c->limit &&
	       (!c->limit_bytes || (u64)ch->bytes + bytes <= c->limit_bytes);
}

static inline void dtm_drop(struct dtm_channel *ch, u64 now, u32 bytes)
{
	if (ch->config->count == DTM_COUNT_ARRIVALS)
		ch->sample_bytes += bytes;
	ch->dropped_ns = now;
}

static inline void dtm_arrive(struct dtm_channel *ch, u64 now, u32 bytes)
{
	if (!ch->packets)
		dtm_service_begin(&ch->service, now, bytes);
	ch->sample_bytes += bytes;
	ch->packets++;
	ch->bytes += bytes;
	ch->peak_packets = max(ch->peak_packets, ch->packets);
	ch->peak_bytes = max(ch->peak_bytes, ch->bytes);
	dtm_backlog_changed(ch, now);
}

/* When the packet in service has been sent, as things stand. */
static inline u64 dtm_sent_at(const struct dtm_channel *ch)
{
	return dtm_service_end(&ch->service, ch->slots, ch->config->framed);
}

/* The packet in service, of `bytes`, leaves; the one behind it has `next_bytes`. */
static inline void dtm_depart(struct dtm_channel *ch, u64 now, u32 bytes, u32 next_bytes)
{
	ch->packets--;
	ch->bytes -= bytes;
	if (ch->packets)
		dtm_service_follow(&ch->service, ch->slots, ch->config->framed, next_bytes);
	dtm_backlog_changed(ch, now);
}

/* The queue has been emptied. */
static inline void dtm_clear(struct dtm_channel *ch, u64 now)
{
	ch->packets = 0;
	ch->bytes = 0;
	ch->service.work = 0;
	dtm_backlog_changed(ch, now);
}

/* Membership and configuration */

/* Start an allocator afresh; counters and the transmission go on. */
static inline void dtm_restart(struct dtm_channel *ch, u64 now)
{
	ch->target = ch->slots;
	ch->decided_ns = now;
	ch->request_ns = DTM_NEVER;
	ch->dropped_ns = DTM_NEVER;
	ch->sample_at = DTM_NEVER;
	if (dtm_allocator(ch)->start)
		dtm_allocator(ch)->start(ch, now);
	dtm_plan(ch);
	dtm_channel_changed(ch, now, ch->slots, ch->target, DTM_CAUSE_START);
}

/* Whether a pool can guarantee `guaranteed` to one more channel. */
static inline bool dtm_pool_has_room(const struct dtm_pool *pool, u32 guaranteed)
{
	return guaranteed <= pool->size - pool->guaranteed;
}

/*
 * Become the last member of a pool that dtm_pool_has_room() for its guarantee; begin with
 * config->slots, or as many of them as the pool has.
 */
static inline void dtm_pool_join(struct dtm_pool *pool, struct dtm_channel *ch,
				 const struct dtm_config *config, u64 now)
{
	struct dtm_channel **end = &pool->first;

	while (*end)
		end = &(*end)->next;
	*end = ch;
	ch->config = config;
	ch->pool = pool;
	ch->created_ns = now;
	ch->counted_ns = now;
	pool->guaranteed += dtm_guaranteed(config);
	dtm_reallocate(ch, now, config->slots, DTM_CAUSE_OPERATOR);
	dtm_restart(ch, now);
	ch->target = config->slots;
	ch->grows = 0;
	ch->changed_ns = now;
}

static inline void dtm_pool_leave(struct dtm_channel *ch)
{
	struct dtm_channel **link = &ch->pool->first;

	while (*link != ch)
		link = &(*link)->next;
	*link = ch->next;
	ch->pool->used -= ch->slots;
	ch->pool->guaranteed -= dtm_guaranteed(ch->config);
}

/*
 * Go on with another configuration whose guarantee the pool has room for. The allocator starts
 * afresh if `restart`, else what it knows stays; `slots` of the operator, if not 0, come at once.
 */
static inline void dtm_reconfigure(struct dtm_channel *ch, const struct dtm_config *config,
				   u64 now, bool restart, u32 slots)
{
	bool resample = config->sample_ns != ch->config->sample_ns;
	u32 want = slots ?: clamp(ch->slots, config->min_slots, config->max_slots);

	ch->pool->guaranteed += dtm_guaranteed(config) - dtm_guaranteed(ch->config);
	ch->config = config;
	/* A request under way was made within other bounds. */
	ch->requested = clamp(ch->requested, config->min_slots, config->max_slots);
	ch->target = clamp(ch->target, config->min_slots, config->max_slots);
	if (want != ch->slots) {
		dtm_reallocate(ch, now, want, DTM_CAUSE_OPERATOR);
		ch->target = want;
		ch->decided_ns = now;
		ch->request_ns = DTM_NEVER;
	}
	if (restart) {
		dtm_restart(ch, now);
		ch->target = want;
	} else if (resample) {
		ch->sample_at = now + config->sample_ns;
		ch->sample_bytes = 0;
	}
	dtm_backlog_changed(ch, now);
	dtm_plan(ch);
}

#endif /* DTM_CHANNEL_H */
