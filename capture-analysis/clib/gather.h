/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The library: some packets by lane, and their columns in that order; see gather.py.
 */
#ifndef CAPTURE_ANALYSIS_GATHER_H
#define CAPTURE_ANALYSIS_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parser.h"

#define CA_ORDER_BEYOND SIZE_MAX		/* a row is beyond the table */
#define CA_ORDER_NO_MEMORY (SIZE_MAX - 1)

/* By lane, in a lane as the rows were given; as LaneOrder in gather.py. */
struct ca_lane_order {
	int64_t *places;	/* where each of the rows goes */
	int64_t *rows;		/* which row is in each place */
	int64_t *lanes;		/* those that have rows, ascending; room for one of each row */
	int64_t *counts;	/* how many rows each has; likewise */
};

/*
 * Orders `count` rows by their lanes, of which a table of `size` rows has one each. Returns how many
 * lanes there are, or what was wrong.
 */
CA_API size_t ca_order(const uint32_t *lane, size_t size, const int64_t *rows, size_t count,
		       const struct ca_lane_order *order);

/*
 * Writes the values of a column, of `size` numbers, at `count` rows, each to its place. False if
 * rows or places are beyond the column or what is written, or numbers not 1, 2, 4 or 8 bytes wide;
 * those of 8 are signed.
 */
CA_API bool ca_gather(const void *column, size_t width, size_t size, const int64_t *rows,
		      const int64_t *places, size_t count, int64_t *to);

#endif
