// SPDX-License-Identifier: GPL-2.0-only
/*
 * A packet adds to ten numbers of its direction, which lie side by side.
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
static int64_t paused_ns(const struct ca_tally *own, const struct ca_tally *other, size_t direction,
			 int64_t time_ns)
{
	int64_t before_ns = own->last_ns, heard_ns = other->last_ns;
	int64_t from_ns = before_ns, to_ns = time_ns;

	if (heard_ns > before_ns && direction & 1)
		to_ns = heard_ns;
	else if (heard_ns > before_ns)
		from_ns = heard_ns;
	return minus(minus(to_ns, from_ns), own->shut.gap_ns);
}

static void add_data(const struct ca_block *block, size_t row, size_t direction,
		     struct ca_tally *directions)
{
	struct ca_tally *own = &directions[direction], *other = &directions[direction ^ 1];
	const struct ca_facts *facts = &block->facts;
	const struct ca_tracked *tracked = &block->tracked;
	int64_t payload = block->packets.payload_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t pause_ns;

	own->payload += payload;
	own->new_payload += tracked->new_bytes[row];
	own->data_frame_bytes += block->packets.frame_bytes[row];
	own->full_segments +=
		(double)payload >= NEARLY_FULL * (double)facts->segment_bytes[direction];
	own->merged += payload > facts->longest_bytes[direction];
	if (tracked->kind[row] == KIND_PROBE)
		return;
	if (own->first_ns == NEVER) {
		own->first_new += tracked->new_bytes[row];
	} else {
		pause_ns = paused_ns(own, other, direction, time_ns);
		if (pause_ns >= PAUSE_NS && tracked->kind[row] == KIND_NEW_DATA &&
		    tracked->in_flight_bytes[row] <= payload)
			own->pause_ns = plus(own->pause_ns, pause_ns);
	}
	if (other->last_ns > own->last_ns)
		own->answer_ns = most(own->answer_ns,
						   minus(time_ns, other->last_ns));
	own->shut.gap_ns = 0;
	pass_time(&own->first_ns, &own->last_ns,
		  &own->back_ns[0], time_ns);
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

static void add_ack(const struct ca_block *block, size_t row, struct ca_tally *own)
{
	const struct ca_tracked *tracked = &block->tracked;
	int64_t time_ns = block->packets.time_ns[row];

	pass_time(&own->first_ack_ns, &own->last_ack_ns,
		  &own->back_ns[1], time_ns);
	own->ack_frame_bytes += block->packets.frame_bytes[row];
	own->acked += tracked->acked_bytes[row];
	own->spaced_acks += tracked->acked_bytes[row] > 0 && tracked->gap_ns[row] >= 0;
}

void ca_tally_add(const struct ca_block *block, struct ca_tally *directions, struct ca_life *lives)
{
	const struct ca_tracked *tracked = &block->tracked;

	for (size_t row = 0; row < block->rows; row++) {
		size_t direction = block_direction(block, row), flow = direction >> 1;
		const struct ca_tally *ends = &directions[2 * flow];
		struct ca_tally *acknowledged = &directions[block_acknowledged(block, row)];
		uint8_t kind = tracked->kind[row];

		life_add(block, row, is_shut(&ends[0].shut) || is_shut(&ends[1].shut), &lives[flow]);
		directions[direction].kinds[kind]++;
		if (block_is_data(block, row))
			add_data(block, row, direction, directions);
		else if (block_is_ack(block, row))
			add_ack(block, row, &directions[direction]);
		else if (kind == KIND_CONTROL)
			directions[direction].syns += (block->packets.flags[row] & FLAG_SYN) != 0;
		if (block_acknowledges(block, row))
			add_window(block, row, &acknowledged->shut);
		if (tracked->acked_bytes[row])
			acknowledged->acked_ns = block->packets.time_ns[row];
		if (tracked->unseen_bytes[row]) {
			acknowledged->unseen[0] += tracked->unseen_bytes[row];
			acknowledged->unseen[1]++;
		}
	}
}
