/* SPDX-License-Identifier: GPL-2.0-only */
/* Standing queues; metrics/standing_queue.py defines them. */
#ifndef CAPTURE_ANALYSIS_STANDING_H
#define CAPTURE_ANALYSIS_STANDING_H

#include "block.h"

/* The state of a direction; all 0 before its first delay. */
struct ca_standing {
	uint64_t delays;
	uint64_t origin_stamp;	/* of the first stamped data */
	int64_t origin_ns;
	int64_t last_ns;	/* of the last delay, */
	int64_t heard_ns;	/* and of the last packet */
	int64_t shortest_ns;
	/* Its open sixteen: the shortest delay, their time, and the part that a queue explains. */
	int64_t floor_ns, spent_ns, queue_ns;
	/* All but the first sixteen: their time, and the time with a queue. */
	int64_t whole_ns, standing_ns;
};

/* Takes a block; `directions` has all its directions. */
CA_API void ca_standing_add(const struct ca_block *block, struct ca_standing *directions);

#endif
