// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracker: follows connections packet by packet. tracking.py defines the columns and kinds;
 * tests/reference/tracker.py is the same algorithm in Python.
 *
 *	copy?  ----------------> COPY       nothing changes
 *	RST?   ----------------> CONTROL    nothing changes
 *	another SYN?  ---------> CONTROL    nothing changes
 *	SYN, or FIN alone?  ---> CONTROL
 *	payload?  -------------> PROBE, NEW_DATA, LATE_DATA or RETRANSMISSION,
 *	                         by the bytes of its half that were seen before
 *	otherwise  ------------> ACK, PROBE, DUPLICATE_ACK, WINDOW_UPDATE or OLD_ACK,
 *	                         by the bytes of the other half that were acknowledged before
 *
 * The kind is decided first, from the state of both halves before the packet; then half_send()
 * updates its own half and half_acknowledge() the other.
 *
 * A few connections are busy at a time, and a connection takes 400 bytes: their state stays in the
 * cache, and the time goes into branches that depend on the packet.
 */
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "track.h"

#define CONNECTIONS_OF_A_SLAB 256	/* 100 KiB */

struct connection {
	struct half halves[2];
};

struct slab {
	struct slab *before;
	size_t used;
	struct connection connections[CONNECTIONS_OF_A_SLAB];
};

struct ca_tracker {
	struct connection **flows;	/* NULL: no packet of that connection yet */
	size_t capacity;
	struct slab *slab;		/* the newest */
	struct ca_forgotten forgotten;
};

struct ca_tracker *ca_tracker_new(void)
{
	return calloc(1, sizeof(struct ca_tracker));
}

void ca_tracker_free(struct ca_tracker *tracker)
{
	struct slab *before;

	if (!tracker)
		return;
	for (struct slab *slab = tracker->slab; slab; slab = before) {
		for (size_t at = 0; at < slab->used; at++) {
			half_end(&slab->connections[at].halves[0]);
			half_end(&slab->connections[at].halves[1]);
		}
		before = slab->before;
		free(slab);
	}
	free(tracker->flows);
	free(tracker);
}

const struct ca_forgotten *ca_tracker_forgotten(const struct ca_tracker *tracker)
{
	return &tracker->forgotten;
}

/* Makes room for a number of flows; false without memory. */
static bool tracker_reserve(struct ca_tracker *tracker, size_t flows)
{
	size_t capacity = flows + flows / 2;
	struct connection **grown;

	if (flows <= tracker->capacity)
		return true;
	if (capacity < flows || capacity > SIZE_MAX / sizeof(*grown))
		return false;
	grown = realloc(tracker->flows, capacity * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + tracker->capacity, 0, (capacity - tracker->capacity) * sizeof(*grown));
	tracker->flows = grown;
	tracker->capacity = capacity;
	return true;
}

/* Allocates a connection without packets; NULL without memory. */
static struct connection *tracker_connect(struct ca_tracker *tracker)
{
	struct slab *slab = tracker->slab;
	struct connection *connection;

	if (!slab || slab->used == CONNECTIONS_OF_A_SLAB) {
		slab = malloc(sizeof(*slab));
		if (!slab)
			return NULL;
		slab->before = tracker->slab;
		slab->used = 0;
		tracker->slab = slab;
	}
	connection = &slab->connections[slab->used++];
	half_start(&connection->halves[0]);
	half_start(&connection->halves[1]);
	return connection;
}

static enum kind kind_of_ack(const struct packet *packet, const struct half *mine,
			     const struct half *other, int64_t start, int64_t ack)
{
	bool outstanding = !other->seen || other->high > other->acked;

	if (ack > other->acked)		/* NO_NUMBER is less than every ack */
		return KIND_ACK;
	if (half_is_probe(mine, packet, start, other->window))
		return KIND_PROBE;
	if (ack < other->acked)
		return KIND_OLD_ACK;
	if (packet->marks & MARK_SACK)
		return outstanding ? KIND_DUPLICATE_ACK : KIND_OLD_ACK;
	if (packet->window != mine->window)
		return KIND_WINDOW_UPDATE;
	return outstanding && packet->window ? KIND_DUPLICATE_ACK : KIND_OLD_ACK;
}

/* The kind of a packet that is no copy and no RST; LATE_DATA is returned as RETRANSMISSION. */
static enum kind kind_of(const struct packet *packet, const struct half *mine,
			 const struct half *other, int64_t start, int64_t ack)
{
	if (packet->flags & FLAG_SYN)
		return KIND_CONTROL;
	if (packet->payload_bytes) {
		if (half_is_probe(mine, packet, start, other->window))
			return KIND_PROBE;
		return start + packet->payload_bytes > mine->high ? KIND_NEW_DATA :
								    KIND_RETRANSMISSION;
	}
	if (packet->flags & FLAG_FIN)
		return KIND_CONTROL;
	if (!(packet->flags & FLAG_ACK))
		return KIND_OLD_ACK;
	return kind_of_ack(packet, mine, other, start, ack);
}

/*
 * Records an acknowledgement; returns how much payload it is the first to acknowledge. Bytes that
 * it acknowledges and the capture lacks prove a hole in the capture, unless one end opened with a
 * SYN and the other did not: then it answers the connection before.
 */
