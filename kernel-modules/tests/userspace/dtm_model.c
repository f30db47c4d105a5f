// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channels of one link, driven from a test in user space as sch_dtm drives them from the
 * kernel: whatever is about to happen, the pool is advanced first; a channel with packets is
 * looked at when its transmission ends and when its next event is due.
 *
 *	cc -shared -fPIC -I kernel-modules/tests/userspace -I kernel-modules -o model.so dtm_model.c
 */
#include <linux/types.h>

#include "dtm_channel.h"

#define CHANNELS	8
#define QUEUED		4096

struct model_event {
	u64 time;
	u32 channel, from, to, wanted, cause;
};

static struct dtm_pool pool;
static struct dtm_channel channels[CHANNELS];
static struct dtm_config configs[CHANNELS];
static u32 sizes[CHANNELS][QUEUED], head[CHANNELS];
static bool joined[CHANNELS];
static void (*on_event)(const struct model_event *event);
static void (*on_departure)(u32 channel, u64 time, u32 bytes);

static void dtm_channel_changed(const struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
				enum tc_dtm_cause cause)
{
	struct model_event event = { now, ch - channels, from, ch->slots, wanted, cause };

	on_event(&event);
}

void model_reset(u32 slots, void (*event)(const struct model_event *),
		 void (*departure)(u32, u64, u32))
{
	pool = (struct dtm_pool) { .size = slots };
	on_event = event;
	on_departure = departure;
	for (u32 i = 0; i < CHANNELS; i++) {
		channels[i] = (struct dtm_channel) { 0 };
		head[i] = 0;
		joined[i] = false;
	}
}

/* Let time pass until now, packets leaving when they are sent. */
void model_advance(u64 now)
{
	for (;;) {
		u64 wake = DTM_NEVER;

		for (u32 i = 0; i < CHANNELS; i++)
			if (joined[i] && channels[i].packets)
				wake = min(wake, min(dtm_sent_at(&channels[i]),
						     dtm_next(&channels[i])));
		if (wake > now)
			break;
		dtm_pool_advance(&pool, wake);
		for (u32 i = 0; i < CHANNELS; i++) {
			struct dtm_channel *ch = &channels[i];

			while (joined[i] && ch->packets && dtm_sent_at(ch) <= wake) {
				u32 bytes = sizes[i][head[i]];

				head[i] = (head[i] + 1) % QUEUED;
				dtm_depart(ch, wake, bytes, sizes[i][head[i]]);
				on_departure(i, wake, bytes);
			}
		}
	}
	dtm_pool_advance(&pool, now);
}

bool model_join(u32 i, const struct dtm_config *config, u64 now)
{
	model_advance(now);
	if (!dtm_pool_has_room(&pool, dtm_guaranteed(config)))
		return false;
	channels[i] = (struct dtm_channel) { 0 };
	configs[i] = *config;
	head[i] = 0;
	joined[i] = true;
	dtm_pool_join(&pool, &channels[i], &configs[i], now);
	return true;
}

void model_leave(u32 i, u64 now)
{
	model_advance(now);
	dtm_pool_leave(&channels[i]);
	joined[i] = false;
}

bool model_arrive(u32 i, u64 now, u32 bytes)
{
	struct dtm_channel *ch = &channels[i];

	model_advance(now);
	if (!dtm_has_room(ch, bytes) || ch->packets == QUEUED) {
		dtm_drop(ch, now, bytes);
		return false;
	}
	sizes[i][(head[i] + ch->packets) % QUEUED] = bytes;
	dtm_arrive(ch, now, bytes);
	return true;
}

/* The operator sets the number of slots. */
void model_set_slots(u32 i, u64 now, u32 slots)
{
	model_advance(now);
	dtm_reconfigure(&channels[i], &configs[i], now, false, slots);
}

u32 model_slots(u32 i)
{
	return channels[i].slots;
}

u32 model_used(void)
{
	return pool.used;
}

u32 model_guaranteed(void)
{
	return pool.guaranteed;
}

u64 model_samples(u32 i)
{
	return channels[i].samples;
}

u64 model_denied(u32 i)
{
	return channels[i].denied;
}

/* Slot-nanoseconds held since the channel joined. */
u64 model_slot_ns(u32 i, u64 now)
{
	model_advance(now);
	dtm_count_slots(&channels[i], now);
	return channels[i].slot_seconds * NSEC_PER_SEC + channels[i].slot_ns;
}
