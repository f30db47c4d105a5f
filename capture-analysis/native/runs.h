/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The library: maximal runs of packets, apart for each lane; see runs.py.
 */
#ifndef CAPTURE_ANALYSIS_RUNS_H
#define CAPTURE_ANALYSIS_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "parser.h"

#define CA_RUN_VALUES 4

/* Columns of packets; as _Packets in runs_in_c.py. */
struct ca_run_packets {
	const int64_t *lane;
	const uint8_t *joined;		/* 0 or 1 */
	const int64_t *time_ns;
	size_t value_count;
	const int64_t *values[CA_RUN_VALUES];
};

/* Columns of runs, as Runs in runs.py and _Runs in runs_in_c.py. */
struct ca_runs {
	int64_t *lane;
	int64_t *rows;			/* 0 where there is no run */
	int64_t *first_ns;
	int64_t *last_ns;
	int64_t *total;
	size_t stride;			/* from one value's totals to the next's */
};

/*
 * Takes packets; writes the runs that they show to be over and that have at least so many rows.
 * open has a row for every lane; over has room for as many runs as there are packets. Returns
 * how many are over.
 */
CA_API size_t ca_runs_add(const struct ca_run_packets *packets, size_t count, int64_t least_rows,
			  const struct ca_runs *open, const struct ca_runs *over);

#endif
