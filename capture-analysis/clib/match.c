// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pairs equal keys of two captures a and b, first in first out.
 *
 * The rows of b wait in a queue per key. Each row of a, in order, meets the head of its queue:
 *
 *	head earlier by more than the horizon    the head has no partner; try the next one
 *	head later by more than the horizon      the row of a has no partner
 *	otherwise                                head and row are a pair
 *
 * A hash table finds the queues: linear probing, at most half full, multiply-shift with a random
 * odd factor (Dietzfelbinger et al., 1997): the author of a capture cannot make keys collide. It has
 * four bytes for a row of b: captures of a link have their packets in about the same order, so the
 * keys of rows that are compared are in the processor's cache.
 */
#include <stdlib.h>

#include "match.h"

#define AHEAD 8		/* rows from fetching a slot to using it: one or two cache misses */
#define NONE UINT32_MAX

/*
 * The rows of b with one key, linked in a circle: the slot has the last one, which is followed by the
 * first. If all rows of a queue are taken, the last one is followed by NONE.
 */
struct queues {
	const int64_t *keys;	/* of b, `stride` numbers apart */
	size_t stride;
	uint32_t *slots;	/* NONE without a queue */
	uint32_t *next;
	uint64_t factor;
	size_t mask;
	unsigned int shift;
};

