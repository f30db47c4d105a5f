// SPDX-License-Identifier: GPL-2.0-only
/* Turns a frame into a row: through the layers, to its connection, into the columns. */
#include "layers.h"
#include "rows.h"
#include "tunnel.h"

/* The most tunnels around a packet that are followed. */
#define TUNNELS_MAX 4

static enum fate read_segment(const struct frame *frame, struct rows *rows,
			      struct segment *segment);

/*
 * Reads the frame in a tunnel, if this is one and tunnels are read; counts tunnels, by the
 * outermost, and other packets of UDP.
 */
static enum fate read_inside(const struct frame *frame, size_t offset, int64_t bytes,
			     struct rows *rows, struct segment *segment)
{
	struct view outer = view_after(frame->captured, offset);
	struct frame inner = *frame;
	struct carried carried;
	enum tunnel tunnel = tunnel_find(outer, segment->protocol, &carried);
	enum fate fate;

	if (tunnel == NO_TUNNEL) {
		if (segment->protocol != PROTOCOL_UDP)
			return FATE_NOT_TCP;
		return datagrams_add(&rows->datagrams, frame, outer, bytes, segment) ?
		       FATE_NOT_TCP : FATE_TOO_SHORT;
	}
	if (!rows->depth)
		rows->counts.tunnels[tunnel]++;
	if (!rows->inside || rows->depth == TUNNELS_MAX)
		return FATE_NOT_TCP;
	offset += carried.offset;
	if (offset > frame->captured.length)
		return FATE_TOO_SHORT;
	inner.captured = view_after(frame->captured, offset);
	inner.bytes -= (uint32_t)offset;
	inner.link_type = carried.link_type;
	rows->depth++;
	fate = read_segment(&inner, rows, segment);
	rows->depth--;
	return fate;
}

static enum fate read_segment(const struct frame *frame, struct rows *rows,
			      struct segment *segment)
{
	bool every_protocol = rows->every_protocol;
	struct link_payload payload;
	struct transport found;
	enum fate fate = link_find_ip(frame->link_type, frame->captured, &payload);

	if (fate)
		return fate;
	segment->vlans = payload.vlans;

	struct view ip = view_after(frame->captured, payload.offset);
	int64_t room = (int64_t)frame->bytes - (int64_t)payload.offset;

	fate = ip_find_transport(ip, payload.version, room, every_protocol, segment, &found);
	if (fate == FATE_NOT_TCP && !found.later)
		return read_inside(frame, payload.offset + found.offset, found.bytes, rows, segment);
	if (fate)
		return fate;
	ip = view_after(ip, found.offset);
	if (found.later || segment->protocol != PROTOCOL_TCP)
		return datagram_read(ip, found.bytes, found.later, segment);
	return tcp_read(ip, found.bytes, segment);
}

static void write_row(struct rows *rows, const struct waiting *frame, const struct place *place)
{
	const struct segment *segment = &frame->segment;
	const struct ca_columns *to = rows->columns;
	size_t row = rows->next++;

	to->time_ns[row] = frame->time_ns;
	to->frame_bytes[row] = frame->frame_bytes;
	to->payload_bytes[row] = segment->payload_bytes;
	to->flow[row] = place->flow;
	to->seq[row] = segment->seq;
	to->ack[row] = segment->ack;
	to->ts_value[row] = segment->ts_value;
	to->ts_echo[row] = segment->ts_echo;
	to->sack_left[row] = segment->sack_left;
	to->sack_right[row] = segment->sack_right;
	to->frame[row] = (uint32_t)(rows->counts.frames + 1);
	to->window[row] = segment->window;
	to->ip_id[row] = segment->ip_id;
	to->interface[row] = frame->interface;
	to->flags[row] = segment->flags;
	to->half[row] = place->half;
	to->marks[row] = segment->marks;
}

/* Writes the row of a frame, or counts the frame; false if its connection has no room. */
static bool take(struct rows *rows, const struct waiting *frame)
{
	struct ca_counts *counts = &rows->counts;
	struct place place;

	if (frame->fate == FATE_PACKET) {
		if (!flows_place(&rows->flows, &frame->segment, frame->time_ns, &place)) {
			rows_say(rows, "frame %" PRIu64 " begins connection %" PRIu32
				 ", for which there is no room", counts->frames + 1,
				 rows->flows.count + 1);
			return false;
		}
		write_row(rows, frame, &place);
		counts->backward += frame->time_ns < rows->last_ns;
		counts->options_cut += !!(frame->segment.marks & MARK_OPTIONS_CUT);
		counts->length_guessed += !!(frame->segment.marks & MARK_LENGTH_GUESSED);
		counts->length_beyond += !!(frame->segment.marks & MARK_LENGTH_BEYOND);
		counts->fraction_beyond += frame->fraction_beyond;
		rows->last_ns = frame->time_ns;
	}
	counts->frames++;
	counts->fates[frame->fate]++;
	return true;
}

/*
 * Turns the waiting frames into rows; their records end at byte `end`. Stops at a frame for whose
 * connection there is no room (overflow).
 */
void rows_settle(struct rows *rows, size_t end)
{
	const struct waiting *waiting = rows->waiting;
	unsigned int count = rows->waiting_count;

	if (rows->overflow)
		return;
	for (unsigned int k = 0; k < count; k++)
		if (waiting[k].fate == FATE_PACKET)
			flows_expect_row(&rows->flows, &waiting[k].segment);
	for (unsigned int k = 0; k < count && !rows->overflow; k++) {
		rows->overflow = !take(rows, &waiting[k]);
		if (rows->overflow)
			end = waiting[k].start;
	}
	rows->waiting_count = 0;
	rows->done = end;
}

/* Tells whether a frame can be added behind records that end at byte `end`. */
bool rows_room(struct rows *rows, size_t end)
{
	if (rows->waiting_count == ROWS_BATCH ||
	    rows->next + rows->waiting_count == rows->capacity)
		rows_settle(rows, end);
	return !rows->overflow && rows->next < rows->capacity;
}

/* Adds a frame, whose record starts at byte `start` of this call; rows_room() must be true. */
void rows_add(struct rows *rows, const struct frame *frame, size_t start)
{
	struct waiting *waiting = &rows->waiting[rows->waiting_count++];
	struct frame inside = link_without_pktap(frame);

	waiting->fate = read_segment(&inside, rows, &waiting->segment);
	waiting->frame_bytes = inside.bytes;
	waiting->time_ns = frame->time_ns;
	waiting->start = start;
	waiting->interface = frame->interface;
	waiting->fraction_beyond = frame->fraction_beyond;
	if (waiting->fate == FATE_PACKET)
		flows_expect(&rows->flows, &waiting->segment);
}

/* Adds a frame whose record alone shows that it is no packet; rows_room() must be true. */
void rows_add_unread(struct rows *rows, enum fate fate, size_t start)
{
	struct waiting *waiting = &rows->waiting[rows->waiting_count++];

	waiting->fate = fate;
	waiting->start = start;
}
