// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time between two packets of a connection belongs to one cause:
 *
 *     connect   no packet after the handshake was seen yet
 *     window    the window of a half was 0
 *     repair    the packet is data sent again or late, or follows data sent again, without progress
 *     network   data was on its way: the packet acknowledges, or follows data that nothing
 *               acknowledged yet, or data without PSH, seen far from its sender, which had more
 *     half      otherwise: the packet's sender, if it has new data, or sent the last data and only
 *               keeps the connection alive; else the half that did not send the last data
 *
 * Small data of the half that sent the last data, and then its FIN, are its last words (an alert of
 * TLS), for which the other end did not wait.
 *
 * A wait lasts until the connection makes progress: new data, or an ACK of some. Its longest gap
 * names its cause. It is a stall from STALL_NS and three round trips of the handshake on.
 */
#include "life.h"

#define STALL_NS 200000000	/* the shortest retransmission timer of Linux */
#define LATE_ACK_NS 500000000	/* RFC 9293, 3.8.6.3 */
#define STALL_TRIPS 3
#define LAST_WORDS_BYTES 100

static enum wait wait_of(const struct ca_block *block, size_t row, bool shut,
			 const struct ca_life *life)
{
	const struct ca_tracked *tracked = &block->tracked;
	uint8_t kind = tracked->kind[row], half = block->packets.half[row];
	uint8_t last = !!(life->seen & LIFE_LAST);

	if (!(life->seen & LIFE_CONNECTED))
		return WAIT_CONNECT;
	if (shut)
		return WAIT_WINDOW;
	if (kind == KIND_RETRANSMISSION || kind == KIND_LATE_DATA || life->seen & LIFE_REPAIRING)
		return WAIT_REPAIR;
	if (kind == KIND_NEW_DATA)
		return tracked->in_flight_bytes[row] > block->packets.payload_bytes[row] ||
		       (half == last && life->seen & LIFE_MORE) ?
		       WAIT_NETWORK : (enum wait)(WAIT_HALF + half);
	if (tracked->acked_bytes[row])
		return WAIT_NETWORK;
	if (half == last && !(block->packets.flags[row] & (FLAG_FIN | FLAG_RST)))
		return WAIT_HALF + half;
	return WAIT_HALF + !last;
}

/* The shortest stall. A receiver may delay an ACK by half a second, and delays no data by that. */
static int64_t stall_ns(const struct ca_life *life, enum wait wait)
{
	if (wait == WAIT_CONNECT)
		return STALL_NS;
	return most(wait == WAIT_NETWORK ? LATE_ACK_NS : STALL_NS,
		    STALL_TRIPS * least(life->trip_ns, INT64_MAX / STALL_TRIPS));
}

static void add_wait(struct ca_life *life, enum wait wait, int64_t gap_ns)
{
	int64_t before_ns = life->this_ns, *stalled_ns, least_ns;

	if (gap_ns >= life->gap_ns) {
		life->gap_ns = gap_ns;
		life->wait = wait;
	}
	wait = (enum wait)life->wait;
	least_ns = stall_ns(life, wait);
	life->this_ns = gap_ns < INT64_MAX - before_ns ? before_ns + gap_ns : INT64_MAX;
	if (life->this_ns < least_ns)
		return;
	stalled_ns = &life->stalled_ns[wait];
	*stalled_ns = plus(*stalled_ns, before_ns < least_ns ? life->this_ns : gap_ns);
	if (life->this_ns > life->longest_ns[wait]) {
		life->longest_ns[wait] = life->this_ns;
		life->begun_ns[wait] = minus(plus(life->last_ns, gap_ns), life->this_ns);
	}
}

/* Follows the handshake: its first SYN, its answer, and the first packet after it. */
static void add_handshake(const struct ca_block *block, size_t row, struct ca_life *life)
{
	uint16_t flags = block->packets.flags[row] & (FLAG_SYN | FLAG_ACK | FLAG_RST);
	int64_t time_ns = block->packets.time_ns[row];
	uint8_t half = block->packets.half[row];

	if (flags == FLAG_SYN) {
		if (!(life->seen & LIFE_SYN))
			life->syn_ns = time_ns;
		life->again_ns = time_ns;
		life->seen |= LIFE_SYN;
	} else if (flags & FLAG_SYN) {
		life->seen |= LIFE_ANSWERED;
	} else if (!(flags & FLAG_RST) && !(life->seen & LIFE_CONNECTED) &&
		   (!half || !(life->seen & LIFE_SYN) || life->seen & LIFE_ANSWERED)) {
		life->seen |= LIFE_CONNECTED;
		if (life->seen & LIFE_SYN) {
			/* A clock may be set back meanwhile. */
			life->connect_ns = most(minus(time_ns, life->syn_ns), 0);
			life->trip_ns = most(minus(time_ns, life->again_ns), 0);
		}
	}
}

