// SPDX-License-Identifier: GPL-2.0-only
/*
 * times - times(2) for packetdrill, which waits for ten ticks of it before each script
 *
 *   LD_PRELOAD=times.so packetdrill ...
 *
 * It polls for 100 ms, with 400,000 system calls, each slow under user-mode Linux. This library sleeps
 * to the end of each millisecond, so that the poll sees each tick as early as before. The first call
 * waits for a multiple of PHASE_NS of the clock: the kernel's timer wheel rounds long times by the
 * clock, so a script's result would depend on when it starts.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#define MS_NS	 1000000LL
#define SPIN_NS	 3000LL			/* before a tick, polled: a wake-up takes 0.5 us */
#define PHASE_NS (32768 * MS_NS)	/* of all steps to which times of up to half an hour are rounded */

static void sleep_until(long long ns)
{
	struct timespec at = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

clock_t times(struct tms *spent)
{
	static int in_phase;
	struct timespec at;
	long long now;

	clock_gettime(CLOCK_MONOTONIC, &at);
	now = at.tv_sec * 1000000000LL + at.tv_nsec;
	if (!in_phase++)
		sleep_until((now / PHASE_NS + 1) * PHASE_NS);
	else if (now % MS_NS < MS_NS - SPIN_NS)
		sleep_until((now / MS_NS + 1) * MS_NS - SPIN_NS);
	return syscall(SYS_times, spent);
}
