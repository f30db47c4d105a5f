/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Matching: finds the same packets in two captures; see matching.py.
 */
#ifndef CAPTURE_ANALYSIS_MATCH_H
#define CAPTURE_ANALYSIS_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parser.h"

#define CA_MATCH_WORDS 6	/* factors of a key: one for each of five words, one for mixing */
#define CA_MATCH_FAILED SIZE_MAX

/* The fields of a packet that are kept until its partner is found; ROW in match_rows.py. */
struct ca_match_row {
	int64_t time_ns;
	int64_t order;
	int64_t key;
	uint32_t flow;
	uint32_t seq;
	uint32_t ack;
	uint32_t payload_bytes;
	uint32_t frame_bytes;
	uint16_t flags;
	uint8_t half;
	uint8_t kind;
};

/* The parameters by which packets become rows. */
struct ca_match_keys {
	const uint64_t *factors;	/* CA_MATCH_WORDS */
	const uint64_t *lanes;		/* hash of each half of a connection; NULL: not in the key */
	size_t lane_count;
	uint64_t first_order;
	uint32_t with_ip_id;		/* 0 or 1 */
};

/* Returns the number of rows made: fewer than count if a packet's connection has no lane. */
CA_API size_t ca_match_rows(const struct ca_match_keys *keys, const struct ca_columns *columns,
			    const int64_t *time_ns, const uint8_t *kind, size_t count,
			    struct ca_match_row *rows);

/*
 * Returns the number of pairs, CA_MATCH_FAILED without memory. a_rows and b_rows have room for the
 * smaller of both counts.
 */
CA_API size_t ca_match_join(const struct ca_match_row *a, size_t a_count,
			    const struct ca_match_row *b, size_t b_count, int64_t horizon_ns,
			    uint64_t seed, int64_t *a_rows, int64_t *b_rows);

/*
 * Finds, for the k-th occurrence of each key in a, the row of its k-th in b; -1 if b has fewer.
 * Returns false without memory.
 */
CA_API bool ca_match_partners(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count,
			      uint64_t seed, int64_t *partners);

#endif
