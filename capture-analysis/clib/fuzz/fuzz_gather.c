// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary rows are sorted by lane and gathered into arbitrary places (libFuzzer,
 * with sanitisers).
 *
 * The first byte of the input is the width of the column's numbers, the second their count. Each
 * further two bytes are a row and a place. Every value must be in its place, or, if anything is out
 * of range, the call must be refused.
 */
#include "fuzz.h"
#include "../gather.h"

#define HEAD_BYTES 2
#define BYTES_OF_A_ROW 2

/* A number of the column; the column is little-endian, as the machine is. */
static int64_t value_of(const uint8_t *column, size_t width, int64_t row)
{
	int64_t value = 0;

	memcpy(&value, column + (size_t)row * width, width);
	return value;
}

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

	size_t width = data[0] % 10, length = data[1];
	size_t count = (size - HEAD_BYTES) / BYTES_OF_A_ROW;
	uint8_t *column = table_allocate(length * width);
	int64_t *rows = table_allocate(count * sizeof(*rows));
	int64_t *places = table_allocate(count * sizeof(*places));
	int64_t *to = table_allocate(count * sizeof(*to));
	uint32_t *lane = table_allocate(length * sizeof(*lane));
	bool inside = true, known = width == 1 || width == 2 || width == 4 || width == 8;

	for (size_t at = 0; at < length * width; at++)
		column[at] = (uint8_t)(at * 167);
	for (size_t at = 0; at < count; at++) {
		rows[at] = (int8_t)data[HEAD_BYTES + 2 * at];
		places[at] = (int8_t)data[HEAD_BYTES + 2 * at + 1];
		inside &= rows[at] >= 0 && (size_t)rows[at] < length;
	}
	for (size_t at = 0; at < length; at++)
		lane[at] = (uint32_t)data[at % size] << data[0] % 10;
	order(lane, length, rows, count, inside);
	for (size_t at = 0; at < count; at++) {
		inside &= places[at] >= 0 && (size_t)places[at] < count;
	}
	check(ca_gather(column, width, length, rows, places, count, to) == (inside && known));
	/* If several rows have one place, the last one must be there. */
	for (size_t at = 0; inside && known && at < count; at++) {
		bool last = true;

		for (size_t later = at + 1; later < count; later++)
			last &= places[later] != places[at];
		check(!last || to[places[at]] == value_of(column, width, rows[at]));
	}
	free(column);
	free(lane);
	free(rows);
	free(places);
	free(to);
	return 0;
}
