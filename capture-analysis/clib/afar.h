/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits from afar; metrics/limits_from_afar.py defines them. */
#ifndef CAPTURE_ANALYSIS_AFAR_H
#define CAPTURE_ANALYSIS_AFAR_H

#include "block.h"

enum { AFAR_RECOVERY, AFAR_RECEIVER, AFAR_SENDER, AFAR_CAUSES };

/* The state of a direction. Bytes are -1 before there are any; rows are of `coming`, or -1. */
struct ca_afar {
	int64_t last_ns;	/* time of the last event */
	int64_t sent;		/* highest byte sent, */
	int64_t acked;		/* acknowledged, */
	int64_t edge;		/* allowed by the window, */
	int64_t repaired;	/* and up to which losses are repaired */
	int64_t oldest, newest;	/* ACKs on their way to the sender */
};

/* An ACK that has not reached the sender, or a free row. */
struct ca_coming {
	int64_t time_ns;	/* when it does */
	int64_t acked, edge;
	int64_t next;		/* row of the direction's next one, or of another free row; -1: none */
};

/* All of them; the caller makes room for the ACKs of the next block. */
struct ca_all_coming {
	struct ca_coming *rows;
	int64_t free;		/* a row, or -1 */
};

/*
 * Takes a block; `directions` and `spent_ns`, the time by cause, have all its directions. Returns
 * the number of rows of `coming` taken, less those freed.
 */
CA_API int64_t ca_afar_add(const struct ca_block *block, struct ca_afar *directions,
			   struct ca_all_coming *coming, int64_t (*spent_ns)[AFAR_CAUSES]);

#endif
