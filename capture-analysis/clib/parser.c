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
	struct rows rows;
};

/*
 * Makes a parser for one capture; NULL without memory. The capture's author must not know seed.
 * every_protocol: other IP packets than TCP's are rows, too.
 */
struct ca_parser *ca_parser_new(uint64_t seed, bool every_protocol)
{
	struct ca_parser *parser = calloc(1, sizeof(*parser));

	if (!parser)
		return NULL;
	parser->rows.last_ns = INT64_MIN;
	parser->rows.every_protocol = every_protocol;
	if (!flows_start(&parser->rows.flows, seed)) {
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

/*
 * Takes whole records from the front of bytes until none is left, the columns are full, or the next
 * record cannot be found. Sets *taken to the number of bytes taken, *row to the next free row.
 */
enum ca_status ca_parser_parse(struct ca_parser *parser, const uint8_t *bytes, size_t length,
			       const struct ca_columns *columns, size_t capacity, size_t *taken,
			       size_t *row)
{
	struct view data = { bytes, length };
	struct rows *rows = &parser->rows;
	size_t header;

	*taken = 0;
	if (*rows->trouble)
		return CA_BROKEN;
	if (parser->container == CONTAINER_UNKNOWN && !open_container(parser, &data))
		return CA_NO_CAPTURE;
	header = length - data.length;
	rows->columns = columns;
	rows->capacity = capacity;
	rows->next = *row;
	rows->done = 0;
	if (parser->container == CONTAINER_PCAP)
		pcap_parse(&parser->pcap, data, parser->offset + header, rows);
	else if (parser->container == CONTAINER_PCAPNG)
		pcapng_parse(&parser->pcapng, data, parser->offset + header, rows);
	*taken = header + rows->done;
	*row = rows->next;
	parser->offset += *taken;
	return *rows->trouble ? CA_BROKEN : CA_GOING_ON;
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

/* The reason why the next record cannot be found: a sentence; empty if there is none. */
const char *ca_parser_trouble(const struct ca_parser *parser)
{
	return parser->rows.trouble;
}
