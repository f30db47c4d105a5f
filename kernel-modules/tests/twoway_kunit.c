// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the modules' arithmetic, in the kernel that it is compiled for: the headers that
 * neither lock nor read a clock, each a suite. Numbers are derived beside them from the papers or
 * the definition of a slot, never from the code.
 */

#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "../dtm_rate.h"
#include "../dtm_service.h"

/* A full Ethernet frame, and a TCP acknowledgement in one. */
#define FRAME 1514
#define ACK 66

/* dtm_service.h */

/* 8 bits of 512 kbit/s take 15625 ns; n slots take an n-th, and not a nanosecond less. */
static void service_time_is_size_over_rate(struct kunit *test)
{
	static const u32 sizes[] = { 1, ACK, FRAME, 9180, 65535, U32_MAX };
	u32 n, i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 work = 15625ULL * sizes[i];
		struct dtm_service s = {};

		dtm_service_begin(&s, 1000, sizes[i]);
		KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 1, false), 1000 + work);
		for (n = 1; n <= DTM_MAX_SLOTS; n += 1 + n / 16) {
			u64 ns = dtm_service_end(&s, n, false) - 1000;

			KUNIT_EXPECT_GE(test, ns * n, work);
			KUNIT_EXPECT_LT(test, (ns - 1) * n, work);
		}
	}
}

/* Looking at a transmission, at whatever times, does not move its end. */
static void service_end_ignores_looks(struct kunit *test)
{
	struct dtm_service s = {};
	u64 now, end;

	dtm_service_begin(&s, 0, FRAME);
	end = dtm_service_end(&s, 7, false);
	for (now = 0; now < end; now += 997) {
		dtm_service_advance(&s, now, 7);
		KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 7, false), end);
	}
}

/*
 * 1514 bytes are 23656250 slot-ns. After 1 ms on 4 slots 19656250 are left, which 8 slots send
 * in 2457031.25 ns: at 3457032.
 */
static void service_change_is_pro_rata(struct kunit *test)
{
	struct dtm_service s = {};

	dtm_service_begin(&s, 0, FRAME);
	dtm_service_advance(&s, 1000000, 4);
	KUNIT_EXPECT_EQ(test, s.work, 19656250);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 8, false), 3457032);
}

/* The k-th packet of a backlog ends at k * L / rate, rounded up once, not k times. */
static void service_backlog_does_not_drift(struct kunit *test)
{
	static const u32 slots[] = { 1, 2, 3, 7, 19, 20, 1000, 8191, 8192 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		u32 n = slots[i];
		struct dtm_service s = {};

		dtm_service_begin(&s, 0, ACK);
		for (k = 1; k <= 1000; k++) {
			u64 exact = div_u64(15625ULL * ACK * k + n - 1, n);

			KUNIT_ASSERT_EQ(test, dtm_service_end(&s, n, false), exact);
			dtm_service_follow(&s, n, false, ACK);
		}
	}
}

/* The smallest packet of all still outweighs the credit of the packet before it. */
static void service_credit_is_below_a_byte(struct kunit *test)
{
	struct dtm_service s = {};
	u32 n;

	for (n = 1; n <= DTM_MAX_SLOTS; n++) {
		dtm_service_begin(&s, 0, FRAME);
		dtm_service_follow(&s, n, false, 1);
		KUNIT_ASSERT_GT(test, s.work, 0);
		KUNIT_ASSERT_LE(test, s.work, 15625);
	}
}

/* A gap in the backlog loses the credit: the next packet takes its full time. */
static void service_idle_channel_has_no_credit(struct kunit *test)
{
	struct dtm_service s = {};

	dtm_service_begin(&s, 0, FRAME);
	dtm_service_advance(&s, NSEC_PER_SEC, 7);
	KUNIT_EXPECT_EQ(test, s.work, 0);
	/* 23656250 / 7 = 3379464.3 */
	KUNIT_EXPECT_EQ(test, s.since, 3379465);
	dtm_service_begin(&s, NSEC_PER_SEC, FRAME);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 7, false), NSEC_PER_SEC + 3379465);
}

/*
 * Framed, the transmission takes whole cycles of 125 us: 8 bytes on one slot exactly one, 9 bytes
 * two; and the next one begins where it ended.
 */
static void service_framed_takes_whole_cycles(struct kunit *test)
{
	struct dtm_service s = {};

	dtm_service_begin(&s, 333, 8);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 1, true), 333 + 125000);
	dtm_service_follow(&s, 1, true, 9);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 1, true), 333 + 125000 + 250000);
	dtm_service_follow(&s, 1, true, 9);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, 2, true), 333 + 375000 + 125000);
}

static struct kunit_case service_cases[] = {
	KUNIT_CASE(service_time_is_size_over_rate),
	KUNIT_CASE(service_end_ignores_looks),
	KUNIT_CASE(service_change_is_pro_rata),
	KUNIT_CASE(service_backlog_does_not_drift),
	KUNIT_CASE(service_credit_is_below_a_byte),
	KUNIT_CASE(service_idle_channel_has_no_credit),
	KUNIT_CASE(service_framed_takes_whole_cycles),
	{}
};

static struct kunit_suite service_suite = {
	.name = "dtm_service",
	.test_cases = service_cases,
};

/* dtm_rate.h */

