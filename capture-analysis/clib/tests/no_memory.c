// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the tracker and the histogram while memory runs out: at the first allocation, at the second,
 * ... until there is enough. They must report it or do with less, and leak nothing (sanitisers).
 *
 * Linked with --wrap, so that all their allocations go through this file.
 */
#include "table.h"
#include "../histogram.h"
#include "../track.h"

#define ROWS 4000
#define FLOWS 300	/* more than one slab holds */

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);

static size_t left = SIZE_MAX;	/* allocations before memory is refused */
static bool refused;

static bool refuse(void)
{
	if (left) {
		left--;
		return false;
	}
	refused = true;
	return true;
}

void *__wrap_malloc(size_t bytes)
{
	return refuse() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return refuse() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return refuse() ? NULL : __real_realloc(memory, bytes);
}

/* Makes data out of order, so that there are holes, and ACKs, in many connections and in one. */
static void make_packets(struct ca_columns *packets)
{
	table_new(packets, ROWS);
#define X(name, width) memset(packets->name, 0, ROWS * (width));
	TABLE_COLUMNS(X)
#undef X
	for (uint32_t row = 0; row < ROWS; row++) {
		packets->time_ns[row] = row;
		packets->flow[row] = row % 2 ? row % FLOWS : 0;
		packets->half[row] = row % 5 == 4;
		packets->payload_bytes[row] = row % 5 == 4 ? 0 : 10;
		packets->seq[row] = row * 7919 % ROWS * 20;
		packets->ack[row] = row * 2;
		packets->ip_id[row] = (uint16_t)row;
		packets->flags[row] = 16;
	}
}

static enum ca_track_status track(const struct ca_columns *packets, struct ca_tracked *tracked)
{
	struct ca_tracker *tracker = ca_tracker_new();
	enum ca_track_status status = CA_NO_MEMORY;

	if (tracker)
		status = ca_tracker_track(tracker, packets, ROWS, FLOWS, tracked);
	ca_tracker_free(tracker);
	return status;
}

static bool count(const int64_t *values)
{
	struct ca_histogram *histogram = ca_histogram_new(0x9e3779b97f4a7c15);
	bool counted = histogram && ca_histogram_add(histogram, values, values, ROWS);

	ca_histogram_free(histogram);
	return counted;
}

int main(void)
{
	static int64_t numbers[4][ROWS];
	static uint32_t bytes[4][ROWS];
	static uint8_t kind[ROWS], repair[ROWS];
	struct ca_tracked tracked = { numbers[0], numbers[1], numbers[2], numbers[3],
				      bytes[0], bytes[1], bytes[2], bytes[3], kind, repair };
	struct ca_columns packets;
	unsigned int untold = 0, with_less = 0;

	make_packets(&packets);
	for (size_t enough = 0; enough == 0 || refused; enough++) {
		refused = false;
		left = enough;
		with_less += track(&packets, &tracked) == CA_TRACKED && refused;
	}
	for (size_t enough = 0; enough == 0 || refused; enough++) {
		refused = false;
		left = enough;
		untold += count(packets.time_ns) == refused;
	}
	left = SIZE_MAX;
	table_free(&packets);
	printf("%u with less memory, %u untold\n", with_less, untold);
	return !with_less || untold;
}
