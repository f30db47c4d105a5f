// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channels of one link, driven from a test in user space as sch_dtm drives them from the
 * kernel: whatever is about to happen, the pool is advanced first; a channel with packets is
 * looked at when its transmission ends and when its next event is due, or later.
 *
 * Compiled together with dtm_core.c, dtm_service.c and dtm_alloc_*.c.
 */
#include <linux/time64.h>
#include <stdlib.h>

#include "dtm_core.h"

#define CHANNELS	1024
#define QUEUED		4096

struct model_event {
	u64 time;
	u32 channel, from, to, wanted, cause;
};

static struct dtm_pool pool;
static struct dtm_channel *heap[CHANNELS];
static struct dtm_channel channels[CHANNELS];
static struct dtm_config *configs[CHANNELS];
static struct packet {
	u64 tag;
	u32 bytes;
} (*queues)[QUEUED];
static u32 head[CHANNELS];
static bool joined[CHANNELS];
static u64 signalled_ns[CHANNELS];	/* when the request that was last seen takes effect */
static u32 held[CHANNELS];		/* slots when it was decided */
static bool early;			/* slots came while a request for them was signalled */
static u64 work;		/* done since the link was created */
static u32 longest_hold;	/* of the lock, in what is done */
static u32 places;		/* channels above this number never joined */
static void (*on_event)(const struct model_event *event);
static void (*on_departure)(u32 channel, u64 time, u32 bytes);

static void note_signalling(const struct dtm_channel *ch, u32 from)
{
	u32 i = ch - channels;

	if (ch->request_ns == DTM_NEVER)
		return;
	if (ch->request_ns != signalled_ns[i]) {
		signalled_ns[i] = ch->request_ns;
		held[i] = from;
	}
	early |= ch->slots > held[i];
}

void dtm_channel_changed(struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
			 enum tc_dtm_cause cause)
{
	struct model_event event = { now, ch - channels, from, ch->slots, wanted, cause };

	note_signalling(ch, from);
	on_event(&event);
}

void model_reset(u32 slots, void (*event)(const struct model_event *),
		 void (*departure)(u32, u64, u32))
{
	dtm_pool_init(&pool, slots);
	pool.heap = heap;
	on_event = event;
	on_departure = departure;
	if (!queues)
		queues = malloc(CHANNELS * sizeof(*queues));
	places = 0;
	early = false;
	work = 0;
	longest_hold = 0;
	memset(signalled_ns, 0, sizeof(signalled_ns));
	memset(joined, 0, sizeof(joined));
}

static struct packet *first_packet(u32 i)
{
	return &queues[i][head[i]];
}

/* Advance the pool in as many holds of the lock as it takes. */
static void advance(u64 now)
{
	bool done;

	do {
		done = dtm_pool_advance(&pool, now);
		longest_hold = max(longest_hold, pool.work);
		work += pool.work;
	} while (!done);
}

/* Look at all channels: packets that have been sent leave. */
void model_poll(u64 now)
{
	advance(now);
	for (u32 i = 0; i < places; i++) {
		struct dtm_channel *ch = &channels[i];

		while (joined[i] && ch->packets && dtm_sent_at(ch, first_packet(i)->tag) <= now) {
			u32 bytes = first_packet(i)->bytes;

			head[i] = (head[i] + 1) % QUEUED;
			dtm_backlog(ch, now, ch->packets - 1, ch->bytes - bytes, false);
			on_departure(i, now, bytes);
		}
	}
}

/* Let time pass until now, packets leaving when they are sent. */
void model_advance(u64 now)
{
	for (;;) {
		u64 wake = DTM_NEVER;

		for (u32 i = 0; i < places; i++)
			if (joined[i] && channels[i].packets)
				wake = min(wake, min(dtm_sent_at(&channels[i],
								 first_packet(i)->tag),
						     dtm_next(&channels[i])));
		if (wake > now)
			break;
		model_poll(wake);
	}
	advance(now);
}

static struct dtm_config *copy_config(const struct dtm_config *config)
{
	size_t size = sizeof(*config) + config->n_steps * sizeof(config->steps[0]);
	struct dtm_config *copy = malloc(size);

	memcpy(copy, config, size);
	copy->calls = dtm_find_allocator(copy->allocator);
	return copy;
}

