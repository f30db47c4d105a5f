// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary rows are sorted by lane (libFuzzer, with sanitisers).
 *
 * The first byte of the input spreads the lanes, the second is their count. Each further byte is a
 * row. Rows must be in order, or, if one is out of range, the call must be refused.
 */
#include "fuzz.h"
#include "../order.h"

#define HEAD_BYTES 2

/* Checks that rows are sorted by lane, stably, or that rows out of range are refused. */
static void order(const uint32_t *lane, size_t length, const int64_t *rows, size_t count,
		  bool inside)
{
	int64_t *numbers[4];

	for (size_t k = 0; k < 4; k++)
		numbers[k] = table_allocate(count * sizeof(**numbers));

	struct ca_lane_order to = { numbers[0], numbers[1], numbers[2], numbers[3] };
	size_t lanes = ca_order(lane, length, rows, count, &to), at = 0;

	check((lanes == CA_ORDER_BEYOND) == !inside);
	for (size_t k = 0; inside && k < lanes; k++) {
		int64_t before = -1;

		check(to.counts[k] > 0 && (!k || to.lanes[k - 1] < to.lanes[k]));
		for (size_t end = at + (size_t)to.counts[k]; at < end; at++) {
			int64_t given = before + 1;

			check(lane[to.rows[at]] == to.lanes[k]);
			while (to.places[given] != (int64_t)at)
				given++;
			check(rows[given] == to.rows[at]);
			before = given;
		}
	}
	check(!inside || at == count);
	for (size_t k = 0; k < 4; k++)
		free(numbers[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES)
		return 0;

	size_t length = data[1], count = size - HEAD_BYTES;
	int64_t *rows = table_allocate(count * sizeof(*rows));
	uint32_t *lane = table_allocate(length * sizeof(*lane));
	bool inside = true;

	for (size_t at = 0; at < count; at++) {
		rows[at] = (int8_t)data[HEAD_BYTES + at];
		inside &= rows[at] >= 0 && (size_t)rows[at] < length;
	}
	for (size_t at = 0; at < length; at++)
		lane[at] = (uint32_t)data[at % size] << data[0] % 10;
	order(lane, length, rows, count, inside);
	free(lane);
	free(rows);
	return 0;
}
