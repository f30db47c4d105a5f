/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_FLOWS_H
#define CAPTURE_ANALYSIS_FLOWS_H

#include "frame.h"

/*
 * A connection, laid out as FLOW in columns.py, which says what the fields mean. Of each pair the
 * first is of source and what it sends, the second of destination.
 */
struct ca_flow {
	uint8_t addresses[2][16];
	int64_t first_ns;
	uint32_t base[2];
	uint16_t ports[2];
	uint16_t mss[2];
	uint8_t window_scale[2];
	uint8_t base_seen[2];
	uint8_t syn_seen[2];
	uint8_t version;
	uint8_t unused;
};

static_assert(sizeof(struct ca_flow) == 64, "one cache line, and FLOW in columns.py");

/*
 * 2^22 connections are 300 MB with their index. A capture with more is a port scan or hostile;
 * what follows its first packet beyond them is not read.
 */
#ifndef FLOWS_MAX	/* few where sanitisers watch (Makefile) */
#define FLOWS_MAX (UINT32_C(1) << 22)
#endif

/* Words of a hash: two addresses of four, both ports; and what is added. */
#define FLOWS_HASH_KEYS 10

struct flows {
	struct ca_flow *rows;
	struct link *links;	/* of each row, beside it */
	uint32_t *heads;	/* of each bucket, the first row + 1; 0: none */
	uint32_t count;
	uint32_t capacity;	/* of rows, and buckets */
	unsigned int hash_shift;
	uint64_t keys[FLOWS_HASH_KEYS];
};

/* Which connection a segment belongs to, and which half of it. */
struct place {
	uint32_t flow;
	uint8_t half;
};

bool flows_start(struct flows *flows, uint64_t seed);
void flows_end(struct flows *flows);
void flows_expect(const struct flows *flows, struct segment *segment);
void flows_expect_row(const struct flows *flows, const struct segment *segment);
bool flows_place(struct flows *flows, const struct segment *segment, int64_t time_ns,
		 struct place *place);

#endif
