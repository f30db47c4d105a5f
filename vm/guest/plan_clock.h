/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plan_clock.h - the plan's clock: CLOCK_REALTIME in a guest, where the plan sets it; elsewhere
 * CLOCK_REALTIME less TWOWAY_CLOCK_OFFSET_NS. Times in ns.
 */
#ifndef TWOWAY_PLAN_CLOCK_H
#define TWOWAY_PLAN_CLOCK_H

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static inline int64_t plan_offset_ns(void)
{
	const char *offset = getenv("TWOWAY_CLOCK_OFFSET_NS");

	return offset ? atoll(offset) : 0;
}

static inline int64_t plan_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec - plan_offset_ns();
}

/* The machine's time at which the plan's clock reads ns. */
static inline struct timespec plan_time(int64_t ns)
{
	ns += plan_offset_ns();
	return (struct timespec){ ns / NS_PER_S, ns % NS_PER_S };
}

static inline void plan_sleep_until(int64_t ns)
{
	struct timespec at = plan_time(ns);

	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

#endif /* TWOWAY_PLAN_CLOCK_H */
