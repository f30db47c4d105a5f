// SPDX-License-Identifier: GPL-2.0-only
/* The parser's public functions: recognises the format, and keeps the position in the file. */
#include <stdlib.h>
#include <string.h>

#include "parser.h"
#include "pcap.h"
#include "pcapng.h"
#include "rows.h"

enum container {
	CONTAINER_UNKNOWN,
	CONTAINER_PCAP,
	CONTAINER_PCAPNG,
};

struct ca_parser {
	enum container container;
	struct pcap pcap;
	struct pcapng pcapng;
	uint64_t offset;	/* bytes of the file taken by earlier calls */
	uint64_t damaged_at;	/* start of the damage behind which a record is looked for */
	bool broken;		/* nothing more can be read */
	struct rows rows;
	char damage[TROUBLE_LENGTH];	/* the first damage behind which reading went on */
};

/* Longer damage is not searched: the file is not a capture, or is hostile. */
#define DAMAGE_BYTES_MAX (UINT64_C(64) << 20)

/*
 * Makes a parser for one capture; NULL without memory. The capture's author must not know seed.
 * every_protocol: packets of other IP protocols are rows, too. Otherwise inside: TCP in tunnels is.
 */
struct ca_parser *ca_parser_new(uint64_t seed, bool every_protocol, bool inside)
{
	struct ca_parser *parser = calloc(1, sizeof(*parser));

	if (!parser)
		return NULL;
	parser->rows.last_ns = INT64_MIN;
	parser->rows.every_protocol = every_protocol;
	parser->rows.inside = inside;
	if (!flows_start(&parser->rows.flows, seed, FLOWS_MAX) ||
	    !flows_start(&parser->rows.datagrams.flows, ~seed, DATAGRAM_FLOWS_MAX)) {
		ca_parser_free(parser);
		return NULL;
	}
	return parser;
}

void ca_parser_free(struct ca_parser *parser)
{
	if (!parser)
		return;
	flows_end(&parser->rows.flows);
	datagrams_end(&parser->rows.datagrams);
	pcapng_close(&parser->pcapng);
	free(parser);
}

/* Recognises the file by its first bytes and takes a classic header; false if it is no capture. */
static bool open_container(struct ca_parser *parser, struct view *data)
{
	if (pcapng_open(&parser->pcapng, *data)) {
		parser->container = CONTAINER_PCAPNG;
		return true;
	}
	if (view_be32(*data, 0) == PCAPNG_MAGIC && !view_has(*data, PCAPNG_SECTION_START_BYTES))
		return true;
	if (!pcap_open(&parser->pcap, *data))
		return !view_has(*data, PCAP_FILE_HEADER_BYTES);
	if (view_has(*data, PCAP_FILE_HEADER_BYTES)) {
		parser->container = CONTAINER_PCAP;
		*data = view_after(*data, PCAP_FILE_HEADER_BYTES);
	}
	return true;
}

/* Takes records from the front of data, at an offset in the file; returns how many bytes. */
static size_t take_records(struct ca_parser *parser, struct view data, uint64_t offset)
{
	parser->rows.done = 0;
	if (parser->container == CONTAINER_PCAP)
		pcap_parse(&parser->pcap, data, offset, &parser->rows);
	else if (parser->container == CONTAINER_PCAPNG)
		pcapng_parse(&parser->pcapng, data, offset, &parser->rows);
	return parser->rows.done;
}

/* Finds the first offset, at or behind `at`, where a record is likely or bytes are too few to tell. */
static size_t find_record(const struct ca_parser *parser, struct view data, size_t at, bool last,
			  enum likely *likely)
{
	for (; at < data.length; at++) {
		struct view rest = view_after(data, at);

		*likely = parser->container == CONTAINER_PCAP ?
				  pcap_likely(&parser->pcap, rest, parser->rows.last_ns, last) :
				  pcapng_likely(&parser->pcapng, rest, last);
		if (*likely != UNLIKELY)
			return at;
	}
	*likely = last ? UNLIKELY : UNDECIDED;
	return at;
}

/*
 * Skips the record at *position, which is damaged or cut off by the end of the file.
 * False if no record is likely there, or none yet.
 */
