// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holes are kept from the newest to the oldest. A filled hole stays until HOLES_KEPT newer ones
 * have come. Late data mostly fill new holes, so that the search is short.
 */
#include <stdbool.h>

#include "receiving.h"

#define DELAYED_NS 10000000
#define FAR 0.9			/* 1 - NEAR */
#define SOONER 0.9		/* share of the shortest loop seen to the sender and back */

static int64_t open_hole(struct ca_receiving *kept, int64_t end, int64_t time_ns,
			 struct ca_all_holes *holes)
{
	int64_t at = holes->free, behind = at;

	holes->free = holes->rows[at].next;
	holes->rows[at] = (struct ca_hole){ kept->sent, end, time_ns, kept->hole };
	kept->hole = at;
	for (int held = 1; held < HOLES_KEPT && behind >= 0; held++)
		behind = holes->rows[behind].next;
	if (behind < 0 || holes->rows[behind].next < 0)
		return 1;

	/* The oldest hole is one too many: free it. */
	int64_t oldest = holes->rows[behind].next;

	holes->rows[behind].next = -1;
	holes->rows[oldest].next = holes->free;
	holes->free = oldest;
	return 0;
}

/* Counts late data as reordered or sent again, by the time since their hole was seen. */
static void count_late(const struct ca_facts *facts, size_t direction, const struct ca_receiving *kept,
		       int64_t start, int64_t time_ns, const struct ca_all_holes *holes,
		       struct ca_received *sums)
{
	double loop_ns = facts->tap_at[direction] * facts->round_trip_ns[direction];

	for (int64_t at = kept->hole; at >= 0; at = holes->rows[at].next) {
		const struct ca_hole *hole = &holes->rows[at];

		if (start < hole->first || start >= hole->end)
			continue;
		if ((double)minus(time_ns, hole->opened_ns) < SOONER * loop_ns)
			sums->reordered++;
		else
			sums->repaired++;
		return;
	}
}

static int64_t add_data(const struct ca_block *block, size_t row, size_t direction,
			struct ca_receiving *kept, struct ca_all_holes *holes,
			struct ca_received *sums)
{
	int64_t start = block->tracked.seq_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t taken = 0;

	if (block->tracked.kind[row] == KIND_LATE_DATA)
		count_late(&block->facts, direction, kept, start, time_ns, holes, sums);
	else if (kept->sent >= 0 && start > kept->sent)
		taken = open_hole(kept, start, time_ns, holes);
	kept->sent = most(kept->sent, plus(start, block->packets.payload_bytes[row]));
	return taken;
}

static void add_ack(const struct ca_block *block, size_t row, size_t direction,
		    struct ca_receiving *kept, struct ca_received *sums)
{
	int64_t acked = block->tracked.ack_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t shift = most(block->facts.window_shift[direction], 0);
	int64_t window = (int64_t)block->packets.window[row] << shift;
	int64_t delay_ns = block->tracked.rtt_ns[row];

	if (delay_ns >= 0 && block->tracked.acked_bytes[row]) {
		sums->timed++;
		sums->delayed += delay_ns >= DELAYED_NS;
	}
	if (acked < kept->acked)
		return;	/* it was overtaken */
	if (kept->acked == acked && plus(acked, window) > kept->edge)
		sums->reads++;
	if (kept->window < 0)
		kept->window_ns = time_ns;
	/* Times of a file may run back, and jump: none counts twice, and the sum stays in range. */
	int64_t spent_ns = least(most(minus(time_ns, kept->window_ns), 0), INT64_MAX - sums->whole_ns);

	sums->whole_ns += spent_ns;
	if (kept->window < block->facts.segment_bytes[direction])
		sums->shut_ns += spent_ns;
	kept->acked = acked;
	kept->edge = most(kept->edge, plus(acked, window));
	kept->window = window;
	kept->window_max = most(kept->window_max, window);
	kept->window_ns = most(kept->window_ns, time_ns);
	kept->unread = most(kept->unread, kept->window_max - window);
}

int64_t ca_receiving_add(const struct ca_block *block, struct ca_receiving *directions,
			 struct ca_all_holes *holes, struct ca_received *sums)
{
	int64_t taken = 0;

	for (size_t row = 0; row < block->rows; row++) {
		size_t direction = block_direction(block, row);
		struct ca_receiving *kept = &directions[direction];

		if (!(block->facts.tap_at[direction] >= FAR))
			continue;
		if (block_is_data(block, row))
			taken += add_data(block, row, direction, kept, holes, &sums[direction]);
		else if (block_is_ack(block, row) && block->tracked.ack_bytes[row] >= 0)
			add_ack(block, row, direction, kept, &sums[direction]);
	}
	return taken;
}
