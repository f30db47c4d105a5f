/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_FLOWS_H
#define CAPTURE_ANALYSIS_FLOWS_H

#include "frame.h"

/*
 * A connection, laid out as FLOW in flow_table.py, which explains the fields. In each pair the first
 * is of source and the packets that it sends, the second of destination.
 */
struct ca_flow {
	uint8_t addresses[2][16];
	int64_t first_ns;
	uint32_t base[2];
	uint16_t ports[2];
	uint16_t mss[2];
	uint8_t window_scale[2];
	uint8_t version;
	uint8_t protocol;
	uint32_t vlans : 24;	/* as in struct segment */
	uint32_t seen : 8;	/* bits of enum seen */
};

/* Values of Seen in flow_table.py. */
enum seen {
	SEEN_HALF = 1,		/* shifted left by the half */
	SEEN_SYN = 4,		/* shifted left by the half: its base is then the initial number */
	SEEN_IN_OTHER_VLANS = 16,
};

static_assert(sizeof(struct ca_flow) == 64, "one cache line, and FLOW in flow_table.py");

/*
 * 2^22 connections are 300 MB with their index. A capture with more is a port scan or hostile;
 * reading ends at the first packet of a connection beyond the limit.
 */
#ifndef FLOWS_MAX	/* a lower limit under sanitisers (Makefile) */
#define FLOWS_MAX (UINT32_C(1) << 22)
#endif

/*
 * The most connections between the same addresses and ports that VLANs distinguish. A test's
 * generator may make more, and a hostile capture 2^24, and every packet would be compared with
 * each. A packet in a further VLAN counts to one of the latest of them.
 */
#define FLOWS_VLANS_MAX 64

/* Keys of the hash: one for each word of two addresses, one for both ports, one added. */
#define FLOWS_HASH_KEYS 10

struct flows {
	struct ca_flow *rows;
	struct link *links;	/* one for each row */
	uint32_t *heads;	/* per bucket, its first row + 1; 0: empty */
	uint32_t count;
	uint32_t capacity;	/* of rows, and number of buckets */
	uint32_t most;		/* connections */
	unsigned int hash_shift;
	uint64_t keys[FLOWS_HASH_KEYS];
};

/* The connection of a segment, and the half of it that sent the segment. */
struct place {
	uint32_t flow;
	uint8_t half;
};

bool flows_start(struct flows *flows, uint64_t seed, uint32_t most);
void flows_end(struct flows *flows);
void flows_expect(const struct flows *flows, struct segment *segment);
void flows_expect_row(const struct flows *flows, const struct segment *segment);
bool flows_place(struct flows *flows, const struct segment *segment, int64_t time_ns,
		 struct place *place);

#endif