static bool pass_damage(struct ca_parser *parser, struct view data, size_t *position, bool last)
{
	uint64_t here = parser->offset + *position;
	struct rows *rows = &parser->rows;
	enum likely likely;
	size_t at = find_record(parser, view_after(data, *position), here == parser->damaged_at,
				last, &likely);

	if (likely != LIKELY && !rows->damaged)
		return false;
	*position += at;
	if (likely != LIKELY) {
		parser->broken = last || here + at - parser->damaged_at > DAMAGE_BYTES_MAX;
		return false;
	}
	if (!rows->damaged)
		rows_say(rows, "record %" PRIu64 " at byte %" PRIu64
			 " claims more bytes than the file has", rows_frame_number(rows), here);
	if (!rows->counts.damages++)
		memcpy(parser->damage, rows->trouble, TROUBLE_LENGTH);
	rows->counts.damaged_bytes += here + at - parser->damaged_at;
	rows->damaged = false;
	*rows->trouble = '\0';
	return true;
}

/*
 * Takes whole records from the front of bytes until none is left, the columns are full, or reading
 * cannot go on. Sets *taken to the number of bytes taken, *row to the next free row.
 */
enum ca_status ca_parser_parse(struct ca_parser *parser, const uint8_t *bytes, size_t length,
			       bool last, const struct ca_columns *columns, size_t capacity,
			       size_t *taken, size_t *row)
{
	struct view data = { bytes, length }, behind = data;
	struct rows *rows = &parser->rows;
	size_t position;

	*taken = 0;
	if (parser->container == CONTAINER_UNKNOWN && !open_container(parser, &behind))
		return CA_NO_CAPTURE;
	if (parser->container == CONTAINER_UNKNOWN)
		return CA_GOING_ON;
	position = length - behind.length;
	rows->columns = columns;
	rows->capacity = capacity;
	rows->next = *row;
	while (!parser->broken) {
		if (!rows->damaged) {
			position += take_records(parser, view_after(data, position),
						 parser->offset + position);
			parser->damaged_at = parser->offset + position;
			parser->broken = rows->overflow || (*rows->trouble && !rows->damaged);
			if (parser->broken)
				break;
			if (!rows->damaged &&
			    (!last || rows->next == capacity || position == length))
				break;
		}
		if (!pass_damage(parser, data, &position, last))
			break;
	}
	*taken = position;
	*row = rows->next;
	parser->offset += position;
	return parser->broken ? CA_BROKEN : CA_GOING_ON;
}

const struct ca_counts *ca_parser_counts(const struct ca_parser *parser)
{
	return &parser->rows.counts;
}

/* The connections so far; the next call of ca_parser_parse() may move them. */
const struct ca_flow *ca_parser_flows(const struct ca_parser *parser, size_t *count)
{
	*count = parser->rows.flows.count;
	return parser->rows.flows.rows;
}

/* The flows of UDP so far, their directions, and the packets left out; moved by the next call. */
const struct ca_flow *ca_parser_datagrams(const struct ca_parser *parser, size_t *count,
					  const struct ca_datagrams **halves, uint64_t *left_out)
{
	const struct datagrams *datagrams = &parser->rows.datagrams;

	*count = datagrams->flows.count;
	*halves = datagrams->halves ? *datagrams->halves : NULL;
	*left_out = datagrams->left_out;
	return datagrams->flows.rows;
}

/* Writes the link types seen, ascending, as far as there is room; returns their number. */
size_t ca_parser_link_types(const struct ca_parser *parser, uint32_t *types, size_t capacity)
{
	size_t count = 0;

	if (parser->container == CONTAINER_PCAP) {
		if (capacity)
			*types = parser->pcap.link_type;
		return 1;
	}
	for (uint32_t type = 0; type < LINK_TYPES; type++) {
		uint64_t word = parser->pcapng.interfaces.link_types[type / LINK_TYPES_IN_WORD];

		if (!(word >> type % LINK_TYPES_IN_WORD & 1))
			continue;
		if (count < capacity)
			types[count] = type;
		count++;
	}
	return count;
}

/* The file's format in words; empty before it is known. */
const char *ca_parser_format(const struct ca_parser *parser)
{
	switch (parser->container) {
	case CONTAINER_PCAP:
		return pcap_format(&parser->pcap);
	case CONTAINER_PCAPNG:
		return parser->pcapng.began_big_endian ? "pcapng, big-endian" :
							 "pcapng, little-endian";
	default:
		return "";
	}
}

/* The first damage behind which reading went on: a sentence; empty if there is none. */
const char *ca_parser_damage(const struct ca_parser *parser)
{
	return parser->damage;
}

/* The reason why nothing more can be read: a sentence; empty if there is none. */
const char *ca_parser_trouble(const struct ca_parser *parser)
{
	return parser->broken ? parser->rows.trouble : "";
}
