// SPDX-License-Identifier: GPL-2.0-only
/*
 * A histogram of many lanes whose bins are mostly empty: a hash table from key to count.
 *
 *	key = lane << 13 | bin
 *	bin = value                                     of values below 256
 *	    = 128 shift + (value >> shift)              above: the highest eight bits, and
 *	                                                how many are below them, shift > 0
 *
 * Linear probing at most at half load, by multiply-shift with a random odd factor (Dietzfelbinger
 * et al., 1997), so that a capture's writer cannot choose values that meet. A count of 0 marks an
 * empty slot. Integers add up in any order to the same, so the order of values does not matter;
 * rows come in the table's order, and the caller sorts them.
 */
#include <stdlib.h>

#include "histogram.h"

#define BIN_BITS 13
#define LINEAR_BITS 8		/* values of so many bits have a bin each */
#define FIRST_BITS 6

struct slot {
	int64_t key;
	uint64_t count;
};

struct ca_histogram {
	struct slot *slots;
	uint64_t factor;
	size_t used;
	unsigned int bits;	/* log2 of the number of slots */
};

static size_t slots_of(const struct ca_histogram *histogram)
{
	return (size_t)1 << histogram->bits;
}

/* Where a key is, or goes. */
static struct slot *slot_of(const struct ca_histogram *histogram, int64_t key)
{
	size_t at = (size_t)((uint64_t)key * histogram->factor >> (64 - histogram->bits));

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
		const struct slot *slot = &histogram->slots[at];

		if (slot->count)
			*slot_of(&grown, slot->key) = *slot;
	}
	free(histogram->slots);
	*histogram = grown;
	return true;
}

static bool count_key(struct ca_histogram *histogram, int64_t key, uint64_t count)
{
	struct slot *slot = slot_of(histogram, key);

	if (!slot->count) {
		if (2 * histogram->used >= slots_of(histogram)) {
			if (!histogram_grow(histogram))
				return false;
			slot = slot_of(histogram, key);
		}
		slot->key = key;
		histogram->used += count > 0;
	}
	slot->count += count;
	return true;
}

static int64_t bin_of(int64_t value)
{
	unsigned int bits = 64 - (unsigned int)__builtin_clzll((uint64_t)value | 1);
	unsigned int shift = bits > LINEAR_BITS ? bits - LINEAR_BITS : 0;

	return ((int64_t)shift << (LINEAR_BITS - 1)) + (value >> shift);
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

/* Counts each value once in its lane; false without memory, and then some are counted. */
bool ca_histogram_add(struct ca_histogram *histogram, const int64_t *lanes, const int64_t *values,
		      size_t count)
{
	for (size_t at = 0; at < count; at++) {
		if (!count_key(histogram, lanes[at] << BIN_BITS | bin_of(values[at]), 1))
			return false;
	}
	return true;
}

/* Counts each key so many times; false without memory, and then some are counted. */
bool ca_histogram_add_counts(struct ca_histogram *histogram, const int64_t *keys,
			     const uint64_t *counts, size_t count)
{
	for (size_t at = 0; at < count; at++) {
		if (!count_key(histogram, keys[at], counts[at]))
			return false;
	}
	return true;
}

/* How many keys there are; writes them and their counts, in no order, unless keys is NULL. */
size_t ca_histogram_rows(const struct ca_histogram *histogram, int64_t *keys, uint64_t *counts)
{
	size_t row = 0;

	if (!keys)
		return histogram->used;
	for (size_t at = 0; at < slots_of(histogram); at++) {
		if (!histogram->slots[at].count)
			continue;
		keys[row] = histogram->slots[at].key;
		counts[row++] = histogram->slots[at].count;
	}
	return row;
}
