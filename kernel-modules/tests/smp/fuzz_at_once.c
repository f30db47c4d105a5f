// SPDX-License-Identifier: GPL-2.0-only
/* qdisc_fuzz on a clock that goes on by itself: each sleep lasts a millionth. */
#include <time.h>

static int sleep_less(const struct timespec *span)
{
	struct timespec less = { 0, span->tv_sec * 1000 };

	return nanosleep(&less, NULL);
}

#define CLOCK_GOES_ON 1
#define nanosleep(span, left) sleep_less(span)
#include "../fuzz/qdisc_fuzz.c"
