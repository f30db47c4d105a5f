/* SPDX-License-Identifier: GPL-2.0-only */
/* Columns on the heap, each of exactly its size: sanitisers notice a write beyond one. */
#ifndef CAPTURE_ANALYSIS_TABLE_H
#define CAPTURE_ANALYSIS_TABLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../parser.h"

/* Name and width in bytes, in the order of struct ca_columns. */
#define TABLE_COLUMNS(X)							\
	X(time_ns, 8) X(frame_bytes, 4) X(payload_bytes, 4) X(flow, 4) X(seq, 4) X(ack, 4)	\
	X(ts_value, 4) X(ts_echo, 4) X(sack_left, 4) X(sack_right, 4) X(frame, 4) X(window, 2)	\
	X(ip_id, 2) X(interface, 2) X(flags, 2) X(half, 1) X(marks, 2)

/* Name and width in bytes, in the order of struct ca_tracked. */
#define TRACKED_COLUMNS(X)							\
	X(seq_bytes, 8) X(ack_bytes, 8) X(gap_ns, 8) X(rtt_ns, 8) X(new_bytes, 4)	\
	X(acked_bytes, 4) X(in_flight_bytes, 4) X(unseen_bytes, 4) X(kind, 1) X(repair, 1)

static inline void *table_allocate(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);

	if (!memory) {
		perror("malloc");
		exit(EXIT_FAILURE);
	}
	return memory;
}

static inline void table_new(struct ca_columns *columns, size_t rows)
{
#define X(name, width) columns->name = table_allocate(rows * (width));
	TABLE_COLUMNS(X)
#undef X
}

static inline void table_free(struct ca_columns *columns)
{
#define X(name, width) free(columns->name);
	TABLE_COLUMNS(X)
#undef X
}

/* Copies bytes into memory of exactly their size. */
static inline uint8_t *table_copy(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = table_allocate(length);

	if (length)
		memcpy(copy, bytes, length);
	return copy;
}

#endif
