/* SPDX-License-Identifier: GPL-2.0-only */
/* What the receiver of data does, seen near it; metrics/receiving.py defines the metrics. */
#ifndef CAPTURE_ANALYSIS_RECEIVING_H
#define CAPTURE_ANALYSIS_RECEIVING_H

#include "block.h"

#define HOLES_KEPT 16		/* of a direction */

/* The state of a direction; a number is -1 before it is known. */
struct ca_receiving {
	int64_t sent;		/* highest byte seen */
	int64_t hole;		/* the newest, a row of the holes */
	int64_t acked;		/* highest byte acknowledged, */
	int64_t edge;		/* and up to which the window reaches */
	int64_t window;		/* as announced last, bytes */
	int64_t window_max;
	int64_t window_ns;	/* latest time of an ACK */
	int64_t unread;		/* most bytes that the application had left */
};

/* Sums of a direction. */
struct ca_received {
	int64_t reordered;	/* late segments: too soon for a retransmission */
	int64_t repaired;	/* other late segments of a known hole */
	int64_t timed;		/* ACKs of new data whose delay is known */
	int64_t delayed;	/* those that were sent DELAYED_NS later */
	int64_t reads;		/* ACKs that raise the window's edge and acknowledge nothing */
	int64_t shut_ns;	/* time with room for less than a segment */
	int64_t whole_ns;	/* time from the first ACK to the last */
};

/* A hole in what was seen, or a free row. */
struct ca_hole {
	int64_t first, end;
	int64_t opened_ns;
	int64_t next;		/* row of an older one, or of another free row; -1: none */
};

/* All of them; the caller makes room for the data of the next block. */
struct ca_all_holes {
	struct ca_hole *rows;
	int64_t free;		/* a row, or -1 */
};

/*
 * Takes a block; `directions` and `sums` have all its directions. Returns the number of rows of
 * `holes` taken, less those freed.
 */
CA_API int64_t ca_receiving_add(const struct ca_block *block, struct ca_receiving *directions,
				struct ca_all_holes *holes, struct ca_received *sums);

#endif
