/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_HOLES_H
#define CAPTURE_ANALYSIS_HOLES_H

#include <stdint.h>

/* HOLES in tracking.py: enough for a window of 64 losses; 1 KiB. */
#define HOLES_MAX 64

/* Sequence numbers first..end-1. */
struct span {
	int64_t first;
	int64_t end;
};

/* Numbers of a half that were not seen, between numbers that were: ascending, disjoint spans. */
struct holes {
	struct span *spans;
	uint16_t count;
	uint16_t capacity;
};

void holes_add(struct holes *holes, unsigned int at, struct span hole, uint64_t *forgotten);
int64_t holes_fill(struct holes *holes, struct span filling, uint64_t *forgotten);
void holes_end(struct holes *holes);

#endif