/* 62500 bytes in 100 ms are 5 Mbit/s; 2^32 packets of 64 KiB in a minute do not overflow. */
static void rate_measure_is_bits_per_second(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dtm_rate_measure(62500, 100 * NSEC_PER_MSEC), 5000000);
	KUNIT_EXPECT_EQ(test, dtm_rate_measure(1, 60 * NSEC_PER_SEC), 0);
	KUNIT_EXPECT_EQ(test, dtm_rate_measure(1ULL << 48, 60 * NSEC_PER_SEC),
			div_u64(1ULL << 51, 60));
}

/* A step moves by 2^-shift of the distance, rounded towards staying; shift 0 arrives at once. */
static void rate_step_is_a_share_of_the_distance(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dtm_rate_step(1000, 9000, 3, 5), 2000);
	KUNIT_EXPECT_EQ(test, dtm_rate_step(9000, 1000, 5, 3), 8000);
	KUNIT_EXPECT_EQ(test, dtm_rate_step(1000, 1007, 3, 3), 1000);
	KUNIT_EXPECT_EQ(test, dtm_rate_step(1007, 1000, 3, 3), 1007);
	KUNIT_EXPECT_EQ(test, dtm_rate_step(0, 1ULL << 40, 0, 16), 1ULL << 40);
	KUNIT_EXPECT_EQ(test, dtm_rate_step(1ULL << 40, 0, 16, 0), 0);
}

/*
 * (7/8)^n of a step is left after n samples: under half after 6, under a tenth after 18, under a
 * hundredth after 35, and not one sample earlier. Whole numbers stop short by at most 2^3 - 1.
 */
static void rate_step_response_is_exponential(struct kunit *test)
{
	const u64 rate = 10000000;
	u64 estimate = 0;
	u32 n;

	for (n = 1; n <= 500; n++) {
		estimate = dtm_rate_step(estimate, rate, 3, 3);
		KUNIT_EXPECT_EQ(test, estimate > rate / 2, n >= 6);
		KUNIT_EXPECT_EQ(test, estimate > rate / 10 * 9, n >= 18);
		KUNIT_EXPECT_EQ(test, estimate > rate / 100 * 99, n >= 35);
	}
	KUNIT_EXPECT_LE(test, estimate, rate);
	KUNIT_EXPECT_GT(test, estimate, rate - 8);
}

/* Half of two slots on each side of the estimate, and no rate below zero. */
static void rate_corridor_is_around_the_estimate(struct kunit *test)
{
	struct dtm_rate rate = { .estimate = 5000000 };

	dtm_rate_centre(&rate, 2000);
	KUNIT_EXPECT_EQ(test, rate.lower, 5000000 - 512000);
	KUNIT_EXPECT_EQ(test, rate.upper, 5000000 + 512000);
	KUNIT_EXPECT_FALSE(test, dtm_rate_is_outside(&rate));
	rate.estimate = 5512000;
	KUNIT_EXPECT_FALSE(test, dtm_rate_is_outside(&rate));
	rate.estimate = 5512001;
	KUNIT_EXPECT_TRUE(test, dtm_rate_is_outside(&rate));
	rate.estimate = 4487999;
	KUNIT_EXPECT_TRUE(test, dtm_rate_is_outside(&rate));
	rate.estimate = 511999;
	dtm_rate_centre(&rate, 2000);
	KUNIT_EXPECT_EQ(test, rate.lower, 0);
}

/*
 * The paper's flow of 5 Mbit/s is 9.765 slots; margin 0.75 and half the corridor of 2 make it
 * 11.515: 12 slots, 6.144 Mbit/s, are the 1 Mbit/s above it of the paper's figure 4.
 */
static void rate_slots_have_margin_and_corridor(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(5000000, 750, 2000, DTM_ROUND_UP), 12);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(5000000, 750, 2000, DTM_ROUND_NEAREST), 12);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(5000000, 750, 2000, DTM_ROUND_DOWN), 11);
}

/* Whole slots stay what they are however they are rounded; half a slot goes up to the nearest. */
static void rate_slots_round_as_told(struct kunit *test)
{
	u8 rounding;

	for (rounding = 0; rounding <= DTM_ROUND_MAX; rounding++)
		KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000, 0, 0, rounding), 7);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000 + 1, 0, 0, DTM_ROUND_UP), 8);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000 + 1, 0, 0, DTM_ROUND_NEAREST), 7);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000 + 256000, 0, 0, DTM_ROUND_NEAREST), 8);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(8 * 512000 - 1, 0, 0, DTM_ROUND_DOWN), 7);
}

/* A channel keeps one slot for an estimate of nothing, and gets no more than a link has. */
static void rate_slots_are_one_to_8192(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(0, 0, 0, DTM_ROUND_DOWN), 1);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(0, 0, 0, DTM_ROUND_UP), 1);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(1ULL << 40, 8192000, 8192000, DTM_ROUND_UP), 8192);
}

static struct kunit_case rate_cases[] = {
	KUNIT_CASE(rate_measure_is_bits_per_second),
	KUNIT_CASE(rate_step_is_a_share_of_the_distance),
	KUNIT_CASE(rate_step_response_is_exponential),
	KUNIT_CASE(rate_corridor_is_around_the_estimate),
	KUNIT_CASE(rate_slots_have_margin_and_corridor),
	KUNIT_CASE(rate_slots_round_as_told),
	KUNIT_CASE(rate_slots_are_one_to_8192),
	{}
};

static struct kunit_suite rate_suite = {
	.name = "dtm_rate",
	.test_cases = rate_cases,
};

kunit_test_suites(&service_suite, &rate_suite);

MODULE_DESCRIPTION("Unit tests of the modules of twoway");
MODULE_LICENSE("GPL");