bool model_join(u32 i, const struct dtm_config *config, u64 now)
{
	advance(now);
	if (!dtm_pool_has_room(&pool, dtm_guaranteed(config)))
		return false;
	free(configs[i]);
	configs[i] = copy_config(config);
	channels[i] = (struct dtm_channel) { 0 };
	head[i] = 0;
	joined[i] = true;
	places = max(places, i + 1);
	dtm_pool_join(&pool, &channels[i], configs[i], now);
	/* The work done counts from just below its overflow, which changes nothing. */
	channels[i].service.done = -1000000ULL;
	channels[i].service.finish = -1000000ULL;
	channels[i].service.cycle_done = -1000000ULL;
	return true;
}

void model_leave(u32 i, u64 now)
{
	advance(now);
	dtm_pool_leave(&channels[i], now);
	joined[i] = false;
}

/* The caller has let time pass until now. */
bool model_arrive(u32 i, u64 now, u32 bytes)
{
	struct dtm_channel *ch = &channels[i];
	struct packet *packet = &queues[i][(head[i] + ch->packets) % QUEUED];

	advance(now);
	if (!dtm_has_room(ch, bytes) || ch->packets == QUEUED) {
		if (dtm_notes_drops(ch))
			dtm_drop(ch, now, bytes);
		return false;
	}
	*packet = (struct packet) { dtm_serve(ch, now, bytes), bytes };
	dtm_arrive(ch, bytes);
	dtm_backlog(ch, now, ch->packets + 1, ch->bytes + bytes, false);
	return true;
}

/* Change options, as the operator does; `slots`: from now on, 0 if not given. */
bool model_reconfigure(u32 i, const struct dtm_config *config, u64 now, bool restart, u32 slots)
{
	u32 guaranteed = dtm_guaranteed(config), before = dtm_guaranteed(configs[i]);
	struct dtm_config *copy;

	advance(now);
	if (guaranteed > before && !dtm_pool_has_room(&pool, guaranteed - before))
		return false;
	copy = copy_config(config);
	dtm_reconfigure(&channels[i], copy, now, restart, slots);
	free(configs[i]);
	configs[i] = copy;
	return true;
}

void model_set_slots(u32 i, u64 now, u32 slots)
{
	advance(now);
	dtm_reconfigure(&channels[i], configs[i], now, false, slots);
}

/*
 * The heap holds, each member is planned, and only those wait who want more than they have, or had
 * while a request is being signalled.
 */
bool model_is_consistent(void)
{
	struct dtm_channel *ch;
	u32 members = 0, used = 0, guaranteed = 0;

	list_for_each_entry(ch, &pool.in_order, in_order) {
		u32 up = (ch->place - 1) / 2;

		if (pool.heap[ch->place] != ch || (ch->place && pool.heap[up]->due > ch->due) ||
		    ch->due < pool.now)
			return false;
		if (!list_empty(&ch->waiting) && (ch->awaited <= ch->slots ||
						  ch->awaited > ch->target ||
						  pool.used < pool.size))
			return false;
		if (ch->request_ns == DTM_NEVER &&
		    ch->target != (list_empty(&ch->waiting) ? ch->slots : ch->awaited))
			return false;
		members++;
		used += ch->slots;
		guaranteed += dtm_guaranteed(ch->config);
	}
	/* The last event may take slots from each member and give slots to each. */
	return !early && longest_hold < DTM_MOST_WORK + 3 * (places + 1) &&
	       members == pool.members && used == pool.used && used <= pool.size &&
	       guaranteed == pool.guaranteed && guaranteed <= pool.size;
}

struct model_state {
	u64 samples, denied, estimate;
	u64 work;	/* events, and samples taken one by one, since the link was made */
	u32 slots, target, used;
};

void model_look(u32 i, struct model_state *state)
{
	const struct dtm_channel *ch = &channels[i];

	*state = (struct model_state) {
		ch->samples, ch->denied, ch->rate.estimate, work, ch->slots, ch->target, pool.used,
	};
}

/* Slot-nanoseconds held since the channel joined. */
u64 model_slot_ns(u32 i, u64 now)
{
	advance(now);
	dtm_count_slots(&channels[i], now);
	return channels[i].slot_seconds * NSEC_PER_SEC + channels[i].slot_ns;
}
