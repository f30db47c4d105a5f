// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary values are counted (libFuzzer, with sanitisers).
 *
 * Each nine bytes of the input are a lane and a value. The values are counted at once in order; and
 * one by one backward, with another seed, then merged as bins. Both histograms must have the same
 * bins, and as many values as the input.
 */
#include "fuzz.h"
#include "../histogram.h"

#define BYTES_OF_A_VALUE 9

static int by_key(const void *a, const void *b)
{
	const struct ca_bin *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* The bins of a histogram, ascending, and their count; the caller frees them. */
static struct ca_bin *bins_of(const struct ca_histogram *histogram, size_t *count)
{
	struct ca_bin *bins;

	*count = ca_histogram_bins(histogram, NULL);
	bins = table_allocate(*count * sizeof(*bins));
	check(ca_histogram_bins(histogram, bins) == *count);
	qsort(bins, *count, sizeof(*bins), by_key);
	return bins;
}

static struct ca_histogram *backward(const int64_t *lanes, const int64_t *values, size_t count)
{
	struct ca_histogram *one = ca_histogram_new(1), *merged = ca_histogram_new(2);
	struct ca_bin *bins;
	size_t used;

	check(one && merged);
	for (size_t at = count; at--;)
		check(ca_histogram_add(one, lanes + at, values + at, 1));
	bins = bins_of(one, &used);
	check(ca_histogram_add_bins(merged, bins, used));
	free(bins);
	ca_histogram_free(one);
	return merged;
}

static void check_same(const struct ca_histogram *a, const struct ca_histogram *b, size_t values)
{
	size_t used_a, used_b;
	struct ca_bin *a_bins = bins_of(a, &used_a), *b_bins = bins_of(b, &used_b);
	uint64_t counted = 0;

	check(used_a == used_b);
	for (size_t at = 0; at < used_a; at++) {
		check(a_bins[at].key == b_bins[at].key);
		check(a_bins[at].count == b_bins[at].count);
		check(a_bins[at].low == b_bins[at].low);
		check(a_bins[at].high == b_bins[at].high);
		check(a_bins[at].low <= a_bins[at].high);
		check(!at || a_bins[at].key > a_bins[at - 1].key);
		counted += a_bins[at].count;
	}
	check(counted == values);
	free(a_bins);
	free(b_bins);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count = size / BYTES_OF_A_VALUE;
	int64_t *lanes = table_allocate(count * sizeof(*lanes));
	int64_t *values = table_allocate(count * sizeof(*values));
	struct ca_histogram *forward = ca_histogram_new(size), *other;

	check(forward);
	for (size_t at = 0; at < count; at++, data += BYTES_OF_A_VALUE) {
		struct view view = { data, BYTES_OF_A_VALUE };

		lanes[at] = data[0];
		values[at] = (int64_t)(view_le64(view, 1) & INT64_MAX);
	}
	check(ca_histogram_add(forward, lanes, values, count));
	other = backward(lanes, values, count);
	check_same(forward, other, count);
	ca_histogram_free(forward);
	ca_histogram_free(other);
	free(lanes);
	free(values);
	return 0;
}