static int64_t take_ack(const struct packet *packet, struct half *mine, struct half *other,
			int64_t ack, int64_t *rtt_ns, int64_t *unseen)
{
	if (packet->flags & FLAG_SYN && other->seen && other->acked > other->high) {
		other->acked = NO_NUMBER;
		ack = half_unwrap(other, packet->ack);
	}
	if (ack >= other->acked)
		mine->window = packet->window;
	if (ack <= other->acked)
		return 0;
	if (other->seen && (other->first == NO_NUMBER || mine->first != NO_NUMBER))
		*unseen = half_unseen(other, ack);
	return half_acknowledge(other, ack, packet->time_ns, rtt_ns);
}

/* Tells why a segment is sent again. */
static enum repair repair_of(const struct packet *packet, struct half *mine, int64_t start)
{
	return repairs_of(&mine->repairs, &(struct again){ start + packet->payload_bytes, mine->acked,
							    mine->high, packet->time_ns });
}

/* Records what a packet shows of losses: of its own half's data, or of the data it acknowledges. */
static void hear(const struct packet *packet, enum kind kind, int64_t acked, struct half *mine,
		 struct half *other)
{
	bool told = kind == KIND_DUPLICATE_ACK ||
		    (packet->marks & MARK_SACK && (int32_t)(packet->sack_right - packet->ack) > 0);

	if (kind == KIND_CONTROL || kind == KIND_COPY)
		return;
	(packet->payload_bytes ? mine : other)->repairs.heard_ns = packet->time_ns;
	if (told || acked)
		other->repairs.told = told;
}

static uint32_t at_most_u32(int64_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* Tracks a packet and writes its row of the columns. */
static void track_packet(const struct packet *packet, struct half *mine, struct half *other,
			 struct ca_forgotten *forgotten, const struct ca_tracked *to, size_t row)
{
	bool has_ack = packet->flags & FLAG_ACK, acknowledges = has_ack && other->seen;
	int64_t start, ack = 0, gap_ns = -1, rtt_ns = -1, acked = 0, unseen = 0;
	enum repair repair = REPAIR_NONE;
	uint32_t new = 0;
	enum kind kind;

	half_begin(mine, packet->seq);
	start = half_unwrap(mine, packet->seq);
	if (has_ack) {
		half_choose(other, packet);
		ack = half_unwrap(other, packet->ack);
	}
	if (half_is_copy(mine, packet)) {
		kind = KIND_COPY;
	} else if (packet->flags & FLAG_RST || half_is_stray(mine, packet, start)) {
		kind = KIND_CONTROL;
	} else {
		if (has_ack && !other->seen && other->acked == NO_NUMBER) {
			other->base = packet->ack;
			ack = 0;
		}
		if (half_is_later(mine, packet->time_ns) || half_is_later(other, packet->time_ns)) {
			half_forget_times(mine);
			half_forget_times(other);
		}
		gap_ns = half_gap(mine, packet);
		kind = kind_of(packet, mine, other, start, ack);
		new = half_send(mine, packet, start, forgotten);
		if (kind == KIND_RETRANSMISSION && new)
			kind = KIND_LATE_DATA;
		if (kind == KIND_RETRANSMISSION)
			repair = repair_of(packet, mine, start);
		if (has_ack)
			acked = take_ack(packet, mine, other, ack, &rtt_ns, &unseen);
		hear(packet, kind, acked, mine, other);
	}
	to->seq_bytes[row] = start;
	to->ack_bytes[row] = acknowledges && ack >= 0 ? ack : -1;
	to->gap_ns[row] = gap_ns;
	to->rtt_ns[row] = rtt_ns;
	to->new_bytes[row] = new;
	to->acked_bytes[row] = at_most_u32(acked);
	to->in_flight_bytes[row] = at_most_u32(half_in_flight(packet->payload_bytes ? mine : other));
	to->unseen_bytes[row] = at_most_u32(unseen);
	to->kind[row] = (uint8_t)kind;
	to->repair[row] = (uint8_t)repair;
}

static struct packet packet_at(const struct ca_columns *from, size_t row)
{
	return (struct packet){
		.time_ns = from->time_ns[row],
		.payload_bytes = from->payload_bytes[row],
		.seq = from->seq[row],
		.ack = from->ack[row],
		.ts_value = from->ts_value[row],
		.ts_echo = from->ts_echo[row],
		.sack_left = from->sack_left[row],
		.sack_right = from->sack_right[row],
		.window = from->window[row],
		.ip_id = from->ip_id[row],
		.flags = from->flags[row],
		.marks = from->marks[row],
	};
}

enum ca_track_status ca_tracker_track(struct ca_tracker *tracker, const struct ca_columns *packets,
				      size_t rows, size_t flows, const struct ca_tracked *tracked)
{
	if (!tracker_reserve(tracker, flows))
		return CA_NO_MEMORY;
	for (size_t row = 0; row < rows; row++) {
		struct packet packet = packet_at(packets, row);
		uint32_t flow = packets->flow[row];
		uint8_t half = packets->half[row];
		struct connection **connection;

		if (flow >= flows || half > 1)
			return CA_NO_SUCH_FLOW;
		connection = &tracker->flows[flow];
		if (!*connection)
			*connection = tracker_connect(tracker);
		if (!*connection)
			return CA_NO_MEMORY;
		track_packet(&packet, &(*connection)->halves[half],
			     &(*connection)->halves[1 - half], &tracker->forgotten, tracked, row);
	}
	return CA_TRACKED;
}
