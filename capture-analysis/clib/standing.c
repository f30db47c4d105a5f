// SPDX-License-Identifier: GPL-2.0-only
/*
 * A direction has delays of one kind: round trips near its sender, elsewhere times since the stamp.
 */
#include <stdbool.h>

#include "frame.h"
#include "standing.h"

#define TOGETHER 16
/* The shortest of sixteen delays shows a queue if it exceeds the least delay by this. */
#define LONGER 0.2		/* of the path's round trip */
#define LONGER_NS 1e6
#define TICKS 2
#define DRIFT 1e-4		/* of the time, by which clocks may drift apart */
#define DELAY_NS_MAX ((int64_t)1 << 44)

/* The delay of a packet, ns; false if it has none. */
static bool delay_of(const struct ca_block *block, size_t row, size_t direction,
		     struct ca_standing *kept, int64_t *delay_ns)
{
	const struct ca_columns *packets = &block->packets;
	const struct ca_facts *facts = &block->facts;
	int64_t tick_ns = facts->tick_whole_ns[direction ^ 1];

	if (facts->tap_at[direction] <= NEAR) {
		*delay_ns = block->tracked.rtt_ns[row];
		return block_is_ack(block, row) && *delay_ns >= 0;
	}
	if (!(facts->tap_at[direction] > NEAR) || tick_ns <= 0 || !block_is_data(block, row) ||
	    !(packets->marks[row] & MARK_TIMESTAMPS))
		return false;
	if (!kept->delays) {
		kept->origin_ns = packets->time_ns[row];
		kept->origin_stamp = packets->ts_value[row];
	}
	/* Stamps wrap. */
	*delay_ns = minus(minus(packets->time_ns[row], kept->origin_ns),
			  (int32_t)(packets->ts_value[row] - (uint32_t)kept->origin_stamp) * tick_ns);
	return true;
}

/* Whether a queue stood during the sixteen that end at a time. */
static bool stands(const struct ca_facts *facts, size_t direction, const struct ca_standing *kept,
		   int64_t time_ns)
{
	double margin_ns = LONGER * facts->round_trip_ns[direction];
	double floor_ns = (double)kept->floor_ns;
	/*
	 * The handshake's packets lack a segment's transmission time, which is at most the time
	 * from one segment to the next.
	 */
	double segment_ns = (double)kept->spent_ns / TOGETHER;

	if (margin_ns < LONGER_NS)
		margin_ns = LONGER_NS;
	if (facts->tap_at[direction] > NEAR)
		margin_ns += (double)(TICKS * facts->tick_whole_ns[direction ^ 1]) +
			     DRIFT * (double)minus(time_ns, kept->origin_ns);
	else if (floor_ns > facts->handshake_ns[direction] + segment_ns + margin_ns)
		return true;
	return floor_ns > (double)kept->shortest_ns + margin_ns;
}

static void standing_add(const struct ca_facts *facts, size_t direction, struct ca_standing *kept,
			 int64_t time_ns, int64_t delay_ns)
{
	int64_t spent_ns = kept->delays ? most(minus(time_ns, kept->last_ns), 0) : 0;
	int64_t limited_ns = most(least(delay_ns, DELAY_NS_MAX), -DELAY_NS_MAX);
	int64_t queue_ns = delay_ns;

	kept->shortest_ns = kept->delays ? least(kept->shortest_ns, limited_ns) : limited_ns;
	kept->last_ns = time_ns;
	if (facts->tap_at[direction] > NEAR)
		queue_ns = minus(plus(whole_ns(facts->round_trip_ns[direction]), delay_ns),
				 kept->shortest_ns);
	kept->floor_ns = kept->delays % TOGETHER ? least(kept->floor_ns, delay_ns) : delay_ns;
	kept->spent_ns = plus(kept->spent_ns, spent_ns);
	/* A queue explains silence of at most this round trip. */
	kept->queue_ns = plus(kept->queue_ns, least(spent_ns, queue_ns));
	if (++kept->delays % TOGETHER)
		return;
	/* The first sixteen are left out: they build the queue. */
	if (kept->delays > TOGETHER) {
		kept->whole_ns = plus(kept->whole_ns, kept->spent_ns);
		if (stands(facts, direction, kept, time_ns))
			kept->standing_ns = plus(kept->standing_ns, kept->queue_ns);
	}
	kept->spent_ns = 0;
	kept->queue_ns = 0;
}

void ca_standing_add(const struct ca_block *block, struct ca_standing *directions)
{
	for (size_t row = 0; row < block->rows; row++) {
		size_t direction = block_direction(block, row);
		struct ca_standing *kept = &directions[direction];
		int64_t delay_ns;

		kept->heard_ns = block->packets.time_ns[row];
		if (delay_of(block, row, direction, kept, &delay_ns))
			standing_add(&block->facts, direction, kept, block->packets.time_ns[row], delay_ns);
	}
}
