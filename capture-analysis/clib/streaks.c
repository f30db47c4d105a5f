// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of each run of packets is found first, its sums only if they are wanted: most streaks of
 * most lanes are too short, and are never summed. Open streaks are stored by the caller.
 */
#include <stdbool.h>

#include "streaks.h"

static void streak_copy(const struct ca_streaks *to, size_t at, const struct ca_streaks *from,
			size_t row, size_t value_count)
{
	to->lane[at] = from->lane[row];
	to->rows[at] = from->rows[row];
	to->first_ns[at] = from->first_ns[row];
	to->last_ns[at] = from->last_ns[row];
	for (size_t value = 0; value < value_count; value++)
		to->total[value * to->stride + at] = from->total[value * from->stride + row];
}

/* Adds packets at..end-1 to their lane's open streak, or opens one. */
static void streak_extend(const struct ca_streaks *open, const struct ca_streak_packets *packets,
			  size_t at, size_t end)
{
	size_t lane = (size_t)packets->lane[at];
	bool opens = !open->rows[lane];

	if (opens)
		open->first_ns[lane] = packets->time_ns[at];
	open->rows[lane] += (int64_t)(end - at);
	open->last_ns[lane] = packets->time_ns[end - 1];
	for (size_t value = 0; value < packets->value_count; value++) {
		int64_t *total = &open->total[value * open->stride + lane];
		int64_t sum = opens ? 0 : *total;

		for (size_t row = at; row < end; row++)
			sum += packets->values[value][row];
		*total = sum;
	}
}

size_t ca_streaks_add(const struct ca_streak_packets *packets, size_t count, int64_t least_rows,
		      const struct ca_streaks *open, const struct ca_streaks *over)
{
	size_t ended = 0;
	size_t end;

	for (size_t at = 0; at < count; at = end) {
		size_t lane = (size_t)packets->lane[at];
		bool goes_on = open->rows[lane] && packets->joined[at];
		bool last;

		for (end = at + 1; end < count && packets->joined[end]; end++) {
			if (packets->lane[end] != packets->lane[at])
				break;
		}
		last = end == count || packets->lane[end] != packets->lane[at];
		if (!goes_on) {
			if (open->rows[lane] >= least_rows)
				streak_copy(over, ended++, open, lane, packets->value_count);
			open->rows[lane] = 0;
		}
		if (goes_on || last || (int64_t)(end - at) >= least_rows)
			streak_extend(open, packets, at, end);
	}
	return ended;
}
