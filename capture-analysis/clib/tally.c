// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each number is an array with one entry per direction, which the caller reads: a packet adds to
 * ten of them.
 */
#include "half.h"
#include "tally.h"

#define PAUSE_NS 1000000000	/* of tally.py */
#define NEARLY_FULL 0.8		/* of facts.py */
#define NEVER INT64_MAX

static void add_data(const struct ca_block *block, size_t row, size_t direction,
		     const struct ca_tally *tally)
{
	const struct ca_facts *facts = &block->facts;
	const struct ca_tracked *tracked = &block->tracked;
	int64_t payload = block->packets.payload_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t gap_ns = tracked->gap_ns[row];

	if (tally->first_ns[direction] == NEVER)
		tally->first_new[direction] += tracked->new_bytes[row];
	tally->first_ns[direction] = least(tally->first_ns[direction], time_ns);
	tally->last_ns[direction] = most(tally->last_ns[direction], time_ns);
	tally->payload[direction] += payload;
	tally->new_payload[direction] += tracked->new_bytes[row];
	tally->data_frame_bytes[direction] += block->packets.frame_bytes[row];
	tally->full_segments[direction] +=
		(double)payload >= NEARLY_FULL * (double)facts->segment_bytes[direction];
	tally->merged[direction] += payload > facts->longest_bytes[direction];
	if (gap_ns >= PAUSE_NS && tracked->in_flight_bytes[row] <= payload)
		tally->pause_ns[direction] = plus(tally->pause_ns[direction], gap_ns);
}

static void add_ack(const struct ca_block *block, size_t row, size_t direction,
		    const struct ca_tally *tally)
{
	const struct ca_tracked *tracked = &block->tracked;
	int64_t time_ns = block->packets.time_ns[row];

	tally->first_ack_ns[direction] = least(tally->first_ack_ns[direction], time_ns);
	tally->last_ack_ns[direction] = most(tally->last_ack_ns[direction], time_ns);
	tally->ack_frame_bytes[direction] += block->packets.frame_bytes[row];
	tally->acked[direction] += tracked->acked_bytes[row];
	tally->spaced_acks[direction] += tracked->acked_bytes[row] > 0 && tracked->gap_ns[row] >= 0;
}

void ca_tally_add(const struct ca_block *block, const struct ca_tally *tally)
{
	const struct ca_tracked *tracked = &block->tracked;

	for (size_t row = 0; row < block->rows; row++) {
		size_t direction = block_direction(block, row);
		uint8_t kind = tracked->kind[row];

		tally->kinds[direction][kind]++;
		if (block_is_data(block, row))
			add_data(block, row, direction, tally);
		else if (block_is_ack(block, row))
			add_ack(block, row, direction, tally);
		else if (kind == KIND_CONTROL)
			tally->syns[direction] += (block->packets.flags[row] & FLAG_SYN) != 0;
		if (tracked->unseen_bytes[row]) {
			size_t half = block->packets.half[row] ^ (size_t)1;
			int64_t *unseen = tally->unseen[(size_t)block->packets.flow[row] << 1 | half];

			unseen[0] += tracked->unseen_bytes[row];
			unseen[1]++;
		}
	}
}
