/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of packets with the tracker's columns and the facts of their directions; see native_block.py.
 *
 * A direction is the data that one half of a connection sends and the pure ACKs that acknowledge
 * them; its number is 2 * flow + half of the data (facts/directions.py).
 */
#ifndef CAPTURE_ANALYSIS_BLOCK_H
#define CAPTURE_ANALYSIS_BLOCK_H

#include <stdbool.h>

#include "half.h"
#include "track.h"

/* Columns by direction, laid out as FACTS in native_block.py; see Facts in facts/facts.py. */
struct ca_facts {
	const double *tap_at;
	const double *round_trip_ns;
	const double *handshake_ns;
	const int64_t *tick_whole_ns;
	const int64_t *segment_bytes;
	const int64_t *longest_bytes;
	const int64_t *window_shift;
};

/* Laid out as _Block in native_block.py. */
struct ca_block {
	struct ca_columns packets;
	struct ca_tracked tracked;
	struct ca_facts facts;
	size_t rows;
};

/* As in facts/facts.py: a tap up to here on the path is near the data's sender. */
#define NEAR 0.1

static inline bool block_is_ack(const struct ca_block *block, size_t row)
{
	return block->tracked.kind[row] >= KIND_ACK && block->tracked.kind[row] <= KIND_OLD_ACK;
}

static inline bool block_is_data(const struct ca_block *block, size_t row)
{
	return block->tracked.kind[row] >= KIND_NEW_DATA && block->tracked.kind[row] <= KIND_PROBE;
}

/* Whether a packet acknowledges: a pure ACK, data or a FIN that carry an ACK, but no handshake. */
static inline bool block_acknowledges(const struct ca_block *block, size_t row)
{
	uint8_t kind = block->tracked.kind[row];
	uint16_t flags = block->packets.flags[row] & (FLAG_SYN | FLAG_FIN | FLAG_RST);

	return block->tracked.ack_bytes[row] >= 0 && kind != KIND_COPY &&
	       (kind != KIND_CONTROL || flags == FLAG_FIN);
}

/* The direction of the data that a packet acknowledges. */
static inline size_t block_acknowledged(const struct ca_block *block, size_t row)
{
	return ((size_t)block->packets.flow[row] << 1 | block->packets.half[row]) ^ 1;
}

static inline size_t block_direction(const struct ca_block *block, size_t row)
{
	size_t half = block->packets.half[row] ^ (size_t)block_is_ack(block, row);

	return (size_t)block->packets.flow[row] << 1 | half;
}

/* A file may contain any times; their sums and differences wrap. */
static inline int64_t plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* A time in whole ns; the longest that fits if it is unknown or longer. */
static inline int64_t whole_ns(double ns)
{
	return ns < 0x1p63 ? (int64_t)ns : INT64_MAX;
}

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

#endif
