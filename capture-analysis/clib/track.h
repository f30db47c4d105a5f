/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracker: takes columns of packets, writes columns of their roles in their connections.
 *
 * Rows come in file order, in any number of calls; it does not matter where the calls divide them.
 * Memory is bounded for each connection (half.h), and taken only for connections with packets: a
 * tracker that gets only some connections of a capture takes memory for those, and writes the same
 * rows for them.
 */
#ifndef CAPTURE_ANALYSIS_TRACK_H
#define CAPTURE_ANALYSIS_TRACK_H

#include "parser.h"

/* Owned by the caller; laid out as TRACKED_TYPES in tracking.py. Meaning: Tracked there. */
struct ca_tracked {
	int64_t *seq_bytes;
	int64_t *ack_bytes;
	int64_t *gap_ns;
	int64_t *rtt_ns;
	uint32_t *new_bytes;
	uint32_t *acked_bytes;
	uint32_t *in_flight_bytes;
	uint32_t *unseen_bytes;
	uint8_t *kind;
	uint8_t *repair;
};

/* Laid out as Forgotten in tracking.py. */
struct ca_forgotten {
	uint64_t holes;
	uint64_t segments;
};

/* After CA_NO_SUCH_FLOW or CA_NO_MEMORY the tracker cannot be used any more. */
enum ca_track_status {
	CA_TRACKED,
	CA_NO_SUCH_FLOW,
	CA_NO_MEMORY,
};

struct ca_tracker;

CA_API struct ca_tracker *ca_tracker_new(void);
CA_API void ca_tracker_free(struct ca_tracker *tracker);
CA_API enum ca_track_status ca_tracker_track(struct ca_tracker *tracker,
					     const struct ca_columns *packets, size_t rows,
					     size_t flows, const struct ca_tracked *tracked);
CA_API const struct ca_forgotten *ca_tracker_forgotten(const struct ca_tracker *tracker);

#endif
