/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A DTM channel: how many slots it has, who decides that, and what it shares with others.
 *
 * Time moves by events. Each channel knows the time of its next one: an estimate, a threshold
 * crossed for long enough, a step of a trace, a signalled request that takes effect.
 * dtm_pool_advance() lets the events of all channels of a pool happen in the order of their
 * times, up to now; it is called before anything else is done to any of them. So it does not
 * matter how late an event is noticed: an idle channel needs no timer, and every slot is counted
 * to the nanosecond.
 *
 *	arrival, departure, statistics, change
 *		 |
 *		 v				      allocator (one of five)
 *	dtm_pool_advance(now): earliest event --> fire --> dtm_decide(want)
 *								|  signalling delay
 *								v
 *	transmission  <-- dtm_set_slots() <-- dtm_request(): what the pool grants
 *
 * The pool. A link has `size` slots; channels hold `used` of them. A channel may use slots that
 * nobody holds (others' included: they are lent), and an owner gets its own back at once, taken
 * from those who hold more than they are guaranteed, in the order in which they joined. What is
 * guaranteed to a channel is what it owns, or its minimum if that is more, and no channel joins
 * if the guarantees would exceed the link. A channel that does not get all that it wants waits in
 * a queue: slots that become free go to the first who waits, at once. So slots are free only
 * while nobody waits. A channel without a pool has one of its own.
 *
 * What a pool costs. Events are in a heap: a packet looks at the earliest, and takes time for it
 * only if it is due. Catching up after a pause takes O(members log members) and a constant time
 * for each change of slots: an allocator must not ask for what it was just denied, and "rate" takes
 * all samples until its next decision in one step (dtm_alloc_rate.c). The lock is held for
 * DTM_MOST_WORK of it at a time, and softirqs stay off for DTM_MOST_HOLDS of those (dtm_link.h): a
 * packet that finds its pool further behind arrives when that has caught up (dtm_qdisc.c).
 *
 * Pure: the caller holds the pool's lock, provides the memory of the heap and
 * dtm_channel_changed(). The same files are compiled for sch_dtm and a test in user space.
 */
#ifndef DTM_CORE_H
#define DTM_CORE_H

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/pkt_dtm.h>
#include <linux/types.h>

#define DTM_NEVER	((u64)-1)
/*
 * Events, samples and members looked at under one hold of a pool's lock. Each takes some 10 ns; the
 * last event may take as many more as the pool has members.
 */
#define DTM_MOST_WORK	4096

struct dtm_level {
	u32 slots;
	u32 up_bytes;
	u32 down_bytes;
};

struct dtm_step {
	u64 after_ns;		/* since the step before */
	u32 slots;
};

/**
 * struct dtm_config - options of a channel; never modified once a channel has it
 * @limit: packets, the one in service included
 * @limit_bytes: 0: none
 * @overhead: bytes added to each frame
 * @allocator: enum tc_dtm_allocator
 * @framed: whole slots, departures at the ends of cycles
 * @rounding: rate: enum tc_dtm_rounding
 * @count: rate: enum tc_dtm_count
 * @pace: rate: enum tc_dtm_pace
 * @hold: rate: enum tc_dtm_hold
 * @change_ns: least time between decisions
 * @signalling_ns: from a decision to its effect
 * @sample_ns: rate: interval of estimates
 * @hold_ns: rate: how long a drop holds what @hold says
 * @estimate: rate: bit/s at the start
 * @rise_ns: buffer: backlog above @high for so long asks for more
 * @fall_ns: buffer: backlog below @low for so long gives back
 * @initial: slots at the start
 * @min_slots: allocators go no lower
 * @max_slots: and no higher
 * @owned: slots of a pool that are the channel's own
 * @margin: rate: thousandths of a slot
 * @corridor: rate: thousandths of a slot
 * @high: buffer: bytes
 * @low: buffer: bytes
 * @step: buffer: slots per change
 * @slot_rate: bit/s of a slot
 * @grain: rate: bit/s, whose whole multiples count of an estimate; 0: all of it counts
 * @n_levels: of @levels
 * @n_steps: of @steps
 * @shift_up: rate
 * @shift_down: rate
 * @pool: name of the pool, empty without one
 * @levels: hysteresis
 * @steps: trace
 */
struct dtm_config {
	u32 limit;
	u32 limit_bytes;
	s32 overhead;
	u8 allocator;
	u8 framed;
	u8 rounding;
	u8 count;
	u8 pace;
	u8 hold;
	u64 change_ns;
	u64 signalling_ns;
	u64 sample_ns;
	u64 hold_ns;
	u64 estimate;
	u64 rise_ns;
	u64 fall_ns;
	u32 initial;
	u32 min_slots;
	u32 max_slots;
	u32 owned;
	u32 margin;
	u32 corridor;
	u32 high;
	u32 low;
	u32 step;
	u32 slot_rate;
	u32 grain;
	u32 n_levels;
	u32 n_steps;
	u8 shift_up;
	u8 shift_down;
	char pool[TC_DTM_POOL_NAME];
	struct dtm_level levels[TC_DTM_MAX_LEVELS];
	struct dtm_step steps[];
};

extern const struct dtm_config dtm_defaults;

/**
 * struct dtm_service - the transmission of a channel
 * @done: S at @since, slot-ns
 * @since: time up to which @done counts, ns
 * @finish: tag of the last packet that arrived, slot-ns; never less than @done
 * @cycle_done: S at the beginning of the cycle in which @since lies, slot-ns
 */
struct dtm_service {
	u64 done;
	u64 since;
	u64 finish;
	u64 cycle_done;
};

/**
 * struct dtm_rate - an estimated rate of arrivals, bit/s
 * @estimate: the paper's "current"
 * @lower: edge of the corridor
 * @upper: the other
 */
struct dtm_rate {
	u64 estimate;
	u64 lower;
	u64 upper;
};

/**
 * struct dtm_pool - the slots of a link, and the channels that share them
 * @heap: members, the one with the earliest event first; room for as many as there are
 * @in_order: members, in the order in which they joined
 * @waiting: members that want more slots than they have, in the order in which they were denied
 * @members: how many there are
 * @joined: how many ever joined
 * @now: ns: everything due by then has happened
 * @size: slots of the link
 * @used: slots that members hold: never more than @size
 * @guaranteed: sum over members: never more than @size
 * @work: done under this hold of the lock
 * @behind: there is more to do than was done under the last hold
 */
struct dtm_pool {
	struct dtm_channel **heap;
	struct list_head in_order;
	struct list_head waiting;
	u32 members;
	u32 joined;
	u64 now;
	u32 size;
	u32 used;
	u32 guaranteed;
	u32 work;
	bool behind;
};

/**
 * struct dtm_channel - a channel
 * @config: its options
 * @pool: what it shares
 * @packets: backlog: the packet in service is included, and what was sent but not yet taken
 * @slots: held
 * @bytes: backlog on the link
 * @service: transmission
 * @sample_bytes: rate: came in since the last
 * @peak_bytes: highest backlog
 * @peak_packets: highest backlog
 * @place: in the heap of @pool
 * @due: time of the next event, ns
 * @number: order of joining
 * @target: wanted
 * @awaited: slots that it waits for: those wanted, or those that an owner took while a request is
 *	being signalled
 * @in_order: in @pool
 * @waiting: in @pool, or empty
 * @created_ns: when it joined
 * @started_ns: start of the allocator
 * @decided_ns: last decision, or start of the allocator
 * @request_ns: when a signalled request takes effect; DTM_NEVER: none is on its way
 * @rate: rate: the estimate
 * @sample_at: rate: when the next estimate is due
 * @dropped_ns: rate: last drop; DTM_NEVER: none yet
 * @above_ns: buffer: since when above `high`; DTM_NEVER: is not
 * @below_ns: buffer: since when below `low`; DTM_NEVER: is not
 * @level: hysteresis
 * @step: trace: the next one
 * @step_at: trace: when it is due; DTM_NEVER: done
 * @counted_ns: up to when @slot_seconds and @slot_ns count
 * @slot_seconds: slots held, integrated: whole slot-seconds
 * @slot_ns: the rest, below 10^9
 * @changed_ns: last change of slots
 * @samples: rate: estimates made
 * @grows: changes to more slots
 * @shrinks: changes to fewer
 * @denied: requests that were not met in full
 * @reclaimed: slots taken by their owners
 */
struct dtm_channel {
	/* What each packet needs comes first: few cache lines. */
	const struct dtm_config *config;
	struct dtm_pool *pool;
	u32 packets;
	u32 slots;
	u64 bytes;
	struct dtm_service service;
	u64 sample_bytes;
	u64 peak_bytes;
	u32 peak_packets;

	u32 place;
	u64 due;
	u32 number;
	u32 target;
	u32 awaited;
	struct list_head in_order;
	struct list_head waiting;
	u64 created_ns;
	u64 started_ns;
	u64 decided_ns;
	u64 request_ns;

	struct dtm_rate rate;
	u64 sample_at;
	u64 dropped_ns;
	u64 above_ns;
	u64 below_ns;
	u32 level;
	u32 step;
	u64 step_at;

	u64 counted_ns;
	u64 slot_seconds;
	u64 slot_ns;
	u64 changed_ns;
	u64 samples;
	u64 grows;
	u64 shrinks;
	u64 denied;
	u64 reclaimed;
};

/**
 * struct dtm_allocator - what distinguishes allocators; a static channel has none of it
 * @start: begin afresh
 * @next: when @fire wants to be called, from the state alone; DTM_NEVER: not before that changes
 * @fire: act, and move the time of the next call on; nothing happens to the channel before `until`
 *	but what other members of the pool do
 * @backlog: the backlog has changed; channels whose allocator has none need not be planned then
 * @drop: a packet found no room
 */
struct dtm_allocator {
	void (*start)(struct dtm_channel *ch, u64 now);
	u64 (*next)(const struct dtm_channel *ch);
	void (*fire)(struct dtm_channel *ch, u64 now, u64 until);
	void (*backlog)(struct dtm_channel *ch, u64 now);
	void (*drop)(struct dtm_channel *ch, u64 now, u32 bytes);
};

extern const struct dtm_allocator dtm_alloc_rate;
extern const struct dtm_allocator dtm_alloc_buffer;
extern const struct dtm_allocator dtm_alloc_hysteresis;
extern const struct dtm_allocator dtm_alloc_trace;

/*
 * Provided by the user of these files: an event of a channel. Slots were `from`, and are ch->slots
 * now (or are no more: TC_DTM_CAUSE_LEFT).
 */
void dtm_channel_changed(struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
			 enum tc_dtm_cause cause);

/* For allocators */

/* The earliest time of the next decision; DTM_NEVER while one is being signalled. */
u64 dtm_may_decide(const struct dtm_channel *ch);
/* Until when nothing happens to other members than the first, whose event is being handled. */
u64 dtm_others_due(const struct dtm_pool *pool);
/* The number nearest to `want` that the channel may have. */
u32 dtm_within_bounds(const struct dtm_channel *ch, u32 want);
/* Decide that the channel should have `want` slots. */
void dtm_decide(struct dtm_channel *ch, u64 now, u32 want);
/* Take what the pool has of `want` slots, now; wait for the rest. */
void dtm_request(struct dtm_channel *ch, u64 now, u32 want, enum tc_dtm_cause cause);

/* Time */

/*
 * Let what is due until now happen, or DTM_MOST_WORK of it. False: there is more to do, and the
 * caller lets others have the lock before it goes on.
 */
bool dtm_pool_advance(struct dtm_pool *pool, u64 now);

/* When a channel with packets must be looked at, because slots may change: not before pool->now. */
u64 dtm_next(const struct dtm_channel *ch);

/* Traffic; the caller has advanced the pool to now. */

bool dtm_has_room(const struct dtm_channel *ch, u32 bytes);
/* Whether the allocator wants to know of a drop. */
bool dtm_notes_drops(const struct dtm_channel *ch);
void dtm_drop(struct dtm_channel *ch, u64 now, u32 bytes);
/* The packet's tag. */
u64 dtm_arrive(struct dtm_channel *ch, u64 now, u32 bytes);
/* When a packet has been sent, as things stand. */
u64 dtm_sent_at(const struct dtm_channel *ch, u64 tag);
void dtm_depart(struct dtm_channel *ch, u64 now, u32 bytes);
/* The queue has been emptied. */
void dtm_clear(struct dtm_channel *ch, u64 now);

/* Statistics */

void dtm_count_slots(struct dtm_channel *ch, u64 now);
u32 dtm_borrowed(const struct dtm_channel *ch);

/* Transmission: dtm_service.c */

/* Account for the slots held until now; to be called before their number changes. */
void dtm_service_advance(struct dtm_service *s, u64 now, u32 slots);
/* A packet arrives: its finish tag. */
u64 dtm_service_arrive(struct dtm_service *s, u64 now, u32 slots, u32 bytes, bool framed,
		       u32 slot_rate);
/*
 * When a packet has been sent, if the number of slots stays as it is; for those sent by `since`, a
 * time not after it.
 */
u64 dtm_service_end(const struct dtm_service *s, u64 tag, u32 slots, bool framed);
/* All packets are gone. */
void dtm_service_clear(struct dtm_service *s, u64 now, u32 slots);

/* Membership and configuration */

static inline u32 dtm_guaranteed(const struct dtm_config *config)
{
	return max(config->owned, config->min_slots);
}

/* An empty pool. */
void dtm_pool_init(struct dtm_pool *pool, u32 size);
/* Whether a pool can guarantee `guaranteed` more. */
bool dtm_pool_has_room(const struct dtm_pool *pool, u32 guaranteed);
/*
 * Become a member of a pool that has room for the channel's guarantee, and a heap with a free
 * place; begin with config->initial slots, or as many of them as the pool has.
 */
void dtm_pool_join(struct dtm_pool *pool, struct dtm_channel *ch, const struct dtm_config *config,
		   u64 now);
void dtm_pool_leave(struct dtm_channel *ch, u64 now);
/*
 * Go on with other options, whose guarantee the pool has room for. The allocator starts afresh if
 * `restart`, else what it knows stays; `slots` of the operator, if not 0, come at once, and cancel
 * what was on its way.
 */
void dtm_reconfigure(struct dtm_channel *ch, const struct dtm_config *config, u64 now,
		     bool restart, u32 slots);

#endif /* DTM_CORE_H */
