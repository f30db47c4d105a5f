// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: streaks of arbitrary packets (libFuzzer, with sanitisers).
 *
 * The first byte of the input is the least number of packets in a streak, the second the number of
 * packets in a piece. Each further two bytes are a packet: the step of its lane, whether it
 * continues a streak, and its value. Streaks found at once and in pieces must be equal and in the
 * same order in each lane; without a least length they must contain all packets.
 */
#include "fuzz.h"
#include "../streaks.h"

#define HEAD_BYTES 2
#define BYTES_OF_A_PACKET 2
#define LANES 64

struct found {
	struct ca_streaks over, open;
	size_t count;
};

static struct ca_streaks streaks_new(size_t rows)
{
	struct ca_streaks streaks = { .stride = rows };

	streaks.lane = table_allocate(rows * sizeof(int64_t));
	streaks.rows = table_allocate(rows * sizeof(int64_t));
	streaks.first_ns = table_allocate(rows * sizeof(int64_t));
	streaks.last_ns = table_allocate(rows * sizeof(int64_t));
	streaks.total = table_allocate(CA_STREAK_VALUES * rows * sizeof(int64_t));
	return streaks;
}

static void streaks_free(struct ca_streaks *streaks)
{
	free(streaks->lane);
	free(streaks->rows);
	free(streaks->first_ns);
	free(streaks->last_ns);
	free(streaks->total);
}

/* Finds streaks in pieces of `piece` packets; found.open has those still open at the end. */
static struct found find(const struct ca_streak_packets *all, size_t count, size_t piece,
			 int64_t least_rows)
{
	struct found found = { streaks_new(count + LANES), streaks_new(LANES), 0 };

	for (size_t lane = 0; lane < LANES; lane++) {
		found.open.lane[lane] = (int64_t)lane;
		found.open.rows[lane] = 0;
	}
	for (size_t at = 0; at < count; at += piece) {
		struct ca_streak_packets packets = *all;
		struct ca_streaks over = found.over;

		packets.lane += at;
		packets.joined += at;
		packets.time_ns += at;
		packets.values[0] += at;
		over.lane += found.count;
		over.rows += found.count;
		over.first_ns += found.count;
		over.last_ns += found.count;
		over.total += found.count;
		found.count += ca_streaks_add(&packets, count - at < piece ? count - at : piece,
					   least_rows, &found.open, &over);
	}
	return found;
}

static int64_t packets_of(const struct found *found)
{
	int64_t packets = 0;

	for (size_t streak = 0; streak < found->count; streak++)
		packets += found->over.rows[streak];
	for (size_t lane = 0; lane < LANES; lane++)
		packets += found->open.rows[lane];
	return packets;
}

static bool same_streak(const struct ca_streaks *a, size_t x, const struct ca_streaks *b, size_t y)
{
	return a->lane[x] == b->lane[y] && a->rows[x] == b->rows[y] &&
	       a->first_ns[x] == b->first_ns[y] && a->last_ns[x] == b->last_ns[y] &&
	       a->total[x] == b->total[y];
}

static void check_same(const struct found *a, const struct found *b)
{
	check(a->count == b->count);
	for (size_t streak = 0; streak < a->count; streak++)
		check(same_streak(&a->over, streak, &b->over, streak));
	for (size_t lane = 0; lane < LANES; lane++) {
		check(a->open.rows[lane] == b->open.rows[lane]);
		check(!a->open.rows[lane] || same_streak(&a->open, lane, &b->open, lane));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES)
		return 0;

	size_t count = (size - HEAD_BYTES) / BYTES_OF_A_PACKET;
	int64_t *lanes = table_allocate(count * sizeof(*lanes));
	uint8_t *joined = table_allocate(count);
	int64_t *times = table_allocate(count * sizeof(*times));
	int64_t *values = table_allocate(count * sizeof(*values));
	struct ca_streak_packets packets = { lanes, joined, times, 1, { values } };
	int64_t lane = 0, least_rows = 1 + data[0] % 4;

	for (size_t at = 0; at < count; at++) {
		const uint8_t *packet = data + HEAD_BYTES + BYTES_OF_A_PACKET * at;

		lane += packet[0] >> 1 > 120 && lane < LANES - 1;
		lanes[at] = lane;
		joined[at] = packet[0] & 1;
		times[at] = (int64_t)at * 10;
		values[at] = packet[1];
	}

	struct found whole = find(&packets, count, count + 1, least_rows);
	struct found pieces = find(&packets, count, 1 + data[1], least_rows);

	check_same(&whole, &pieces);
	check(least_rows > 1 || packets_of(&whole) == (int64_t)count);
	streaks_free(&whole.over);
	streaks_free(&whole.open);
	streaks_free(&pieces.over);
	streaks_free(&pieces.open);
	free(lanes);
	free(joined);
	free(times);
	free(values);
	return 0;
}