static uint64_t word(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

size_t ca_match_rows(const struct ca_match_keys *keys, const struct ca_columns *columns,
		     const int64_t *time_ns, const uint8_t *kind, size_t count,
		     struct ca_match_row *rows)
{
	const uint64_t *factors = keys->factors;

	for (size_t at = 0; at < count; at++) {
		const size_t lane = 2 * (size_t)columns->flow[at] + columns->half[at];
		uint32_t last = columns->flags[at];
		uint64_t mixed = 0;

		if (keys->lanes) {
			if (lane >= keys->lane_count)
				return at;
			mixed = keys->lanes[lane];
		}
		if (keys->with_ip_id)
			last |= (uint32_t)columns->ip_id[at] << 16;
		mixed += last * factors[0];
		mixed += word(columns->seq[at], columns->ack[at]) * factors[1];
		mixed += word(columns->ts_value[at], columns->ts_echo[at]) * factors[2];
		mixed += word(columns->sack_left[at], columns->sack_right[at]) * factors[3];
		mixed += word(columns->payload_bytes[at], columns->window[at]) * factors[4];
		mixed ^= mixed >> 29;
		rows[at] = (struct ca_match_row){
			.time_ns = time_ns[at],
			.order = (int64_t)(keys->first_order + at),
			.key = (int64_t)(mixed * factors[5]),
			.flow = columns->flow[at],
			.seq = columns->seq[at],
			.ack = columns->ack[at],
			.payload_bytes = columns->payload_bytes[at],
			.frame_bytes = columns->frame_bytes[at],
			.flags = columns->flags[at],
			.half = columns->half[at],
			.kind = kind ? kind[at] : 0,
		};
	}
	return count;
}

static size_t slot_of(const struct queues *queues, int64_t key)
{
	return (size_t)((uint64_t)key * queues->factor >> queues->shift);
}

static int64_t key_of(const struct queues *queues, size_t row)
{
	return queues->keys[row * queues->stride];
}

static void fetch(const struct queues *queues, int64_t key)
{
	__builtin_prefetch(&queues->slots[slot_of(queues, key)], 1);
}

/* The slot of a key's queue, or an empty one for it. */
static uint32_t *find(const struct queues *queues, int64_t key)
{
	size_t at = slot_of(queues, key);

	while (queues->slots[at] != NONE && key_of(queues, queues->slots[at]) != key)
		at = (at + 1) & queues->mask;
	return &queues->slots[at];
}

static void append(struct queues *queues, uint32_t row)
{
	uint32_t *last = find(queues, key_of(queues, row));

	if (*last == NONE) {
		queues->next[row] = row;
	} else {
		queues->next[row] = queues->next[*last];
		queues->next[*last] = row;
	}
	*last = row;
}

/* The first row of a queue; NONE without one. */
static uint32_t head(const struct queues *queues, const uint32_t *last)
{
	return *last == NONE ? NONE : queues->next[*last];
}

static void take_head(struct queues *queues, const uint32_t *last)
{
	const uint32_t first = queues->next[*last];

	queues->next[*last] = first == *last ? NONE : queues->next[first];
}

/* Makes the queues of b, whose keys are `stride` numbers apart. */
static bool queues_new(struct queues *queues, const int64_t *keys, size_t stride, size_t rows,
		       uint64_t seed)
{
	size_t slots = 2;

	if (rows >= NONE)
		return false;
	queues->keys = keys;
	queues->stride = stride;
	queues->shift = 63;
	for (; slots < 2 * rows; slots *= 2)
		queues->shift--;
	queues->mask = slots - 1;
	queues->factor = seed | 1;
	queues->slots = malloc(slots * sizeof(*queues->slots));
	queues->next = malloc((rows + 1) * sizeof(*queues->next));
	if (!queues->slots || !queues->next)
		return false;
	for (size_t at = 0; at < slots; at++)
		queues->slots[at] = NONE;
	for (size_t at = 0; at < rows; at++) {
		if (at + AHEAD < rows)
			fetch(queues, key_of(queues, at + AHEAD));
		append(queues, (uint32_t)at);
	}
	return true;
}

static void queues_free(struct queues *queues)
{
	free(queues->slots);
	free(queues->next);
}

/* Difference modulo 2^64, as in numpy. */
static int64_t difference(int64_t later, int64_t earlier)
{
	return (int64_t)((uint64_t)later - (uint64_t)earlier);
}

/* Takes the partner of a row of a from its queue; NONE without one. */
static uint32_t take_partner(struct queues *queues, const struct ca_match_row *a,
			     const struct ca_match_row *b, int64_t horizon_ns)
{
	const uint32_t *last = find(queues, a->key);
	uint32_t first;

	while ((first = head(queues, last)) != NONE) {
		const int64_t delay_ns = difference(b[first].time_ns, a->time_ns);

		if (delay_ns > horizon_ns)
			return NONE;
		take_head(queues, last);
		if (delay_ns >= -horizon_ns)
			return first;
	}
	return NONE;
}

size_t ca_match_join(const struct ca_match_row *a, size_t a_count, const struct ca_match_row *b,
		     size_t b_count, int64_t horizon_ns, uint64_t seed, int64_t *a_rows,
		     int64_t *b_rows)
{
	const size_t stride = sizeof(*b) / sizeof(b->key);
	struct queues queues = { 0 };
	size_t pairs = CA_MATCH_FAILED;

	if (!queues_new(&queues, b_count ? &b->key : NULL, stride, b_count, seed))
		goto out;
	pairs = 0;
	for (size_t at = 0; at < a_count; at++) {
		uint32_t partner;

		if (at + AHEAD < a_count)
			fetch(&queues, a[at + AHEAD].key);
		partner = take_partner(&queues, &a[at], b, horizon_ns);
		if (partner == NONE)
			continue;
		a_rows[pairs] = (int64_t)at;
		b_rows[pairs++] = partner;
	}
out:
	queues_free(&queues);
	return pairs;
}

bool ca_match_partners(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count,
		       uint64_t seed, int64_t *partners)
{
	struct queues queues = { 0 };
	const bool made = queues_new(&queues, b, 1, b_count, seed);

	for (size_t at = 0; made && at < a_count; at++) {
		const uint32_t *last;
		uint32_t first;

		if (at + AHEAD < a_count)
			fetch(&queues, a[at + AHEAD]);
		last = find(&queues, a[at]);
		first = head(&queues, last);
		partners[at] = first == NONE ? -1 : (int64_t)first;
		if (first != NONE)
			take_head(&queues, last);
	}
	queues_free(&queues);
	return made;
}
