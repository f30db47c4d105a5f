// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary packets of four directions are counted (libFuzzer, with sanitisers).
 *
 * The first bytes of the input are facts of each direction, each further eight a packet with the
 * tracker's columns, which need not agree. What is kept of each direction must be equal whether the
 * packets come at once or a few at a time.
 */
#include <math.h>

#include "fuzz.h"
#include "../bytes.h"
#include "../frame.h"
#include "../half.h"
#include "../limits.h"
#include "../receiving.h"
#include "../standing.h"
#include "../symptoms.h"
#include "../tally.h"

#define DIRECTIONS 4
#define BYTES_OF_A_DIRECTION 4
#define BYTES_OF_A_PACKET 8
#define PIECE_ROWS_MAX 7

/* The tap's place: near the sender, in the middle, near the receiver, unknown. */
static const double PLACES[] = { 0, 0.5, 1, NAN };

/* The functions' states. */
struct kept {
	struct ca_waits waits[DIRECTIONS];
	struct ca_spent spent[DIRECTIONS];
	struct ca_standing standing[DIRECTIONS];
	struct ca_tally tally[DIRECTIONS];
	struct ca_receiving receiving[DIRECTIONS];
	struct ca_received received[DIRECTIONS];
	struct ca_symptoms symptoms[DIRECTIONS];
	struct ca_life lives[DIRECTIONS / 2];
	int64_t coming, holes;
};

struct facts {
	double tap_at[DIRECTIONS], round_trip_ns[DIRECTIONS], handshake_ns[DIRECTIONS];
	int64_t tick_whole_ns[DIRECTIONS], segment_bytes[DIRECTIONS];
	int64_t longest_bytes[DIRECTIONS], window_shift[DIRECTIONS];
};

static void read_facts(const uint8_t *data, struct facts *facts)
{
	for (size_t at = 0; at < DIRECTIONS; at++, data += BYTES_OF_A_DIRECTION) {
		facts->tap_at[at] = PLACES[data[0] % 4];
		facts->round_trip_ns[at] = data[1] * 1e6;
		facts->handshake_ns[at] = data[2] * 1e6;
		facts->tick_whole_ns[at] = data[3] % 4 * INT64_C(1000000);
		facts->segment_bytes[at] = data[3];
		facts->longest_bytes[at] = 2 * data[3];
		facts->window_shift[at] = data[2] % 16 - 1;
	}
}

static void read_packets(const uint8_t *data, struct ca_block *block)
{
	int64_t time_ns = 0;

	for (size_t row = 0; row < block->rows; row++, data += BYTES_OF_A_PACKET) {
		int64_t unit_ns = data[0] & 8 ? INT64_C(1) << 55 : 100000;

		time_ns = plus(time_ns, (int8_t)data[1] * unit_ns);
		block->packets.time_ns[row] = time_ns;
		block->packets.flow[row] = data[0] & 1;
		block->packets.half[row] = data[0] >> 1 & 1;
		block->packets.marks[row] = (data[0] & 4 ? MARK_TIMESTAMPS : 0) | (data[3] & 3) * MARK_ECN_1;
		block->packets.flags[row] =
			(uint16_t)((data[0] & 16 ? FLAG_SYN : FLAG_ACK) | (data[3] & 7) << 6);
		block->packets.payload_bytes[row] = data[2];
		block->packets.ts_value[row] = data[3] * 0x1000001U;
		block->packets.window[row] = data[4];
		block->tracked.kind[row] = data[5] % KINDS;
		block->tracked.seq_bytes[row] = (int8_t)data[6] * (data[5] & 128 ? INT64_C(1) << 40 : 100);
		block->tracked.seq_bytes[row] += data[0] & 32 ? (int64_t)row << 16 : 0;
		block->tracked.ack_bytes[row] = (int8_t)data[7] * 100;
		block->tracked.gap_ns[row] = time_ns;
		block->tracked.rtt_ns[row] = (int8_t)data[3] * INT64_C(1000000);
		block->tracked.acked_bytes[row] = data[4];
		block->tracked.unseen_bytes[row] = data[5] >> 6;
		block->tracked.in_flight_bytes[row] = data[7];
	}
}

/* The rows of a block from one on. */
static struct ca_block part(const struct ca_block *block, size_t row, size_t rows)
{
	struct ca_block rest = *block;

#define X(name, width) rest.packets.name += row;
	TABLE_COLUMNS(X)
#undef X
#define X(name, width) rest.tracked.name += row;
	TRACKED_COLUMNS(X)
#undef X
	rest.rows = rows;
	return rest;
}

