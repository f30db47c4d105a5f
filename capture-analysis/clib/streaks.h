/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streaks: finds maximal runs of packets, apart for each lane; see streaks.py.
 */
#ifndef CAPTURE_ANALYSIS_STREAKS_H
#define CAPTURE_ANALYSIS_STREAKS_H

#include <stddef.h>
#include <stdint.h>

#include "parser.h"

#define CA_STREAK_VALUES 4

/* Columns of packets, laid out as _Packets in streaks.py. */
struct ca_streak_packets {
	const int64_t *lane;
	const uint8_t *joined;		/* 0 or 1 */
	const int64_t *time_ns;
	size_t value_count;
	const int64_t *values[CA_STREAK_VALUES];
};

/* Columns of streaks, laid out as _Streaks in streaks.py; see Streaks there. */
struct ca_streaks {
	int64_t *lane;
	int64_t *rows;			/* 0 where there is no streak */
	int64_t *first_ns;
	int64_t *last_ns;
	int64_t *total;
	size_t stride;			/* from one value's totals to the next's */
};

/*
 * Takes packets; writes to `over` the streaks of at least `least_rows` rows that have ended. `open`
 * has a row for every lane; `over` has room for as many streaks as there are packets. Returns the
 * number of streaks written.
 */
CA_API size_t ca_streaks_add(const struct ca_streak_packets *packets, size_t count,
			     int64_t least_rows, const struct ca_streaks *open,
			     const struct ca_streaks *over);

#endif
