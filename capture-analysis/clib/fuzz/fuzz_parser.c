// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary bytes as a capture (libFuzzer, with sanitisers).
 *
 * The input is parsed twice, for TCP, for TCP in tunnels, and for every protocol: at once, and as by a reader of a slow pipe, in pieces of any size into
 * a few rows at a time, each piece in memory of its own. Both must give the same rows, counts,
 * connections and sentences; every frame must be counted once; no number may be out of range.
 */
#include "fuzz.h"

#define SEED_WHOLE 1
#define SEED_PIECES 2
#define FEWEST_BYTES_OF_A_ROW 16	/* a record's header */
#define PIECE_ROWS_MAX 5
#define PIECE_BYTES_MAX 300
#define LINK_TYPES_MAX 65536

/* The result of parsing. */
struct outcome {
	struct ca_parser *parser;
	struct ca_columns columns;
	enum ca_status status;
	size_t taken;
	size_t rows;
};

/* Xorshift (Marsaglia, 2003): chooses where to cut. */
static uint32_t cut_at(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

static void parse_whole(const uint8_t *data, size_t size, bool every_protocol, bool inside, size_t capacity,
			struct outcome *whole)
{
	whole->parser = ca_parser_new(SEED_WHOLE, every_protocol, inside);
	check(whole->parser);
	table_new(&whole->columns, capacity);
	whole->rows = 0;
	whole->status = ca_parser_parse(whole->parser, data, size, true, &whole->columns, capacity,
					&whole->taken, &whole->rows);
	check(whole->taken <= size);
	check(whole->rows <= capacity);
}

/* Appends a few rows to the outcome's columns, which have room for `room` rows. */
static void append(struct outcome *outcome, const struct ca_columns *few, size_t rows, size_t room)
{
	check(outcome->rows + rows <= room);
#define X(name, width) memcpy(outcome->columns.name + outcome->rows, few->name, rows * (width));
	TABLE_COLUMNS(X)
#undef X
	outcome->rows += rows;
}

static void parse_pieces(const uint8_t *data, size_t size, bool every_protocol, bool inside, size_t room,
			 struct outcome *pieces)
{
	uint32_t random = (uint32_t)size * 2654435761u | 1;
	struct ca_columns few;
	size_t end = 0;

	pieces->parser = ca_parser_new(SEED_PIECES, every_protocol, inside);
	check(pieces->parser);
	table_new(&pieces->columns, room);
	table_new(&few, PIECE_ROWS_MAX);
	pieces->rows = 0;
	pieces->taken = 0;
	do {
		size_t capacity = 1 + cut_at(&random, PIECE_ROWS_MAX), rows = 0, taken;
		size_t given = end - pieces->taken;
		uint8_t *piece = table_copy(data + pieces->taken, given);

		pieces->status = ca_parser_parse(pieces->parser, piece, given, end == size, &few,
						 capacity, &taken, &rows);
		free(piece);
		check(taken <= given);
		check(rows <= capacity);
		pieces->taken += taken;
		append(pieces, &few, rows, room);
		if (pieces->status != CA_GOING_ON)
			break;
		if (rows < capacity) {
			if (end == size)
				break;
			end += 1 + cut_at(&random, PIECE_BYTES_MAX);
			end = end < size ? end : size;
		}
	} while (true);
	table_free(&few);
}

static void check_sane(const struct outcome *outcome)
{
	const struct ca_counts *counts = ca_parser_counts(outcome->parser);
	uint64_t fates = 0;
	size_t flows;

	ca_parser_flows(outcome->parser, &flows);
	for (int fate = 0; fate < FATES; fate++)
		fates += counts->fates[fate];
	check(fates == counts->frames);
	check(counts->fates[FATE_PACKET] == outcome->rows);
	check(counts->backward + 1 <= outcome->rows || !counts->backward);
	check(flows <= outcome->rows);
	check(counts->damaged_bytes <= outcome->taken);
	check(!counts->damages == !*ca_parser_damage(outcome->parser));
	check((outcome->status == CA_BROKEN) == (*ca_parser_trouble(outcome->parser) != 0));
	for (size_t row = 0; row < outcome->rows; row++) {
		check(outcome->columns.flow[row] < flows);
		check(outcome->columns.half[row] <= 1);
		check(outcome->columns.flags[row] < 512);
	}
}

static void check_same(const struct outcome *a, const struct outcome *b)
{
	static uint32_t types_a[LINK_TYPES_MAX], types_b[LINK_TYPES_MAX];
	const struct ca_flow *flows_a, *flows_b;
	size_t count_a, count_b;

	check(a->status == b->status);
	check(a->taken == b->taken);
	check(a->rows == b->rows);
#define X(name, width) check(!memcmp(a->columns.name, b->columns.name, a->rows * (width)));
	TABLE_COLUMNS(X)
#undef X
	check(!memcmp(ca_parser_counts(a->parser), ca_parser_counts(b->parser),
		      sizeof(struct ca_counts)));
	flows_a = ca_parser_flows(a->parser, &count_a);
	flows_b = ca_parser_flows(b->parser, &count_b);
	check(count_a == count_b);
	check(!memcmp(flows_a, flows_b, count_a * sizeof(*flows_a)));
	check(!strcmp(ca_parser_trouble(a->parser), ca_parser_trouble(b->parser)));
	check(!strcmp(ca_parser_damage(a->parser), ca_parser_damage(b->parser)));
	check(!strcmp(ca_parser_format(a->parser), ca_parser_format(b->parser)));
	count_a = ca_parser_link_types(a->parser, types_a, LINK_TYPES_MAX);
	count_b = ca_parser_link_types(b->parser, types_b, LINK_TYPES_MAX);
	check(count_a == count_b);
	check(!memcmp(types_a, types_b, count_a * sizeof(*types_a)));
}

static void parse_twice(const uint8_t *data, size_t size, bool every_protocol, bool inside)
{
	size_t room = size / FEWEST_BYTES_OF_A_ROW + 1;
	struct outcome whole, pieces;

	parse_whole(data, size, every_protocol, inside, room, &whole);
	check_sane(&whole);
	parse_pieces(data, size, every_protocol, inside, room, &pieces);
	check_sane(&pieces);
	check_same(&whole, &pieces);
	ca_parser_free(whole.parser);
	ca_parser_free(pieces.parser);
	table_free(&whole.columns);
	table_free(&pieces.columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse_twice(data, size, false, false);
	parse_twice(data, size, false, true);
	parse_twice(data, size, true, false);
	return 0;
}
