// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sort is a counting sort: connections that are busy at the same time have numbers near each
 * other, so that the range from the least lane to the greatest is small.
 */
#include <stdlib.h>

#include "order.h"

struct range {
	uint32_t least, greatest;
};

static bool lanes_between(const uint32_t *lane, size_t size, const int64_t *rows, size_t count,
			  struct range *range)
{
	*range = (struct range){ UINT32_MAX, 0 };
	for (size_t at = 0; at < count; at++) {
		if ((uint64_t)rows[at] >= size)
			return false;

		uint32_t mine = lane[rows[at]];

		range->least = mine < range->least ? mine : range->least;
		range->greatest = mine > range->greatest ? mine : range->greatest;
	}
	return true;
}

size_t ca_order(const uint32_t *lane, size_t size, const int64_t *rows, size_t count,
		const struct ca_lane_order *order)
{
	struct range range;
	size_t lanes = 0, next = 0;
	size_t *place;	/* per lane: first its number of rows, then the place of its next row */

	if (!lanes_between(lane, size, rows, count, &range))
		return CA_ORDER_BEYOND;
	if (!count)
		return 0;
	place = calloc((size_t)range.greatest - range.least + 1, sizeof(*place));
	if (!place)
		return CA_ORDER_NO_MEMORY;
	for (size_t at = 0; at < count; at++)
		place[lane[rows[at]] - range.least]++;
	for (size_t at = 0; at <= range.greatest - range.least; at++) {
		size_t mine = place[at];

		if (!mine)
			continue;
		order->lanes[lanes] = (int64_t)(range.least + at);
		order->counts[lanes++] = (int64_t)mine;
		place[at] = next;
		next += mine;
	}
	for (size_t at = 0; at < count; at++) {
		size_t to = place[lane[rows[at]] - range.least]++;

		order->places[at] = (int64_t)to;
		order->rows[to] = rows[at];
	}
	free(place);
	return lanes;
}
