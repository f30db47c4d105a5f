// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any values are counted (libFuzzer, with address and undefined behaviour sanitisers).
 *
 * Nine bytes of the input are a lane and a value. They are counted in order at once, and backward
 * one by one with another seed and by way of rows; both must have the same keys, and as many
 * values as there were.
 */
#include "../tests/table.h"
#include "../histogram.h"

#define BYTES_OF_A_VALUE 9

#define check(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);	\
			abort();						\
		}								\
	} while (0)

struct row {
	int64_t key;
	uint64_t count;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int by_key(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* The rows of a histogram, ascending, and how many; the caller frees them. */
static struct row *rows_of(const struct ca_histogram *histogram, size_t *count)
{
	int64_t *keys;
	uint64_t *counts;
	struct row *rows;

	*count = ca_histogram_rows(histogram, NULL, NULL);
	keys = table_allocate(*count * sizeof(*keys));
	counts = table_allocate(*count * sizeof(*counts));
	rows = table_allocate(*count * sizeof(*rows));
	check(ca_histogram_rows(histogram, keys, counts) == *count);
	for (size_t row = 0; row < *count; row++)
		rows[row] = (struct row){ keys[row], counts[row] };
	qsort(rows, *count, sizeof(*rows), by_key);
	free(keys);
	free(counts);
	return rows;
}

static struct ca_histogram *backward(const int64_t *lanes, const int64_t *values, size_t count)
{
	struct ca_histogram *one = ca_histogram_new(1), *merged = ca_histogram_new(2);
	struct row *rows;
	size_t used;

	check(one && merged);
	for (size_t at = count; at--;)
		check(ca_histogram_add(one, lanes + at, values + at, 1));
	rows = rows_of(one, &used);
	for (size_t row = 0; row < used; row++)
		check(ca_histogram_add_counts(merged, &rows[row].key, &rows[row].count, 1));
	free(rows);
	ca_histogram_free(one);
	return merged;
}

static void check_same(const struct ca_histogram *a, const struct ca_histogram *b, size_t values)
{
	size_t rows_a, rows_b;
	struct row *a_rows = rows_of(a, &rows_a), *b_rows = rows_of(b, &rows_b);
	uint64_t counted = 0;

	check(rows_a == rows_b);
	for (size_t row = 0; row < rows_a; row++) {
		check(a_rows[row].key == b_rows[row].key);
		check(a_rows[row].count == b_rows[row].count);
		check(!row || a_rows[row].key > a_rows[row - 1].key);
		counted += a_rows[row].count;
	}
	check(counted == values);
	free(a_rows);
	free(b_rows);
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
