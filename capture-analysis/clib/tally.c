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

/*
 * Extends a span of time to a packet. If a clock was set back, the span begins anew where it is set,
 * and `back` keeps its length so far.
 */
static void pass_time(int64_t *first_ns, int64_t *last_ns, int64_t *back_ns, int64_t time_ns)
{
	if (*first_ns != NEVER && minus(*last_ns, time_ns) >= SET_BACK_NS) {
		*back_ns = plus(*back_ns, minus(*last_ns, *first_ns));
		*first_ns = *last_ns = time_ns;
	}
	*first_ns = least(*first_ns, time_ns);
	*last_ns = most(*last_ns, time_ns);
}

/*
 * The part of the time between two data of a direction in which its application paused. The half
 * that opened the connection asks, so that the time from its data to the answer is the other's.
 */
static int64_t paused_ns(const struct ca_tally *tally, size_t direction, int64_t time_ns)
{
	int64_t before_ns = tally->last_ns[direction], heard_ns = tally->last_ns[direction ^ 1];
	int64_t from_ns = before_ns, to_ns = time_ns;

	if (heard_ns > before_ns && direction & 1)
		to_ns = heard_ns;
	else if (heard_ns > before_ns)
		from_ns = heard_ns;
	return minus(minus(to_ns, from_ns), tally->shut[direction].gap_ns);
}

static void add_data(const struct ca_block *block, size_t row, size_t direction,
		     const struct ca_tally *tally)
{
	const struct ca_facts *facts = &block->facts;
	const struct ca_tracked *tracked = &block->tracked;
	int64_t payload = block->packets.payload_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t pause_ns;

	tally->payload[direction] += payload;
	tally->new_payload[direction] += tracked->new_bytes[row];
	tally->data_frame_bytes[direction] += block->packets.frame_bytes[row];
	tally->full_segments[direction] +=
		(double)payload >= NEARLY_FULL * (double)facts->segment_bytes[direction];
	tally->merged[direction] += payload > facts->longest_bytes[direction];
	if (tracked->kind[row] == KIND_PROBE)
		return;
	if (tally->first_ns[direction] == NEVER) {
		tally->first_new[direction] += tracked->new_bytes[row];
	} else {
		pause_ns = paused_ns(tally, direction, time_ns);
		if (pause_ns >= PAUSE_NS && tracked->kind[row] == KIND_NEW_DATA &&
		    tracked->in_flight_bytes[row] <= payload)
			tally->pause_ns[direction] = plus(tally->pause_ns[direction], pause_ns);
	}
	if (tally->last_ns[direction ^ 1] > tally->last_ns[direction])
		tally->answer_ns[direction] = most(tally->answer_ns[direction],
						   minus(time_ns, tally->last_ns[direction ^ 1]));
	tally->shut[direction].gap_ns = 0;
	pass_time(&tally->first_ns[direction], &tally->last_ns[direction],
		  &tally->back_ns[direction][0], time_ns);
}

static bool is_shut(const struct ca_shut *shut)
{
	return shut->windows && !shut->opened;
}

/* Follows the window of the data that a packet acknowledges: whether it is shut. */
static void add_window(const struct ca_block *block, size_t row, struct ca_shut *shut)
{
	int64_t time_ns = block->packets.time_ns[row], acked = block->tracked.ack_bytes[row];
	int64_t shut_ns;

	if (acked < shut->acked)
		return;			/* it was overtaken */
	/* Times of a file may be any: sums stay in range. */
	shut_ns = shut->until_ns ? most(minus(time_ns, shut->until_ns), 0) : 0;
	shut_ns = least(shut_ns, INT64_MAX - shut->whole_ns);
	shut->whole_ns += shut_ns;
	shut->acked = acked;
	if (is_shut(shut)) {
		shut->ns += shut_ns;
		shut->gap_ns += shut_ns;
		shut->this_ns += shut_ns;
		shut->longest_ns = most(shut->longest_ns, shut->this_ns);
	}
	if (!block->packets.window[row] && (shut->opened || !shut->windows)) {
		shut->windows++;
		shut->this_ns = 0;
	}
	shut->opened = block->packets.window[row] > 0;
	shut->until_ns = time_ns;
}

static void add_ack(const struct ca_block *block, size_t row, size_t direction,
		    const struct ca_tally *tally)
{
	const struct ca_tracked *tracked = &block->tracked;
	int64_t time_ns = block->packets.time_ns[row];

	pass_time(&tally->first_ack_ns[direction], &tally->last_ack_ns[direction],
		  &tally->back_ns[direction][1], time_ns);
	tally->ack_frame_bytes[direction] += block->packets.frame_bytes[row];
	tally->acked[direction] += tracked->acked_bytes[row];
	tally->spaced_acks[direction] += tracked->acked_bytes[row] > 0 && tracked->gap_ns[row] >= 0;
}

void ca_tally_add(const struct ca_block *block, const struct ca_tally *tally)
{
	const struct ca_tracked *tracked = &block->tracked;

	for (size_t row = 0; row < block->rows; row++) {
		size_t direction = block_direction(block, row), flow = direction >> 1;
		const struct ca_shut *shut = &tally->shut[2 * flow];
		uint8_t kind = tracked->kind[row];

		life_add(block, row, is_shut(&shut[0]) || is_shut(&shut[1]), &tally->lives[flow]);
		tally->kinds[direction][kind]++;
		if (block_is_data(block, row))
			add_data(block, row, direction, tally);
		else if (block_is_ack(block, row))
			add_ack(block, row, direction, tally);
		else if (kind == KIND_CONTROL)
			tally->syns[direction] += (block->packets.flags[row] & FLAG_SYN) != 0;
		if (block_acknowledges(block, row))
			add_window(block, row, &tally->shut[block_acknowledged(block, row)]);
		if (tracked->acked_bytes[row])
			tally->acked_ns[block_acknowledged(block, row)] = block->packets.time_ns[row];
		if (tracked->unseen_bytes[row]) {
			int64_t *unseen = tally->unseen[block_acknowledged(block, row)];

			unseen[0] += tracked->unseen_bytes[row];
			unseen[1]++;
		}
	}
}
