// SPDX-License-Identifier: GPL-2.0-only
/*
 * One pass over the steps or packets, without memory of its own. Sums are exact: a square of levels
 * times ns may exceed 64 bits.
 */
#include <stdbool.h>

#include "steps.h"

__extension__ typedef __int128 wide;

struct reader {
	const struct ca_steps *steps;
	size_t next;
	int64_t level;
};

/* The time of the next step; `stop_ns` if there is none before. */
static int64_t next_ns(const struct reader *reader, int64_t stop_ns)
{
	if (reader->next == reader->steps->count)
		return stop_ns;
	return reader->steps->time_ns[reader->next] < stop_ns
	       ? reader->steps->time_ns[reader->next] : stop_ns;
}

/* Takes all steps up to a time, and those at that time. */
static void advance(struct reader *reader, int64_t until_ns)
{
	const struct ca_steps *steps = reader->steps;

	while (reader->next < steps->count && steps->time_ns[reader->next] <= until_ns)
		reader->level = steps->level[reader->next++];
}

/* Finds the first step after a time by bisection. */
static struct reader reader_at(const struct ca_steps *steps, int64_t time_ns)
{
	size_t first = 0, last = steps->count;

	while (first < last) {
		const size_t middle = first + (last - first) / 2;

		if (steps->time_ns[middle] <= time_ns)
			first = middle + 1;
		else
			last = middle;
	}
	return (struct reader){ steps, first, first ? steps->level[first - 1] : 0 };
}

void ca_steps_sum(const struct ca_steps *x, const struct ca_steps *y, int64_t start_ns,
		  int64_t stop_ns, struct ca_sum sums[CA_SUMS])
{
	struct reader one = reader_at(x, start_ns), two = reader_at(y, start_ns);
	wide total[CA_SUMS] = { 0 };

	while (start_ns < stop_ns) {
		const int64_t until_ns = next_ns(&one, next_ns(&two, stop_ns));
		const wide lasts_ns = (wide)until_ns - start_ns;
		const bool busy = one.level > 0, other = two.level > 0;

		total[0] += lasts_ns * one.level;
		total[1] += lasts_ns * two.level;
		total[2] += lasts_ns * (one.level * one.level);
		total[3] += lasts_ns * (two.level * two.level);
		total[4] += lasts_ns * (one.level * two.level);
		total[5] += lasts_ns * busy;
		total[6] += lasts_ns * other;
		total[7] += lasts_ns * (busy && other);
		advance(&one, until_ns);
		advance(&two, until_ns);
		start_ns = until_ns;
	}
	for (size_t at = 0; at < CA_SUMS; at++)
		sums[at] = (struct ca_sum){ (uint64_t)total[at], (int64_t)(total[at] >> 64) };
}

void ca_steps_of_queue(const int64_t *entered_ns, size_t entered, const int64_t *left_ns,
		       size_t left, int64_t *time_ns, int32_t *level)
{
	size_t in = 0, out = 0;

	for (size_t at = 0; at < entered + left; at++) {
		if (out < left && (in == entered || left_ns[out] <= entered_ns[in]))
			time_ns[at] = left_ns[out++];
		else
			time_ns[at] = entered_ns[in++];
		level[at] = (int32_t)((int64_t)in - (int64_t)out);
	}
}

/* Takes the packets that enter until a time, and those at that time; finds the next one's time. */
static int64_t enter(struct ca_queue *queue, int64_t until_ns, int64_t stop_ns)
{
	for (; queue->next < queue->count; queue->next++) {
		if (queue->entered_ns[queue->next] > until_ns)
			return queue->entered_ns[queue->next];
		if (queue->left_ns[queue->next] > queue->empty_ns)
			queue->empty_ns = queue->left_ns[queue->next];
	}
	return stop_ns;
}

size_t ca_steps_last_to_empty(struct ca_queue *queues, size_t count, int64_t start_ns,
			      int64_t stop_ns, int64_t *busy_ns)
{
	const struct ca_queue *before = NULL;
	size_t changes = 0;

	*busy_ns = 0;
	for (int64_t next_ns; start_ns < stop_ns; start_ns = next_ns) {
		struct ca_queue *last = queues;
		bool alone = true;

		next_ns = stop_ns;
		for (struct ca_queue *queue = queues; queue < queues + count; queue++) {
			const int64_t enters_ns = enter(queue, start_ns, stop_ns);

			if (enters_ns < next_ns)
				next_ns = enters_ns;
			if (queue == last)
				continue;
			if (queue->empty_ns >= last->empty_ns)
				alone = queue->empty_ns > last->empty_ns;
			if (queue->empty_ns > last->empty_ns)
				last = queue;
		}
		if (!count || last->empty_ns <= start_ns)
			continue;
		const int64_t lasts_ns = (last->empty_ns < next_ns ? last->empty_ns : next_ns) - start_ns;

		*busy_ns += lasts_ns;
		if (alone)
			last->last_ns += lasts_ns;
		changes += before && before != last;
		before = last;
	}
	return changes;
}
