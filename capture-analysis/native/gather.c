// SPDX-License-Identifier: GPL-2.0-only
/* One pass where numpy needs two, to take and to widen; a loop for each width, without a branch. */
#include "gather.h"

#define gather(type)								\
	do {									\
		const type *from = column;					\
										\
		for (size_t at = 0; at < count; at++)				\
			to[at] = (int64_t)from[rows[at]];			\
	} while (0)

static bool has_rows(size_t size, const int64_t *rows, size_t count)
{
	uint64_t most = 0;

	for (size_t at = 0; at < count; at++)
		most = (uint64_t)rows[at] > most ? (uint64_t)rows[at] : most;
	return !count || most < size;
}

bool ca_gather(const void *column, size_t width, size_t size, const int64_t *rows, size_t count,
	       int64_t *to)
{
	if (!has_rows(size, rows, count))
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
