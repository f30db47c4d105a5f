/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernel versions, for timers: since 6.13 they are set up with their function, and newer kernels
 * have clocks and their bases in a header that few others include.
 */
#ifndef TWOWAY_COMPAT_TIMER_H
#define TWOWAY_COMPAT_TIMER_H

#include <linux/hrtimer.h>
#ifdef __has_include	/* which sparse does not know */
#if __has_include("linux/hrtimer_bases.h")
#include <linux/hrtimer_bases.h>
#endif
#endif

#include "common.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

/* A timer that is never started, to ask about others. */
static inline void twoway_timer_on_stack(struct hrtimer *timer)
{
	hrtimer_init_on_stack(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}
#else
static inline void twoway_timer_on_stack(struct hrtimer *timer)
{
	hrtimer_setup_on_stack(timer, hrtimer_dummy_timeout, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
}
#endif

#endif /* TWOWAY_COMPAT_TIMER_H */
