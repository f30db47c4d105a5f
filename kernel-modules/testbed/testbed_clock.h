/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Time for a kernel thread that does a program's work.
 *
 * In virtual time a program's system call takes 256 ns (decision 0001), for which it keeps
 * the processor: threads that wake up wait, interrupts do not. A thread that took no time would let
 * them run earlier, and packets would leave at other times. Other clocks need nothing.
 */
#ifndef TWOWAY_TESTBED_CLOCK_H
#define TWOWAY_TESTBED_CLOCK_H

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>

#include "compat/timer.h"

#ifdef CONFIG_UML_TIME_TRAVEL_SUPPORT
#include <shared/timetravel.h>

/* vm/patches/0003 */
#define TESTBED_CALL_NS		256

/* Let a system call's time pass, from timer to timer, so that each is handled when it is due. */
static inline void testbed_spend(s64 left)
{
	struct hrtimer any;

	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	twoway_timer_on_stack(&any);
	while (left > 0) {
		ktime_t due = READ_ONCE(any.base->cpu_base->expires_next);
		s64 step = clamp(ktime_to_ns(ktime_sub(due, ktime_get())), 1, left);

		ndelay(step);
		left -= step;
	}
	destroy_hrtimer_on_stack(&any);
}

static inline void testbed_spend_call(void)
{
	testbed_spend(TESTBED_CALL_NS);
	cond_resched();
}
#else
static inline void testbed_spend_call(void)
{
}
#endif

/*
 * Sleep until CLOCK_REALTIME reads ns; false if the thread is to end. If ns has passed, it sleeps 1
 * ns, as a program does: no timer is due at once.
 */
static inline bool testbed_sleep_until(s64 ns)
{
	ktime_t at = ns_to_ktime(ns);

	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		/* A slack of 1 ns, as the guest's programs have (decision 0006). */
		if (!schedule_hrtimeout_range_clock(&at, 1, HRTIMER_MODE_ABS, CLOCK_REALTIME))
			return true;
	}
	return false;
}

/* Wait to be ended: a thread's last call. */
static inline void testbed_thread_end(void)
{
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
}

#endif /* TWOWAY_TESTBED_CLOCK_H */
