// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses capture files for the tests, under sanitisers and valgrind.
 *
 *	parse FILE...	prints a line for each file: frames, packets, connections, trouble
 *	parse -t FILE...	parses every prefix of each file, too, in memory of exactly its size
 *
 * Columns have few rows, so that the parser is called often.
 */
#include <inttypes.h>
#include <stdbool.h>

#include "table.h"

#define ROWS 7
#define SEED 42
#define FILE_BYTES_MAX (1 << 20)

static void parse(const uint8_t *bytes, size_t length, bool every_protocol, const char *name)
{
	struct ca_parser *parser = ca_parser_new(SEED, every_protocol, !every_protocol);
	uint8_t *data = table_copy(bytes, length);
	struct ca_columns columns;
	size_t taken = 0, rows, flows, step;
	enum ca_status status;

	table_new(&columns, ROWS);
	do {
		rows = 0;
		status = ca_parser_parse(parser, data + taken, length - taken, true, &columns,
					 ROWS, &step, &rows);
		taken += step;
	} while (status == CA_GOING_ON && rows == ROWS);
	ca_parser_flows(parser, &flows);
	if (name)
		printf("%s\t%s\t%" PRIu64 " frames\t%" PRIu64 " packets\t%zu connections\t%s\n",
		       name, ca_parser_format(parser), ca_parser_counts(parser)->frames,
		       ca_parser_counts(parser)->fates[FATE_PACKET], flows,
		       ca_parser_trouble(parser));
	table_free(&columns);
	free(data);
	ca_parser_free(parser);
}

static size_t read_file(const char *path, uint8_t *bytes)
{
	FILE *file = fopen(path, "rb");
	size_t length;

	if (!file) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	length = fread(bytes, 1, FILE_BYTES_MAX, file);
	fclose(file);
	return length;
}

int main(int argc, char **argv)
{
	bool prefixes = argc > 1 && !strcmp(argv[1], "-t");
	uint8_t *bytes = table_allocate(FILE_BYTES_MAX);

	for (int file = 1 + prefixes; file < argc; file++) {
		size_t length = read_file(argv[file], bytes);

		for (size_t prefix = 0; prefixes && prefix < length; prefix++) {
			parse(bytes, prefix, false, NULL);
			parse(bytes, prefix, true, NULL);
		}
		parse(bytes, length, false, argv[file]);
	}
	free(bytes);
	return EXIT_SUCCESS;
}
