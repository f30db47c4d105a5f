// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets are read in the order of the capture and written in that of their lanes: a few streams
 * of which each goes on where it was. The other way round every value would be a cache line.
 */
#include "gather.h"

#define gather(type)								\
	do {									\
		const type *from = column;					\
										\
		for (size_t at = 0; at < count; at++)				\
			to[places[at]] = (int64_t)from[rows[at]];			\
	} while (0)

/* By the sign of what is negative for any other row: no comparison, which no vector unit has. */
static bool all_below(size_t size, const int64_t *rows, size_t count)
{
	int64_t last = (int64_t)size - 1, outside = 0;

	for (size_t at = 0; at < count; at++)
		outside |= rows[at] | (last - (rows[at] & INT64_MAX));
	return outside >= 0;
}

bool ca_gather(const void *column, size_t width, size_t size, const int64_t *rows,
	       const int64_t *places, size_t count, int64_t *to)
{
	if (!all_below(size, rows, count) || !all_below(count, places, count))
		return false;
	switch (width) {
	case sizeof(uint8_t):
		gather(uint8_t);
		return true;
	case sizeof(uint16_t):
		gather(uint16_t);
		return true;
	case sizeof(uint32_t):
		gather(uint32_t);
		return true;
	case sizeof(int64_t):
		gather(int64_t);
		return true;
	default:
		return false;
	}
}
