// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender's order of events: an ACK waits in its direction's queue until data come that passed
 * the tap no earlier than the ACK reaches their sender. Time counts up to the last data.
 */
#include <stdbool.h>

#include "afar.h"

/* The loop from the tap to the sender and back takes up to this multiple of its shortest time. */
#define LATER 1.1
#define LATER_NS 1e6
#define BYTES_MAX ((int64_t)1 << 44)

static int64_t highest(int64_t before, int64_t value)
{
	return most(before, least(value, BYTES_MAX));
}

/* Counts the time up to an event by its cause. */
static void spend(const struct ca_facts *facts, size_t direction, struct ca_afar *kept,
		  int64_t time_ns, int64_t *spent_ns)
{
	bool known = kept->last_ns >= 0 && kept->sent >= 0;
	int64_t waited_ns = known ? most(minus(time_ns, kept->last_ns), 0) : 0;
	bool full = facts->window_shift[direction] >= 0 && kept->edge >= 0 &&
		    kept->sent + facts->segment_bytes[direction] > kept->edge;
	size_t cause = kept->acked < kept->repaired ? AFAR_RECOVERY : full ? AFAR_RECEIVER :
								      AFAR_SENDER;

	spent_ns[cause] = plus(spent_ns[cause], waited_ns);
	kept->last_ns = most(kept->last_ns, time_ns);
}

/* Puts an ACK into its direction's queue. */
static void expect(const struct ca_block *block, size_t row, size_t direction, struct ca_afar *kept,
		   struct ca_all_coming *coming)
{
	const struct ca_facts *facts = &block->facts;
	double loop_ns = facts->tap_at[direction] * facts->round_trip_ns[direction];
	int64_t acked = block->tracked.ack_bytes[row];
	int64_t shift = most(facts->window_shift[direction], 0);
	int64_t at = coming->free;
	struct ca_coming *ack = &coming->rows[at];

	coming->free = ack->next;
	*ack = (struct ca_coming){
		.time_ns = plus(block->packets.time_ns[row], whole_ns(LATER * loop_ns + LATER_NS)),
		.acked = acked,
		.edge = acked + ((int64_t)block->packets.window[row] << shift),
		.next = -1,
	};
	if (kept->oldest < 0)
		kept->oldest = at;
	else
		coming->rows[kept->newest].next = at;
	kept->newest = at;
}

/* Lets the ACKs reach the sender that arrive there by a time; returns how many. */
static int64_t arrive(const struct ca_facts *facts, size_t direction, struct ca_afar *kept,
		      int64_t time_ns, struct ca_all_coming *coming, int64_t *spent_ns)
{
	int64_t arrived = 0;

	while (kept->oldest >= 0 && coming->rows[kept->oldest].time_ns <= time_ns) {
		int64_t at = kept->oldest;
		struct ca_coming *ack = &coming->rows[at];

		spend(facts, direction, kept, ack->time_ns, spent_ns);
		kept->acked = highest(kept->acked, ack->acked);
		kept->edge = highest(kept->edge, ack->edge);
		kept->oldest = ack->next;
		ack->next = coming->free;
		coming->free = at;
		arrived++;
	}
	return arrived;
}

static void send(const struct ca_block *block, size_t row, size_t direction, struct ca_afar *kept,
		 int64_t *spent_ns)
{
	int64_t start = block->tracked.seq_bytes[row];
	uint8_t kind = block->tracked.kind[row];
	bool opens = kept->sent >= 0 && start > kept->sent;	/* a hole */

	spend(&block->facts, direction, kept, block->packets.time_ns[row], spent_ns);
	kept->sent = highest(kept->sent, start + block->packets.payload_bytes[row]);
	if (opens || kind == KIND_RETRANSMISSION || kind == KIND_LATE_DATA)
		kept->repaired = kept->sent;
}

int64_t ca_afar_add(const struct ca_block *block, struct ca_afar *directions,
		    struct ca_all_coming *coming, int64_t (*spent_ns)[AFAR_CAUSES])
{
	int64_t taken = 0;

	for (size_t row = 0; row < block->rows; row++) {
		size_t direction = block_direction(block, row);
		struct ca_afar *kept = &directions[direction];

		if (!(block->facts.tap_at[direction] > NEAR))
			continue;
		if (block_is_data(block, row)) {
			taken -= arrive(&block->facts, direction, kept, block->packets.time_ns[row],
					coming, spent_ns[direction]);
			send(block, row, direction, kept, spent_ns[direction]);
		} else if (block_is_ack(block, row) && block->tracked.ack_bytes[row] >= 0) {
			expect(block, row, direction, kept, coming);
			taken++;
		}
	}
	return taken;
}
