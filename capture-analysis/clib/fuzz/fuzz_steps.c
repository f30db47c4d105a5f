// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz target: arbitrary step functions are summed, and arbitrary queues followed (libFuzzer, with
 * sanitisers).
 *
 * The first two bytes of the input are start and length of the window; each further three bytes are
 * a step of one of two functions: which one and the time since its last step, and the new level.
 * The sums must be those of the levels at each time. The same times are those at which packets enter
 * one queue and leave it; and those at which they enter two queues, where the level tells how long
 * each packet stays.
 */
#include "fuzz.h"
#include "../steps.h"

#define HEAD_BYTES 2
#define BYTES_OF_A_STEP 3

struct function {
	int64_t *times;
	int32_t *levels;
	size_t count;
};

static struct function function_new(const uint8_t *data, size_t steps, unsigned int which)
{
	struct function made = { NULL, NULL, 0 };
	int64_t time_ns = 0;

	for (size_t at = 0; at < steps; at++)
		made.count += (data[at * BYTES_OF_A_STEP] & 1) == which;
	made.times = table_allocate(made.count * sizeof(*made.times));
	made.levels = table_allocate(made.count * sizeof(*made.levels));
	for (size_t at = 0, step = 0; at < steps; at++, data += BYTES_OF_A_STEP) {
		if ((data[0] & 1) != which)
			continue;
		time_ns += data[0] >> 1 & 7;
		made.times[step] = time_ns;
		made.levels[step++] = (int16_t)(data[1] << 8 | data[2]);
	}
	return made;
}

static int64_t level_at(const struct function *function, int64_t time_ns)
{
	int64_t level = 0;

	for (size_t at = 0; at < function->count && function->times[at] <= time_ns; at++)
		level = function->levels[at];
	return level;
}

/* After all events of a time, each packet that has entered and not left counts. */
static void check_length(const struct function *in, const struct function *out)
{
	const size_t events = in->count + out->count;
	int64_t *times = table_allocate(events * sizeof(*times));
	int32_t *levels = table_allocate(events * sizeof(*levels));

	ca_steps_of_queue(in->times, in->count, out->times, out->count, times, levels);
	for (size_t at = 0; at < events; at++) {
		int32_t level = 0;

		check(!at || times[at - 1] <= times[at]);
		for (size_t k = 0; k < in->count; k++)
			level += in->times[k] <= times[at];
		for (size_t k = 0; k < out->count; k++)
			level -= out->times[k] <= times[at];
		check(abs(levels[at] - (at ? levels[at - 1] : 0)) == 1);
		check(levels[at] == level || (at + 1 < events && times[at + 1] == times[at]));
	}
	free(times);
	free(levels);
}

static int64_t *leaves(const struct function *function)
{
	int64_t *left = table_allocate(function->count * sizeof(*left));

	for (size_t at = 0; at < function->count; at++)
		left[at] = function->times[at] + function->levels[at] / 256;
	return left;
}

static int64_t empty_at(const struct ca_queue *queue, int64_t now)
{
	int64_t empty_ns = now;

	for (size_t at = 0; at < queue->count && queue->entered_ns[at] <= now; at++) {
		if (queue->left_ns[at] > empty_ns)
			empty_ns = queue->left_ns[at];
	}
	return empty_ns;
}

static void check_last(const struct function *x, const struct function *y, int64_t start_ns,
		       int64_t stop_ns)
{
	int64_t *lefts[2] = { leaves(x), leaves(y) };
	struct ca_queue queues[2] = {
		{ x->times, lefts[0], x->count, 0, 0, 0 },
		{ y->times, lefts[1], y->count, 0, 0, 0 },
	};
	int64_t busy_ns, last_ns[2] = { 0, 0 }, counted_ns = 0;
	const size_t found = ca_steps_last_to_empty(queues, 2, start_ns, stop_ns, &busy_ns);
	size_t changes = 0;
	int before = -1;

	for (int64_t now = start_ns; now < stop_ns; now++) {
		const int64_t one = empty_at(&queues[0], now), two = empty_at(&queues[1], now);
		const int last = two > one;

		if (one == now && two == now)
			continue;
		counted_ns++;
		last_ns[last] += one != two;
		changes += before >= 0 && before != last;
		before = last;
	}
	check(found == changes && busy_ns == counted_ns);
	check(queues[0].last_ns == last_ns[0] && queues[1].last_ns == last_ns[1]);
	free(lefts[0]);
	free(lefts[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ca_sum sums[CA_SUMS];
	int64_t total[CA_SUMS] = { 0 };
	struct function x, y;

	if (size < HEAD_BYTES)
		return 0;
	x = function_new(data + HEAD_BYTES, (size - HEAD_BYTES) / BYTES_OF_A_STEP, 0);
	y = function_new(data + HEAD_BYTES, (size - HEAD_BYTES) / BYTES_OF_A_STEP, 1);
	ca_steps_sum(&(struct ca_steps){ x.times, x.levels, x.count },
		     &(struct ca_steps){ y.times, y.levels, y.count }, data[0], data[0] + data[1],
		     sums);
	for (int64_t now = data[0]; now < data[0] + data[1]; now++) {
		const int64_t one = level_at(&x, now), two = level_at(&y, now);
		const int64_t terms[CA_SUMS] = {
			one, two, one * one, two * two, one * two,
			one > 0, two > 0, one > 0 && two > 0,
		};

		for (size_t at = 0; at < CA_SUMS; at++)
			total[at] += terms[at];
	}
	for (size_t at = 0; at < CA_SUMS; at++) {
		check(sums[at].low == (uint64_t)total[at]);
		check(sums[at].high == (total[at] < 0 ? -1 : 0));
	}
	check_length(&x, &y);
	check_last(&x, &y, data[0], data[0] + data[1]);
	free(x.times);
	free(x.levels);
	free(y.times);
	free(y.levels);
	return 0;
}
