// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary packets are tracked (libFuzzer, with sanitisers).
 *
 * Each twelve bytes of the input are a packet of one of two connections. The packets are tracked
 * three times: at once, a few at a time, and each connection alone. All must give the same rows,
 * and each row must be consistent in itself (check_row).
 */
#include "fuzz.h"
#include "../half.h"
#include "../track.h"

#define FLOWS 2
#define BYTES_OF_A_PACKET 12
#define PIECE_ROWS_MAX 7
#define TICK_NS 100000

static const uint16_t FLAGS[] = {
	FLAG_ACK, FLAG_ACK, FLAG_ACK | FLAG_FIN, FLAG_SYN, FLAG_SYN | FLAG_ACK, FLAG_RST, 0, 511,
};

static void tracked_new(struct ca_tracked *tracked, size_t rows)
{
#define X(name, width) tracked->name = table_allocate(rows * (width));
	TRACKED_COLUMNS(X)
#undef X
}

static void tracked_free(struct ca_tracked *tracked)
{
#define X(name, width) free(tracked->name);
	TRACKED_COLUMNS(X)
#undef X
}

/* The packets from a row on; tracked_from() returns the same rows of the results. */
static struct ca_columns packets_from(const struct ca_columns *packets, size_t row)
{
	struct ca_columns rest;

#define X(name, width) rest.name = packets->name + row;
	TABLE_COLUMNS(X)
#undef X
	return rest;
}

static struct ca_tracked tracked_from(const struct ca_tracked *tracked, size_t row)
{
	struct ca_tracked rest;

#define X(name, width) rest.name = tracked->name + row;
	TRACKED_COLUMNS(X)
#undef X
	return rest;
}

static void read_packets(const uint8_t *data, size_t rows, struct ca_columns *packets)
{
	int64_t time_ns = 0;

	table_new(packets, rows);
#define X(name, width) memset(packets->name, 0, rows * (width));
	TABLE_COLUMNS(X)
#undef X
	for (size_t row = 0; row < rows; row++, data += BYTES_OF_A_PACKET) {
		struct view view = { data, BYTES_OF_A_PACKET };

		time_ns += (int8_t)data[1] * (int64_t)TICK_NS;
		packets->time_ns[row] = time_ns;
		packets->half[row] = data[0] & 1;
		packets->flow[row] = data[0] >> 1 & 1;
		packets->flags[row] = FLAGS[data[0] >> 2 & 7];
		packets->marks[row] = data[0] & 32 ? MARK_SACK : 0;
		packets->ip_id[row] = data[0] >> 6;
		packets->window[row] = data[1] & 3;
		packets->payload_bytes[row] = view_le16(view, 2);
		packets->seq[row] = view_le32(view, 4);
		packets->ack[row] = view_le32(view, 8);
	}
}

static void track(struct ca_tracker *tracker, const struct ca_columns *packets, size_t row,
		  size_t rows, const struct ca_tracked *tracked)
{
	struct ca_columns from = packets_from(packets, row);
	struct ca_tracked to = tracked_from(tracked, row);

	check(ca_tracker_track(tracker, &from, rows, FLOWS, &to) == CA_TRACKED);
}

static void track_pieces(const struct ca_columns *packets, size_t rows,
			 const struct ca_tracked *tracked)
{
	struct ca_tracker *tracker = ca_tracker_new();
	size_t piece;

	check(tracker);
	for (size_t row = 0; row < rows; row += piece) {
		piece = 1 + row % PIECE_ROWS_MAX;
		piece = piece < rows - row ? piece : rows - row;
		track(tracker, packets, row, piece, tracked);
	}
	ca_tracker_free(tracker);
}

/* Tracks each connection by a tracker of its own, packet by packet. */
static void track_alone(const struct ca_columns *packets, size_t rows,
			const struct ca_tracked *tracked)
{
	for (uint32_t flow = 0; flow < FLOWS; flow++) {
		struct ca_tracker *tracker = ca_tracker_new();

		check(tracker);
		for (size_t row = 0; row < rows; row++) {
			if (packets->flow[row] == flow)
				track(tracker, packets, row, 1, tracked);
		}
		ca_tracker_free(tracker);
	}
}

static void check_row(const struct ca_columns *packets, const struct ca_tracked *tracked,
		      size_t row)
{
	uint32_t payload = packets->payload_bytes[row], new = tracked->new_bytes[row];
	uint8_t kind = tracked->kind[row];

	check(kind <= KIND_COPY);
	check(new <= payload);
	check(tracked->ack_bytes[row] >= -1);
	check(tracked->gap_ns[row] >= -1);
	check(tracked->rtt_ns[row] >= -1);
	if (kind == KIND_NEW_DATA || kind == KIND_LATE_DATA)
		check(new);
	if (kind == KIND_RETRANSMISSION)
		check(payload && !new);
	if (kind >= KIND_ACK && kind <= KIND_OLD_ACK)
		check(!payload);
	check(!tracked->repair[row] == (kind != KIND_RETRANSMISSION));
	check(tracked->repair[row] <= REPAIR_OTHER);
	if (kind == KIND_PROBE)
		check(payload <= 1);
	check(tracked->unseen_bytes[row] <= tracked->acked_bytes[row]);
	if (kind > KIND_ACK && kind <= KIND_COPY)
		check(!tracked->acked_bytes[row] && tracked->rtt_ns[row] == -1);
	if (kind == KIND_COPY)
		check(!new && tracked->gap_ns[row] == -1);
}

static void check_same(const struct ca_tracked *a, const struct ca_tracked *b, size_t rows)
{
#define X(name, width) check(!memcmp(a->name, b->name, rows * (width)));
	TRACKED_COLUMNS(X)
#undef X
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t rows = size / BYTES_OF_A_PACKET;
	struct ca_tracked whole, pieces, alone;
	struct ca_columns packets;
	struct ca_tracker *tracker = ca_tracker_new();

	check(tracker);
	read_packets(data, rows, &packets);
	tracked_new(&whole, rows);
	tracked_new(&pieces, rows);
	tracked_new(&alone, rows);
	track(tracker, &packets, 0, rows, &whole);
	track_pieces(&packets, rows, &pieces);
	track_alone(&packets, rows, &alone);
	for (size_t row = 0; row < rows; row++)
		check_row(&packets, &whole, row);
	check_same(&whole, &pieces, rows);
	check_same(&whole, &alone, rows);
	ca_tracker_free(tracker);
	table_free(&packets);
	tracked_free(&whole);
	tracked_free(&pieces);
	tracked_free(&alone);
	return 0;
}
