// SPDX-License-Identifier: GPL-2.0-only
/*
 * A histogram of many lanes whose bins are mostly empty: a hash table from key to bin.
 *
 *	key = lane << 13 | bin
 *	bin = value                                     for values below 256
 *	    = 128 shift + (value >> shift)              for others: the highest eight bits, and the
 *	                                                number of bits below them, shift > 0
 *
 * Linear probing, at most three quarters full, multiply-shift with a random odd factor
 * (Dietzfelbinger et al., 1997), so that a capture's author cannot choose values that collide. A
 * count of 0 marks an empty slot. Sum, least and greatest of integers do not depend on the order of
 * the values. Bins come in the table's order, and the caller sorts them.
 */
#include <stdlib.h>

#include "histogram.h"

#define BIN_BITS 13
#define LANE_BITS 48
#define LINEAR_BITS 8		/* a value of at most so many bits has a bin of its own */
#define FIRST_BITS 6
#define AHEAD 16		/* values whose slots are fetched: of many lanes they are in no cache */

struct ca_histogram {
	struct ca_bin *slots;
	uint64_t factor;
	size_t used;
	unsigned int bits;	/* log2 of the number of slots */
};

static size_t slots_of(const struct ca_histogram *histogram)
{
	return (size_t)1 << histogram->bits;
}

/* The slot where the search for a key begins. */
static size_t place_of(const struct ca_histogram *histogram, int64_t key)
{
	return (size_t)((uint64_t)key * histogram->factor >> (64 - histogram->bits));
}

/* The slot that has a key, or the empty slot for it. */
static struct ca_bin *slot_of(const struct ca_histogram *histogram, int64_t key)
{
	size_t at = place_of(histogram, key);

	while (histogram->slots[at].count && histogram->slots[at].key != key)
		at = (at + 1) & (slots_of(histogram) - 1);
	return &histogram->slots[at];
}

static bool histogram_grow(struct ca_histogram *histogram)
{
	struct ca_histogram grown = *histogram;

	grown.bits = histogram->bits + 1;
	grown.slots = calloc(slots_of(&grown), sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t at = 0; at < slots_of(histogram); at++) {
		const struct ca_bin *slot = &histogram->slots[at];

		if (slot->count)
			*slot_of(&grown, slot->key) = *slot;
	}
	free(histogram->slots);
	*histogram = grown;
	return true;
}

static bool count_bin(struct ca_histogram *histogram, struct ca_bin bin)
{
	struct ca_bin *slot = slot_of(histogram, bin.key);

	if (!slot->count) {
		if (4 * histogram->used >= 3 * slots_of(histogram)) {
			if (!histogram_grow(histogram))
				return false;
			slot = slot_of(histogram, bin.key);
		}
		histogram->used += bin.count > 0;
		*slot = bin;
		return true;
	}
	slot->count += bin.count;
	if (bin.low < slot->low)
		slot->low = bin.low;
	if (bin.high > slot->high)
		slot->high = bin.high;
	return true;
}

static int64_t key_of(int64_t lane, int64_t value)
{
	unsigned int bits = 64 - (unsigned int)__builtin_clzll((uint64_t)value | 1);
	unsigned int shift = bits > LINEAR_BITS ? bits - LINEAR_BITS : 0;

	return lane << BIN_BITS | (((int64_t)shift << (LINEAR_BITS - 1)) + (value >> shift));
}

struct ca_histogram *ca_histogram_new(uint64_t seed)
{
	struct ca_histogram *histogram = calloc(1, sizeof(*histogram));

	if (!histogram)
		return NULL;
	histogram->bits = FIRST_BITS;
	histogram->factor = seed | 1;
	histogram->slots = calloc(slots_of(histogram), sizeof(*histogram->slots));
	if (histogram->slots)
		return histogram;
	free(histogram);
	return NULL;
}

void ca_histogram_free(struct ca_histogram *histogram)
{
	if (histogram)
		free(histogram->slots);
	free(histogram);
}

bool ca_histogram_takes(const int64_t *lanes, const int64_t *values, size_t count)
{
	uint64_t outside = 0;

	for (size_t at = 0; at < count; at++)
		outside |= (uint64_t)lanes[at] >> LANE_BITS | (uint64_t)values[at] >> 63;
	return !outside;
}

/* Counts each value once in its lane; false without memory, after counting some of them. */
bool ca_histogram_add(struct ca_histogram *histogram, const int64_t *lanes, const int64_t *values,
		      size_t count)
{
	for (size_t at = 0; at < count; at++) {
		size_t later = at + AHEAD < count ? at + AHEAD : at;
		struct ca_bin bin = {
			.key = key_of(lanes[at], values[at]),
			.count = 1,
			.low = values[at],
			.high = values[at],
		};

		__builtin_prefetch(&histogram->slots[place_of(
			histogram, key_of(lanes[later], values[later]))], 1);
		if (!count_bin(histogram, bin))
			return false;
	}
	return true;
}

/* Adds the counts of bins; false without memory, after adding some of them. */
bool ca_histogram_add_bins(struct ca_histogram *histogram, const struct ca_bin *bins, size_t count)
{
	for (size_t at = 0; at < count; at++) {
		if (!count_bin(histogram, bins[at]))
			return false;
	}
	return true;
}

/* Returns the number of bins; writes them, in no order, unless `bins` is NULL. */
size_t ca_histogram_bins(const struct ca_histogram *histogram, struct ca_bin *bins)
{
	size_t row = 0;

	if (!bins)
		return histogram->used;
	for (size_t at = 0; at < slots_of(histogram); at++) {
		if (histogram->slots[at].count)
			bins[row++] = histogram->slots[at];
	}
	return row;
}