/* Each direction has at most HOLES_KEPT holes, and together they are all the rows taken. */
static void check_holes(const struct kept *kept, const struct ca_hole *rows)
{
	int64_t all = 0;

	for (size_t direction = 0; direction < DIRECTIONS; direction++) {
		int64_t held = 0;

		for (int64_t at = kept->receiving[direction].hole; at >= 0; at = rows[at].next)
			held++;
		check(held <= HOLES_KEPT);
		all += held;
	}
	check(all == kept->holes);
}

/* The causes divide all of the time. */
static void check_spent(const struct ca_spent *spent)
{
	int64_t all_ns = 0;

	for (size_t cause = 0; cause < CAUSES; cause++) {
		check(spent->cause_ns[cause] >= 0);
		all_ns += spent->cause_ns[cause];
	}
	for (size_t open = 0; open < OPENS; open++) {
		check(spent->open_ns[open] >= 0);
		all_ns += spent->open_ns[open];
	}
	check(all_ns == spent->whole_ns);
}

static void count(const struct ca_block *block, size_t piece, struct kept *kept)
{
	struct ca_all_coming coming = { table_allocate(block->rows * sizeof(*coming.rows)), -1 };
	struct ca_all_holes holes = { table_allocate(block->rows * sizeof(*holes.rows)), -1 };

	memset(kept, 0, sizeof(*kept));
	memset(kept->waits, -1, sizeof(kept->waits));
	memset(kept->receiving, -1, sizeof(kept->receiving));
	for (size_t at = 0; at < block->rows; at++) {
		coming.rows[at].next = coming.free;
		holes.rows[at].next = holes.free;
		coming.free = holes.free = (int64_t)at;
	}
	for (size_t row = 0; row < block->rows; row += piece) {
		size_t left = block->rows - row;
		struct ca_block rest = part(block, row, left < piece ? left : piece);

		kept->coming += ca_limits_add(&rest, kept->waits, &coming, kept->spent, NULL);
		kept->holes += ca_receiving_add(&rest, kept->receiving, &holes, kept->received);
		ca_standing_add(&rest, kept->standing);
		ca_symptoms_add(&rest, kept->symptoms);
		ca_tally_add(&rest, kept->tally, kept->lives);
	}
	check_holes(kept, holes.rows);
	free(coming.rows);
	free(holes.rows);
}

static void *zeroed(size_t bytes)
{
	return memset(table_allocate(bytes), 0, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < DIRECTIONS * BYTES_OF_A_DIRECTION)
		return 0;

	struct facts facts;
	struct kept whole, pieces;
	struct ca_block block = { .rows = (size - DIRECTIONS * BYTES_OF_A_DIRECTION) / BYTES_OF_A_PACKET };
	size_t packets = 0;

	read_facts(data, &facts);
	block.facts = (struct ca_facts){
		facts.tap_at, facts.round_trip_ns, facts.handshake_ns, facts.tick_whole_ns,
		facts.segment_bytes, facts.longest_bytes, facts.window_shift,
	};
#define X(name, width) block.packets.name = zeroed(block.rows * (width));
	TABLE_COLUMNS(X)
#undef X
#define X(name, width) block.tracked.name = zeroed(block.rows * (width));
	TRACKED_COLUMNS(X)
#undef X
	read_packets(data + DIRECTIONS * BYTES_OF_A_DIRECTION, &block);
	count(&block, block.rows + 1, &whole);
	count(&block, 1 + data[0] % PIECE_ROWS_MAX, &pieces);
	check(!memcmp(&whole, &pieces, sizeof(whole)));
	for (size_t at = 0; at < DIRECTIONS; at++) {
		for (size_t kind = 0; kind < KINDS; kind++)
			packets += (size_t)whole.tally[at].kinds[kind];
	}
	check(packets == block.rows);
	check(whole.coming >= 0 && (size_t)whole.coming <= block.rows);
	for (size_t at = 0; at < DIRECTIONS; at++) {
		const struct ca_received *sums = &whole.received[at];

		check_spent(&whole.spent[at]);
		check(whole.tally[at].shut.longest_ns <= whole.tally[at].shut.ns);
		check(whole.tally[at].shut.ns <= whole.tally[at].shut.whole_ns);

		check(sums->delayed <= sums->timed);
		check(0 <= sums->shut_ns && sums->shut_ns <= sums->whole_ns);
	}
#define X(name, width) free(block.tracked.name);
	TRACKED_COLUMNS(X)
#undef X
	table_free(&block.packets);
	return 0;
}