static void add_data(const struct ca_block *block, size_t row, struct ca_life *life)
{
	uint8_t half = block->packets.half[row];

	if (!(life->seen & LIFE_DATA << half))
		life->data_ns[half] = block->packets.time_ns[row];
	life->seen |= LIFE_DATA << half;
	life->seen &= ~(int64_t)(LIFE_LAST | LIFE_MORE);
	if (half)
		life->seen |= LIFE_LAST;
	if (!(block->packets.flags[row] & FLAG_PSH) &&
	    block->facts.tap_at[block_direction(block, row)] > NEAR)
		life->seen |= LIFE_MORE;
}

/* Follows the handshake of TLS: each part is of one end and has its mark. */
static void add_tls(uint16_t marks, uint8_t half, int64_t time_ns, struct ca_life *life)
{
	static const uint16_t parts[TLS_PARTS] = { MARK_CLIENT_HELLO, MARK_SERVER_HELLO,
						   MARK_ENCRYPTED, MARK_ENCRYPTED };
	int64_t part = life->tls >> 1;

	if (part == TLS_PARTS || !(marks & parts[part]))
		return;
	if (!part)
		life->tls = half;
	if (half != ((life->tls ^ part) & 1))
		return;
	life->tls_ns[part] = time_ns;
	life->tls += 2;
}

static void keep_waits(struct ca_life *life)
{
	for (unsigned int half = 0; half < 2; half++) {
		life->before_ns[half][0] = life->stalled_ns[half];
		life->before_ns[half][1] = life->longest_ns[half];
		life->before_ns[half][2] = life->begun_ns[half];
	}
}

/* Undoes the wait for a half's last words. */
static void end_words(struct ca_life *life, uint8_t half)
{
	if (life->closing != half + 1)
		return;
	life->stalled_ns[half] = life->before_ns[half][0];
	life->longest_ns[half] = life->before_ns[half][1];
	life->begun_ns[half] = life->before_ns[half][2];
}

void life_add(const struct ca_block *block, size_t row, bool shut, struct ca_life *life)
{
	uint8_t kind = block->tracked.kind[row], half = block->packets.half[row];
	uint16_t flags = block->packets.flags[row];
	int64_t time_ns = block->packets.time_ns[row];
	bool progress = kind == KIND_NEW_DATA || kind == KIND_LATE_DATA ||
			block->tracked.acked_bytes[row];
	int64_t connecting = life->seen & LIFE_CONNECTED;

	if (kind == KIND_COPY)
		return;
	/* The difference of times of a file may be beyond 64 bits. */
	if (life->last_ns && time_ns > life->last_ns && minus(time_ns, life->last_ns) > 0) {
		life->time_ns = plus(life->time_ns, minus(time_ns, life->last_ns));
		add_wait(life, wait_of(block, row, shut, life), minus(time_ns, life->last_ns));
	}
	life->seen |= LIFE_HEARD << half;
	add_handshake(block, row, life);
	if (kind == KIND_NEW_DATA || kind == KIND_LATE_DATA) {
		bool last = life->seen & LIFE_DATA << half && half == !!(life->seen & LIFE_LAST);

		if (!last || block->packets.payload_bytes[row] > LAST_WORDS_BYTES)
			life->closing = 0;
		else if (!life->closing)
			life->closing = half + 1;
		add_data(block, row, life);
		add_tls(block->packets.marks[row], half, time_ns, life);
	}
	if (flags & FLAG_RST) {
		life->seen |= LIFE_RST << half;
	} else if (flags & FLAG_FIN) {
		life->seen |= LIFE_FIN << half;
		end_words(life, half);
	}
	if (progress)
		life->seen &= ~(int64_t)LIFE_REPAIRING;
	if (kind == KIND_RETRANSMISSION)
		life->seen |= LIFE_REPAIRING;
	if (progress || connecting != (life->seen & LIFE_CONNECTED)) {
		life->this_ns = life->gap_ns = 0;
		if (!life->closing)
			keep_waits(life);
	}
	life->last_ns = time_ns;
}
