/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Histogram: counts integers in log-linear bins, apart for each lane; see histogram.py.
 */
#ifndef CAPTURE_ANALYSIS_HISTOGRAM_H
#define CAPTURE_ANALYSIS_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parser.h"

struct ca_histogram;

/* A bin in use: the number of its values, the least and the greatest of them. */
struct ca_bin {
	int64_t key;		/* lane << 13 | number of the bin */
	uint64_t count;
	int64_t low, high;
};

CA_API struct ca_histogram *ca_histogram_new(uint64_t seed);
CA_API void ca_histogram_free(struct ca_histogram *histogram);
/* Tells whether all lanes are in 0..2^48-1 and all values at least 0, as adding requires. */
CA_API bool ca_histogram_takes(const int64_t *lanes, const int64_t *values, size_t count);
CA_API bool ca_histogram_add(struct ca_histogram *histogram, const int64_t *lanes,
			     const int64_t *values, size_t count);
CA_API bool ca_histogram_add_bins(struct ca_histogram *histogram, const struct ca_bin *bins,
				  size_t count);
CA_API size_t ca_histogram_bins(const struct ca_histogram *histogram, struct ca_bin *bins);

#endif
