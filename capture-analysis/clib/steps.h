/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Step functions: the lengths of queues, and their sums over time; see step_functions.py.
 */
#ifndef CAPTURE_ANALYSIS_STEPS_H
#define CAPTURE_ANALYSIS_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "parser.h"

/* Columns of a step function, laid out as _Steps in step_functions.py; times ascend. */
struct ca_steps {
	const int64_t *time_ns;
	const int32_t *level;	/* from the step's time on; before the first it is 0 */
	size_t count;
};

/* A number of 128 bits; SUM in step_functions.py. */
struct ca_sum {
	uint64_t low;
	int64_t high;
};

/* Sums over time, in this order, of: x, y, x x, y y, x y, x > 0, y > 0, both. */
#define CA_SUMS 8

/* Sums two step functions from a start until a stop that is not before it. */
CA_API void ca_steps_sum(const struct ca_steps *x, const struct ca_steps *y, int64_t start_ns,
			 int64_t stop_ns, struct ca_sum sums[CA_SUMS]);

/*
 * Makes the steps of a queue's length, one for each time in entered_ns and in left_ns, which ascend.
 * A packet that enters at the instant of a departure does so after it.
 */
CA_API void ca_steps_of_queue(const int64_t *entered_ns, size_t entered, const int64_t *left_ns,
			      size_t left, int64_t *time_ns, int32_t *level);

/* The packets of a queue, laid out as _Queue in step_functions.py. */
struct ca_queue {
	const int64_t *entered_ns;	/* ascending */
	const int64_t *left_ns;		/* below 0: never was in the queue */
	size_t count;
	size_t next;			/* state, 0 at first: packets before this one have entered */
	int64_t empty_ns;		/* state, 0 at first: when the last of these leaves */
	int64_t last_ns;		/* result: for how long only this queue is the last to empty */
};

/*
 * Finds which of several queues would run empty last if no more packets came, at all times from a
 * start until a stop. Returns how often another queue becomes that queue, the first of several at
 * the same time, while any holds packets; writes to busy_ns for how long any does.
 */
CA_API size_t ca_steps_last_to_empty(struct ca_queue *queues, size_t count, int64_t start_ns,
				     int64_t stop_ns, int64_t *busy_ns);

#endif
