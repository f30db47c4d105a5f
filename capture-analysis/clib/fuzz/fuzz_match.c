// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary packets are matched (libFuzzer, with sanitisers).
 *
 * The first bytes of the input are a seed, the horizon and the number of lanes; each further seven
 * bytes are a packet of one of two captures. Rows made at once and one by one must be equal, up to
 * the first packet without a lane. Pairs and partners must be those of a search through all rows.
 */
#include "fuzz.h"
#include "../match.h"

#define BYTES_OF_THE_HEAD 11
#define BYTES_OF_A_PACKET 7

struct side {
	struct ca_columns columns;
	struct ca_match_row *rows;
	size_t count;
};

/* Collects the packets of one capture: the lowest bit of a packet's first byte tells which. */
static void side_new(struct side *side, const uint8_t *data, size_t packets, unsigned int which)
{
	side->count = 0;
	for (size_t at = 0; at < packets; at++)
		side->count += (data[at * BYTES_OF_A_PACKET] & 1) == which;
	table_new(&side->columns, side->count);
	side->rows = table_allocate(side->count * sizeof(*side->rows));
	for (size_t at = 0, row = 0; at < packets; at++, data += BYTES_OF_A_PACKET) {
		const struct ca_columns *to = &side->columns;

		if ((data[0] & 1) != which)
			continue;
		/* Few times and keys, so that many are equal; times at both ends of the range. */
		to->time_ns[row] = (int64_t)((uint64_t)data[1] << 56 | data[2]);
		to->flow[row] = data[3];
		to->half[row] = data[0] >> 1 & 1;
		to->flags[row] = data[4];
		to->ip_id[row] = data[5];
		to->seq[row] = to->window[row] = data[6];
		to->ack[row] = to->payload_bytes[row] = to->frame_bytes[row] = 0;
		to->ts_value[row] = to->ts_echo[row] = 0;
		to->sack_left[row] = to->sack_right[row] = 0;
		row++;
	}
}

static void side_free(struct side *side)
{
	table_free(&side->columns);
	free(side->rows);
}

static struct ca_columns one_of(const struct ca_columns *columns, size_t row)
{
	struct ca_columns one;

#define X(name, width) one.name = columns->name + row;
	TABLE_COLUMNS(X)
#undef X
	return one;
}

static void make_rows(struct side *side, struct ca_match_keys keys)
{
	const size_t count = side->count;
	const size_t made = ca_match_rows(&keys, &side->columns, side->columns.time_ns, NULL,
					  count, side->rows);

	for (size_t at = 0; at < count && at <= made; at++) {
		const struct ca_columns one = one_of(&side->columns, at);
		struct ca_match_row row;

		keys.first_order = at;
		check(ca_match_rows(&keys, &one, one.time_ns, one.half, 1, &row) == (at < made));
		row.kind = 0;
		check(at == made || !memcmp(&row, &side->rows[at], sizeof(row)));
	}
	side->count = made;
}

/* The partner of a row by the definition; `over` marks rows that are taken or without partner. */
static size_t partner_of(const struct ca_match_row *a, const struct side *b, int64_t horizon_ns,
			 uint8_t *over)
{
	for (size_t at = 0; at < b->count; at++) {
		int64_t delay_ns;

		if (over[at] || b->rows[at].key != a->key)
			continue;
		delay_ns = (int64_t)((uint64_t)b->rows[at].time_ns - (uint64_t)a->time_ns);
		if (delay_ns > horizon_ns)
			break;
		over[at] = 1;
		if (delay_ns >= -horizon_ns)
			return at;
	}
	return b->count;
}

static void check_join(const struct side *a, const struct side *b, int64_t horizon_ns,
		       uint64_t seed)
{
	const size_t room = a->count < b->count ? a->count : b->count;
	int64_t *a_rows = table_allocate(room * sizeof(*a_rows));
	int64_t *b_rows = table_allocate(room * sizeof(*b_rows));
	uint8_t *over = table_allocate(b->count);
	const size_t pairs = ca_match_join(a->rows, a->count, b->rows, b->count, horizon_ns, seed,
					   a_rows, b_rows);
	size_t pair = 0;

	memset(over, 0, b->count);
	for (size_t at = 0; at < a->count; at++) {
		const size_t partner = partner_of(&a->rows[at], b, horizon_ns, over);

		if (partner == b->count)
			continue;
		check(pair < pairs);
		check(a_rows[pair] == (int64_t)at && b_rows[pair] == (int64_t)partner);
		pair++;
	}
	check(pair == pairs);
	free(a_rows);
	free(b_rows);
	free(over);
}

static int64_t *keys_of(const struct side *side)
{
	int64_t *keys = table_allocate(side->count * sizeof(*keys));

	for (size_t at = 0; at < side->count; at++)
		keys[at] = side->rows[at].key;
	return keys;
}

/* Each row of a takes the first row of b that has its key and is not taken. */
static void check_partners(const struct side *a, const struct side *b, uint64_t seed)
{
	int64_t *a_keys = keys_of(a), *b_keys = keys_of(b);
	int64_t *partners = table_allocate(a->count * sizeof(*partners));
	uint8_t *taken = table_allocate(b->count);

	check(ca_match_partners(a_keys, a->count, b_keys, b->count, seed, partners));
	memset(taken, 0, b->count);
	for (size_t at = 0; at < a->count; at++) {
		size_t row = 0;

		while (row < b->count && (taken[row] || b_keys[row] != a_keys[at]))
			row++;
		check(partners[at] == (row < b->count ? (int64_t)row : -1));
		if (row < b->count)
			taken[row] = 1;
	}
	free(a_keys);
	free(b_keys);
	free(partners);
	free(taken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view head = { data, BYTES_OF_THE_HEAD };
	const uint64_t factors[CA_MATCH_WORDS] = { 3, 5, 7, 11, 13, 17 };
	struct ca_match_keys keys = { .factors = factors };
	struct side a, b;
	uint64_t *lanes;
	size_t packets;

	if (size < BYTES_OF_THE_HEAD)
		return 0;
	packets = (size - BYTES_OF_THE_HEAD) / BYTES_OF_A_PACKET;
	keys.with_ip_id = data[10] & 1;
	keys.lane_count = 2 * (size_t)data[9];
	lanes = table_allocate(keys.lane_count * sizeof(*lanes));
	for (size_t lane = 0; lane < keys.lane_count; lane++)
		lanes[lane] = lane % 4;
	if (data[10] & 2)
		keys.lanes = lanes;
	side_new(&a, data + BYTES_OF_THE_HEAD, packets, 0);
	side_new(&b, data + BYTES_OF_THE_HEAD, packets, 1);
	make_rows(&a, keys);
	make_rows(&b, keys);
	check_join(&a, &b, data[8] == UINT8_MAX ? INT64_MAX : data[8], view_le64(head, 0));
	check_partners(&a, &b, view_le64(head, 0));
	side_free(&a);
	side_free(&b);
	free(lanes);
	return 0;
}
