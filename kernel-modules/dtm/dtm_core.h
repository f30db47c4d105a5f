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

/* Options of a channel; never modified once a channel has it. */
struct dtm_config {
	const struct dtm_allocator *calls;	/* dtm_find_allocator() of @allocator */
	u32 limit;			/* packets, the one in service included */
	u32 limit_bytes;		/* 0: none */
	s32 overhead;			/* bytes added to each frame */
	u8 allocator;			/* enum tc_dtm_allocator */
	u8 framed;			/* whole slots, departures at the ends of cycles */
	u8 rounding;			/* rate: enum tc_dtm_rounding */
	u8 count;			/* rate: enum tc_dtm_count */
	u8 pace;			/* rate: enum tc_dtm_pace */
	u8 hold;			/* rate: enum tc_dtm_hold */
	u64 change_ns;			/* least time between decisions */
	u64 signalling_ns;		/* from a decision to its effect */
	u64 sample_ns;			/* rate: interval of estimates */
	u64 hold_ns;			/* rate: how long a drop holds what @hold says */
	u64 estimate;			/* rate: bit/s at the start */
	u64 rise_ns;			/* buffer: backlog above @high for so long asks for more */
	u64 fall_ns;			/* buffer: backlog below @low for so long gives back */
	u32 initial;			/* slots at the start */
	u32 min_slots;			/* allocators go no lower */
	u32 max_slots;			/* and no higher */
	u32 owned;			/* slots of a pool that are the channel's own */
	u32 margin;			/* rate: thousandths of a slot */
	u32 corridor;			/* rate: thousandths of a slot */
	u32 high;			/* buffer: bytes */
	u32 low;			/* buffer: bytes */
	u32 step;			/* buffer: slots per change */
	u32 slot_rate;			/* bit/s of a slot */
	/* rate: bit/s, whose whole multiples count of an estimate; 0: all of it counts */
	u32 grain;
	u32 n_levels;			/* of @levels */
	u32 n_steps;			/* of @steps */
	u8 shift_up;			/* rate */
	u8 shift_down;			/* rate */
	char pool[TC_DTM_POOL_NAME];	/* name of the pool, empty without one */
	struct dtm_level levels[TC_DTM_MAX_LEVELS];	/* hysteresis */
	struct dtm_step steps[];	/* trace */
};

extern const struct dtm_config dtm_defaults;

/* The transmission of a channel. */
struct dtm_service {
	u64 done;	/* S at @since, slot-ns */
	u64 since;	/* time up to which @done counts, ns */
	u64 finish;	/* the last packet's tag, slot-ns; less than @done only if @waits */
	u64 cycle_done;	/* S at the beginning of the cycle in which @since lies, slot-ns */
	bool waits;	/* packets wait that have no tag yet */
};

/* An estimated rate of arrivals, bit/s. */
struct dtm_rate {
	u64 estimate;	/* the paper's "current" */
	u64 lower;	/* edge of the corridor */
	u64 upper;	/* the other */
};

/* The slots of a link, and the channels that share them. */
struct dtm_pool {
	/* members, the one with the earliest event first; room for as many as there are */
	struct dtm_channel **heap;
	struct list_head in_order;	/* members, in the order in which they joined */
	/* members that want more slots than they have, in the order in which they were denied */
	struct list_head waiting;
	u32 members;			/* how many there are */
	u32 joined;			/* how many ever joined */
	u64 now;			/* ns: everything due by then has happened */
	u32 size;			/* slots of the link */
	u32 used;			/* slots that members hold: never more than @size */
	u32 guaranteed;			/* sum over members: never more than @size */
	u32 work;			/* done under this hold of the lock */
	bool behind;			/* there is more to do than was done under the last hold */
};

/* A channel. */
struct dtm_channel {
	/* What each packet needs comes first: few cache lines. */
	const struct dtm_config *config;	/* its options */
	struct dtm_pool *pool;		/* what it shares */
	/* backlog: the packet in service is included, and what was sent but not yet taken */
	u32 packets;
	u32 slots;			/* held */
	u64 bytes;			/* backlog on the link */
	struct dtm_service service;	/* transmission */
	u64 sample_bytes;		/* rate: came in since the last */
	u64 peak_bytes;			/* highest backlog */
	u32 peak_packets;		/* highest backlog */

