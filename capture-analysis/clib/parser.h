/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parser: takes bytes of a capture, writes columns of its TCP packets, or of all IP packets.
 *
 *	struct ca_parser *parser = ca_parser_new(seed, every_protocol, inside);
 *	do {
 *		... append the file's next bytes to those that were not taken ...
 *		row = 0;
 *		status = ca_parser_parse(parser, bytes, length, last, &columns, capacity, &taken,
 *					 &row);
 *		... use the rows before row ...
 *	} while (status == CA_GOING_ON);
 *	ca_parser_free(parser);
 *
 * The loop ends when `last` was true (the file ends with these bytes) and rows are left free.
 * Damaged records are skipped up to the next likely ones.
 *
 * The parser takes whole records only, so it does not matter where the bytes are cut. Nothing here
 * reads files, and no number in a file decides how much is allocated, except for the tables of
 * connections (flows.h) and of interfaces (pcapng.h), which have limits.
 */
#ifndef CAPTURE_ANALYSIS_PARSER_H
#define CAPTURE_ANALYSIS_PARSER_H

#include <stddef.h>
#include <stdint.h>

#include "datagrams.h"
#include "tunnel.h"

#define CA_API __attribute__((visibility("default")))

/* Owned by the caller, with room for the capacity passed along. See Packets in columns.py. */
struct ca_columns {
	int64_t *time_ns;
	uint32_t *frame_bytes;
	uint32_t *payload_bytes;
	uint32_t *flow;
	uint32_t *seq;
	uint32_t *ack;
	uint32_t *ts_value;
	uint32_t *ts_echo;
	uint32_t *sack_left;
	uint32_t *sack_right;
	uint32_t *frame;
	uint16_t *window;
	uint16_t *ip_id;
	uint16_t *interface;
	uint16_t *flags;
	uint8_t *half;
	uint16_t *marks;
};

/* Laid out as Counts in parsing.py. */
struct ca_counts {
	uint64_t frames;
	uint64_t fates[FATES];
	uint64_t backward;
	uint64_t options_cut;
	uint64_t length_guessed;
	uint64_t length_beyond;
	uint64_t fraction_beyond;
	uint64_t other_blocks;
	uint64_t tunnels[TUNNELS];
	uint64_t damages;
	uint64_t damaged_bytes;
};

enum ca_status {
	CA_GOING_ON,		/* give more bytes or more room */
	CA_NO_CAPTURE,		/* the first bytes are not those of a capture file */
	CA_BROKEN,		/* nothing more can be read: ca_parser_trouble() */
};

struct ca_parser;

CA_API struct ca_parser *ca_parser_new(uint64_t seed, bool every_protocol, bool inside);
CA_API void ca_parser_free(struct ca_parser *parser);
CA_API enum ca_status ca_parser_parse(struct ca_parser *parser, const uint8_t *bytes, size_t length,
				      bool last, const struct ca_columns *columns, size_t capacity,
				      size_t *taken, size_t *rows);
CA_API const struct ca_counts *ca_parser_counts(const struct ca_parser *parser);
CA_API const struct ca_flow *ca_parser_flows(const struct ca_parser *parser, size_t *count);
CA_API const struct ca_flow *ca_parser_datagrams(const struct ca_parser *parser, size_t *count,
						 const struct ca_datagrams **halves,
						 uint64_t *left_out);
CA_API size_t ca_parser_link_types(const struct ca_parser *parser, uint32_t *types,
				   size_t capacity);
CA_API const char *ca_parser_format(const struct ca_parser *parser);
CA_API const char *ca_parser_damage(const struct ca_parser *parser);
CA_API const char *ca_parser_trouble(const struct ca_parser *parser);

#endif
