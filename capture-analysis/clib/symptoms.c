// SPDX-License-Identifier: GPL-2.0-only
/*
 * A packet counts for the data of its half (`own`), and what it acknowledges for those of the other
 * one. Progress is an ACK of new data.
 */
#include "symptoms.h"

#define DOUBLES 1.5		/* a flight grows in slow start by this, in congestion avoidance not */
#define FLAG_ECE 0x40
#define FLAG_CWR 0x80
#define FLAG_AE 0x100		/* RFC 9768 */
#define COUNTER_AT_FIRST 5	/* RFC 9768, 3.2.2 */
#define OFFERS_ACCURATE 7
#define BYTES_MAX ((int64_t)1 << 44)

static int64_t since_ns(int64_t before_ns, int64_t time_ns)
{
	return before_ns ? most(minus(time_ns, before_ns), 0) : 0;
}

static void add_answer(struct ca_symptoms *own, int64_t time_ns)
{
	int64_t thought_ns = since_ns(own->asked_ns, time_ns);

	if (!own->asked_ns)
		return;
	if (!own->answers++)
		own->first_ns = thought_ns;
	own->answered_ns = plus(own->answered_ns, thought_ns);
	own->longest_ns = most(own->longest_ns, thought_ns);
	own->asked_ns = 0;
}

static void add_loss(struct ca_symptoms *own, int64_t time_ns)
{
	int last = own->losses++ > 0;

	own->loss_ns[last] = time_ns;
	own->loss_bytes[last] = own->bytes;
	own->lost = 1;
}

static void add_again(struct ca_symptoms *own, int64_t start, int64_t payload)
{
	own->repeats = own->again_at == start && own->repeats ? own->repeats + 1 : 1;
	own->again_at = start;
	if (own->repeats > own->repeats_most) {
		own->repeats_most = own->repeats;
		own->repeated = payload;
	}
	own->tails += !own->run && start + payload >= own->high;
	own->run_most = most(own->run_most, ++own->run);
}

static void add_new(const struct ca_block *block, size_t row, struct ca_symptoms *own, int64_t start)
{
	int64_t payload = block->packets.payload_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t flight = block->tracked.in_flight_bytes[row];

	if (payload > own->largest) {
		own->largest = payload;
		own->largest_end = start + payload;
	}
	if (!own->peak)
		own->begun_ns = own->doubled_ns = time_ns;
	if (!own->lost && (double)flight >= DOUBLES * (double)own->peak) {
		own->doubled_ns = own->peak ? time_ns : own->doubled_ns;
		own->peak = flight;
	}
	own->bytes = plus(own->bytes, block->tracked.new_bytes[row]);
}

static void add_data(const struct ca_block *block, size_t row, struct ca_symptoms *own,
		     const struct ca_symptoms *other)
{
	int64_t payload = block->packets.payload_bytes[row], time_ns = block->packets.time_ns[row];
	int64_t start = least(block->tracked.seq_bytes[row], BYTES_MAX);
	uint8_t kind = block->tracked.kind[row];
	bool alone = block->tracked.in_flight_bytes[row] <= payload;

	if (kind == KIND_PROBE) {
		if (own->window) {
			own->keepalives++;
			own->unheard_most = most(own->unheard_most, ++own->unheard);
		}
		return;
	}
	add_answer(own, time_ns);
	if (kind == KIND_NEW_DATA && alone)
		own->idle_ns = since_ns(most(own->last_ns, other->last_ns), time_ns);
	if (kind == KIND_NEW_DATA)
		add_new(block, row, own, start);
	else
		add_loss(own, time_ns);
	if (kind == KIND_RETRANSMISSION)
		add_again(own, start, payload);
	else if (own->edge > 0 && payload < own->largest && start + payload == own->edge &&
		 block->tracked.in_flight_bytes[row] < own->largest)
		own->silly++;
	own->high = most(own->high, start + payload);
}

/* The three bits of ECN in TCP's header, which AccECN uses as a counter. */
static int64_t counter_of(uint16_t flags)
{
	return (flags & FLAG_AE ? 4 : 0) + (flags & FLAG_CWR ? 2 : 0) + (flags & FLAG_ECE ? 1 : 0);
}

/* Whether both ends agreed on AccECN: one offered it, and the other told how its SYN arrived. */
static bool is_accurate(const struct ca_symptoms *own, const struct ca_symptoms *other)
{
	int64_t ends[2] = { own->offered - 1, other->offered - 1 };
	int64_t answer = ends[0] == OFFERS_ACCURATE ? ends[1] : ends[0];

	return (ends[0] == OFFERS_ACCURATE) != (ends[1] == OFFERS_ACCURATE) &&
	       (answer == 2 || answer == 3 || answer == 4 || answer == 6);
}

/* Takes what an ACK says of CE; the first one of the handshake has another code. */
static void add_echo(const struct ca_block *block, size_t row, const struct ca_symptoms *own,
		     struct ca_symptoms *other)
{
	uint16_t flags = block->packets.flags[row];
	int64_t counter = counter_of(flags), before = other->counter ? other->counter - 1 :
								       COUNTER_AT_FIRST;

	other->byte_counters += !!(block->packets.marks[row] & MARK_ACCECN);
	if (!is_accurate(own, other)) {
		other->echoes += (flags & FLAG_ECE) != 0;
	} else if (block->tracked.ack_bytes[row] > 1) {
		other->told += (counter - before) & 7;
		other->counter = counter + 1;
	}
}

static void add_ack(const struct ca_block *block, size_t row, struct ca_symptoms *other)
{
	size_t direction = block_acknowledged(block, row);
	int64_t acked = least(block->tracked.ack_bytes[row], BYTES_MAX);
	int64_t shift = block->facts.window_shift[direction];

	other->window = block->packets.window[row];
	other->acked = most(other->acked, acked);
	if (shift >= 0)
		other->edge = acked + ((int64_t)block->packets.window[row] << shift);
	if (acked >= other->largest_end)
		other->passed = other->largest;
	if (block->tracked.acked_bytes[row])
		other->run = other->repeats = other->idle_ns = 0;
}

void ca_symptoms_add(const struct ca_block *block, struct ca_symptoms *directions)
{
	for (size_t row = 0; row < block->rows; row++) {
		size_t acknowledged = block_acknowledged(block, row);
		struct ca_symptoms *other = &directions[acknowledged];
		struct ca_symptoms *own = &directions[acknowledged ^ 1];
		int64_t time_ns = block->packets.time_ns[row];
		uint8_t kind = block->tracked.kind[row];

		if (kind == KIND_COPY)
			continue;
		if (block->packets.flags[row] & FLAG_SYN)
			own->offered = 1 + counter_of(block->packets.flags[row]);
		if (block_is_data(block, row)) {
			own->ecn[block->packets.marks[row] / MARK_ECN_1 & 3]++;
			own->reduced += block->packets.flags[row] & FLAG_CWR && !is_accurate(own, other);
			add_data(block, row, own, other);
			if (kind != KIND_PROBE)
				other->asked_ns = time_ns;
		}
		if (block_acknowledges(block, row)) {
			add_ack(block, row, other);
			add_echo(block, row, own, other);
		}
		if (block->packets.flags[row] & FLAG_RST && !own->resets++) {
			own->reset_ns = since_ns(most(other->last_ns, own->last_ns), time_ns);
			own->reset_bytes = most(minus(other->high, other->acked), 0);
		}
		other->unheard = 0;
		own->last_ns = time_ns;
	}
}