	u32 place;			/* in the heap of @pool */
	u64 due;			/* time of the next event, ns */
	u32 number;			/* order of joining */
	u32 target;			/* wanted */
	/*
	 * slots that it waits for: those wanted, or those that an owner took while a request is
	 * being signalled
	 */
	u32 awaited;
	struct list_head in_order;	/* in @pool */
	struct list_head waiting;	/* in @pool, or empty */
	u64 created_ns;			/* when it joined */
	u64 started_ns;			/* start of the allocator */
	u64 decided_ns;			/* last decision, or start of the allocator */
	/* when a signalled request takes effect; DTM_NEVER: none is on its way */
	u64 request_ns;

	struct dtm_rate rate;		/* rate: the estimate */
	u64 sample_at;			/* rate: when the next estimate is due */
	u64 dropped_ns;			/* rate: last drop; DTM_NEVER: none yet */
	u64 above_ns;			/* buffer: since when above `high`; DTM_NEVER: is not */
	u64 below_ns;			/* buffer: since when below `low`; DTM_NEVER: is not */
	u32 level;			/* hysteresis */
	u32 step;			/* trace: the next one */
	u64 step_at;			/* trace: when it is due; DTM_NEVER: done */

	u64 counted_ns;			/* up to when @slot_seconds and @slot_ns count */
	u64 slot_seconds;		/* slots held, integrated: whole slot-seconds */
	u64 slot_ns;			/* the rest, below 10^9 */
	u64 changed_ns;			/* last change of slots */
	u64 samples;			/* rate: estimates made */
	u64 grows;			/* changes to more slots */
	u64 shrinks;			/* changes to fewer */
	u64 denied;			/* requests that were not met in full */
	u64 reclaimed;			/* slots taken by their owners */
};

/**
 * struct dtm_allocator - what distinguishes allocators; a static channel has no functions
 * @start: begin afresh
 * @next: when @fire wants to be called, by the state alone; DTM_NEVER: not until that changes
 * @fire: act, and set a later time for the next call; before `until` only other members of the pool
 *	affect the channel
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

/* The functions of an enum tc_dtm_allocator. */
static inline const struct dtm_allocator *dtm_find_allocator(u8 allocator)
{
	static const struct dtm_allocator dtm_alloc_static;
	static const struct dtm_allocator * const allocators[] = {
		[TC_DTM_STATIC]		= &dtm_alloc_static,
		[TC_DTM_RATE]		= &dtm_alloc_rate,
		[TC_DTM_BUFFER]		= &dtm_alloc_buffer,
		[TC_DTM_HYSTERESIS]	= &dtm_alloc_hysteresis,
		[TC_DTM_TRACE]		= &dtm_alloc_trace,
	};

	return allocators[allocator];
}

/*
 * Provided by the user of these files: an event of a channel. Slots were `from`, and are ch->slots
 * now (or are no more: TC_DTM_CAUSE_LEFT).
 */
void dtm_channel_changed(struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
			 enum tc_dtm_cause cause);

/* For allocators */

/* The earliest time of the next decision; DTM_NEVER while one is being signalled. */
u64 dtm_may_decide(const struct dtm_channel *ch);
/* The next event of any member but the first, whose event is being handled. */
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
/* Packets of the given bytes have been queued. */
void dtm_arrive(struct dtm_channel *ch, u64 bytes);
/* A packet is the last of those to be sent: its tag. */
u64 dtm_serve(struct dtm_channel *ch, u64 now, u32 bytes);
/* When a packet has been sent, as things stand. */
u64 dtm_sent_at(const struct dtm_channel *ch, u64 tag);
/* The backlog from now on; whether packets wait that have no tag yet. */
void dtm_backlog(struct dtm_channel *ch, u64 now, u32 packets, u64 bytes, bool waits);
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
/* Whether packets wait that have no tag yet, from now on. */
void dtm_service_wait(struct dtm_service *s, u64 now, u32 slots, bool waits);
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
