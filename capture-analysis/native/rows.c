// SPDX-License-Identifier: GPL-2.0-only
/* From a frame to a row: through the layers, to its connection, into the columns. */
#include "ip.h"
#include "link.h"
#include "rows.h"
#include "tcp.h"

static enum fate read_segment(const struct frame *frame, struct segment *segment)
{
	struct link_payload payload;
	struct transport tcp;
	enum fate fate = link_find_ip(frame->link_type, frame->captured, &payload);

	if (fate)
		return fate;

	struct view ip = view_after(frame->captured, payload.offset);
	int64_t room = (int64_t)frame->bytes - (int64_t)payload.offset;

	fate = ip_find_tcp(ip, payload.version, room, segment, &tcp);
	if (fate)
		return fate;
	return tcp_read(view_after(ip, tcp.offset), tcp.bytes, segment);
}

static void write_row(struct rows *rows, const struct frame *frame, const struct segment *segment,
		      const struct place *place)
{
	const struct ca_columns *to = rows->columns;
	size_t row = rows->next++;

	to->time_ns[row] = frame->time_ns;
	to->frame_bytes[row] = frame->bytes;
	to->payload_bytes[row] = segment->payload_bytes;
	to->flow[row] = place->flow;
	to->seq[row] = segment->seq;
	to->ack[row] = segment->ack;
	to->ts_value[row] = segment->ts_value;
	to->ts_echo[row] = segment->ts_echo;
	to->sack_left[row] = segment->sack_left;
	to->sack_right[row] = segment->sack_right;
	to->window[row] = segment->window;
	to->ip_id[row] = segment->ip_id;
	to->interface[row] = frame->interface;
	to->flags[row] = segment->flags;
	to->half[row] = place->half;
	to->marks[row] = segment->marks;
}

/* Counts a frame that is no packet. */
void rows_pass(struct rows *rows, enum fate fate)
{
	rows->counts.frames++;
	rows->counts.fates[fate]++;
}

/* Writes or counts a frame, for which there must be a row; false with trouble. */
bool rows_take(struct rows *rows, const struct frame *frame)
{
	struct segment segment;
	struct place place;
	enum fate fate = read_segment(frame, &segment);

	if (fate == FATE_PACKET) {
		if (!flows_place(&rows->flows, &segment, frame->time_ns, &place)) {
			rows_say(rows, "frame %" PRIu64 " begins connection %" PRIu32
				 ", for which there is no room", rows->counts.frames + 1,
				 rows->flows.count + 1);
			return false;
		}
		write_row(rows, frame, &segment, &place);
		rows->counts.backward += frame->time_ns < rows->last_ns;
		rows->counts.options_cut += !!(segment.marks & MARK_OPTIONS_CUT);
		rows->counts.length_guessed += !!(segment.marks & MARK_LENGTH_GUESSED);
		rows->last_ns = frame->time_ns;
	}
	rows_pass(rows, fate);
	return true;
}
