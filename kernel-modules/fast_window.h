/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of FAST TCP: pure functions, for tcp_fast.c and its unit tests
 *
 * Windows are in segments and averaged round trips in us, both with 24 fractional
 * bits (Q24). An update is off by less than 2^-23 of a segment. Whole segments,
 * rounded down, would hold the window up to 1/gamma segments below its equilibrium.
 */
#ifndef TWOWAY_FAST_WINDOW_H
#define TWOWAY_FAST_WINDOW_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define FAST_SHIFT 24
/* Segments. 2^24 of 1500 bytes are 25 GB; times 1000 (gamma) in Q24 they fill 58 bits. */
#define FAST_MAX_WINDOW ((1U << 24) - 1)
/* Segments. With fewer, one lost packet leaves nothing that could report it. */
#define FAST_MIN_WINDOW 2U
/* gamma is in thousandths. */
#define FAST_GAMMA_ONE 1000
/* us. Three times it in Q24 fills 57 bits, and the sign is needed. */
#define FAST_MAX_RTT_US 0x7fffffffU
/* Segments. The average's weight min{3/w, 1/4} is 1/4 up to this window. */
#define FAST_QUARTER_WEIGHT_WINDOW 12U
/* Samples. The weight of a sample in ns-2's average is one in this number at most. */
#define FAST_NS2_SAMPLES 256U
/* us. ns-2's threshold of queueing delay: below it each ACK adds a packet. */
#define FAST_NS2_LITTLE_DELAY_US 750U
/* us. The least time between two updates of ns-2. */
#define FAST_NS2_PERIOD_US 10000U
/* us. The baseRTT from which on ns-2 spreads increases, in whole packets. */
#define FAST_NS2_PACED_US 4000U

/* To the nearest, halves away from zero; dividend within +-2^62. */
static inline s64 fast_div_nearest(s64 dividend, s32 divisor)
{
	s64 half = divisor / 2;

	return div_s64(dividend < 0 ? dividend - half : dividend + half, divisor);
}

/* A whole number of segments (or us) as Q24. */
static inline u64 fast_q24(u32 whole)
{
	return (u64)whole << FAST_SHIFT;
}

/* Q24 to the nearest whole number. */
static inline u32 fast_whole(u64 q24)
{
	return (q24 + (1U << (FAST_SHIFT - 1))) >> FAST_SHIFT;
}

/* Q24 without its fraction, as ns-2 rounds. */
static inline u64 fast_cut(u64 q24)
{
	return q24 & ~(fast_q24(1) - 1);
}

/* Q24 in thousandths, rounded down: of a segment, or ns of us. */
static inline u64 fast_thousandths(u64 q24)
{
	return mul_u64_u32_shr(q24, 1000, FAST_SHIFT);
}

/*
 * avgRTT <- (1 - eta) avgRTT + eta RTT		eta = min{3/w, 1/4}
 *
 * average: us, Q24; 0 = no sample yet. rtt_us: 1..FAST_MAX_RTT_US.
 * window: segments, 1..FAST_MAX_WINDOW.
 */
static inline u64 fast_average_rtt(u64 average, u32 rtt_us, u32 window)
{
	s64 error = (s64)fast_q24(rtt_us) - (s64)average;

	if (!average)
		return fast_q24(rtt_us);
	if (window <= FAST_QUARTER_WEIGHT_WINDOW)
		return average + fast_div_nearest(error, 4);
	return average + fast_div_nearest(3 * error, window);
}

/* The same with ns-2's weight, min{3/flown, 1/256}; flown: segments, to FAST_MAX_WINDOW. */
static inline u64 fast_average_rtt_ns2(u64 average, u32 rtt_us, u32 flown)
{
	s64 error = (s64)fast_q24(rtt_us) - (s64)average;

	if (!average)
		return fast_q24(rtt_us);
	return average + fast_div_nearest(error, max(FAST_NS2_SAMPLES, flown / 3));
}

/*
 * Whether the queueing delay is below ns-2's threshold; average: us, Q24, 0 = no sample yet.
 * base_rtt_us: 0..FAST_MAX_RTT_US.
 */
static inline bool fast_has_little_delay(u64 average, u32 base_rtt_us)
{
	return average && average < fast_q24(base_rtt_us + FAST_NS2_LITTLE_DELAY_US);
}

/*
 * w <- min{ 2w, (1 - gamma) w + gamma (baseRTT/RTT f + alpha) }
 *    = min{ 2w, w + gamma (alpha + f - w - f qdelay/RTT) }	qdelay = RTT - baseRTT
 *
 * window, flown: w and f, segments, Q24, 1..FAST_MAX_WINDOW; f is w in the paper.
 * base_rtt, average_rtt: us, Q24, not 0.
 * alpha: segments. gamma: thousandths, 1..1000. Returns the new window, Q24, within
 * FAST_MIN_WINDOW..FAST_MAX_WINDOW. A base above the average counts as no delay.
 */
static inline u64 fast_next_window(u64 window, u64 flown, u64 base_rtt, u64 average_rtt,
				   u32 alpha, u32 gamma)
{
	u64 delay = average_rtt > base_rtt ? average_rtt - base_rtt : 0;
	u64 queued = mul_u64_u64_div_u64(flown, delay, average_rtt);
	s64 missing = (s64)fast_q24(alpha) + (s64)flown - (s64)window - (s64)queued;
	u64 next = window + fast_div_nearest(missing * gamma, FAST_GAMMA_ONE);

	if (next > 2 * window)
		next = 2 * window;
	if (next > fast_q24(FAST_MAX_WINDOW))
		return fast_q24(FAST_MAX_WINDOW);
	if (next < fast_q24(FAST_MIN_WINDOW))
		return fast_q24(FAST_MIN_WINDOW);
	return next;
}

/*
 * An increase cut to whole packets where ns-2 paces it, that is from a baseRTT of 4 ms on.
 *
 * window, next: segments, Q24. base_rtt_us: 0..FAST_MAX_RTT_US.
 */
static inline u64 fast_cut_increase(u64 window, u64 next, u32 base_rtt_us)
{
	if (next <= window || base_rtt_us < FAST_NS2_PACED_US)
		return next;
	return window + fast_cut(next - window);
}

/*
 * How many acknowledged segments ns-2 spreads an increase over: it adds one of `more` segments with
 * each n-th ACK of those that come in 10 ms, n whole and at least 1. Over none if baseRTT is below
 * 4 ms.
 *
 * more, flown: segments, 1..FAST_MAX_WINDOW; flown is what a round trip acknowledges.
 * average_rtt: us, Q24, not 0. base_rtt_us: 0..FAST_MAX_RTT_US.
 */
static inline u32 fast_spread_as_ns2(u32 more, u32 flown, u64 average_rtt, u32 base_rtt_us)
{
	u64 acks = div64_u64(fast_q24(flown) * FAST_NS2_PERIOD_US, average_rtt);

	if (base_rtt_us < FAST_NS2_PACED_US)
		return 0;
	return more * max(div_u64(min_t(u64, acks, FAST_MAX_WINDOW), more), 1U);
}

/*
 * The congestion window while an increase is spread evenly over some acknowledged segments, with
 * at most one more for each of them; over none, the increase applies at once.
 *
 * from, to, over: segments, from <= to. acked: segments since the increase was decided.
 */
static inline u32 fast_spread(u32 from, u32 to, u32 over, u32 acked)
{
	u32 more = to - from;

	if (acked < over)
		more = div_u64((u64)more * acked, over);
	return from + (over ? min(more, acked) : more);
}

#endif /* TWOWAY_FAST_WINDOW_H */
