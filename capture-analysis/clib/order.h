/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sorts packets by lane; see row_order.py.
 */
#ifndef CAPTURE_ANALYSIS_ORDER_H
#define CAPTURE_ANALYSIS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parser.h"

#define CA_ORDER_BEYOND SIZE_MAX		/* a row is not in the table */
#define CA_ORDER_NO_MEMORY (SIZE_MAX - 1)

/* Rows by lane, in each lane as given; laid out as LaneOrder in row_order.py. */
struct ca_lane_order {
	int64_t *places;	/* place of each given row */
	int64_t *rows;		/* row at each place */
	int64_t *lanes;		/* lanes with rows, ascending; has room for `count` */
	int64_t *counts;	/* rows of each of these lanes; has room for `count` */
};

/*
 * Sorts `count` rows by lane; `lane` has the lanes of all `size` rows. Returns the number of lanes
 * with rows, CA_ORDER_BEYOND or CA_ORDER_NO_MEMORY.
 */
CA_API size_t ca_order(const uint32_t *lane, size_t size, const int64_t *rows, size_t count,
		       const struct ca_lane_order *order);

#endif
