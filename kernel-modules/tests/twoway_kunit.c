// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the modules' arithmetic, in the kernel that it is compiled for: the headers that
 * neither lock nor read a clock, each a suite; and of variants.h, which registers names. Numbers
 * are derived beside them from the papers or the definition of a slot, never from the code.
 */

#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/module.h>

/* The channel and its allocators are whole files, of another module, that are pure as well. */
#include "../dtm/dtm_core.c"
#include "../dtm/dtm_alloc_rate.c"
#include "../dtm/dtm_alloc_buffer.c"
#include "../dtm/dtm_alloc_hysteresis.c"
#include "../dtm/dtm_alloc_trace.c"
#include "../fast_window.h"
#include "../medium.h"
#include "../tahoe_timer.h"
#include "../tahoe_window.h"
#include "../timetable.h"
#include "../variants.h"

/* A full Ethernet frame, and a TCP ACK in one. */
#define FRAME 1514
#define ACK 66

/* dtm_service.h */

/* When a packet that arrives now at an idle channel has been sent. */
static u64 sent_at(struct dtm_service *s, u64 now, u32 slots, u32 bytes, bool framed)
{
	return dtm_service_end(s, dtm_service_arrive(s, now, slots, bytes, framed), slots, framed);
}

/* 8 bits of 512 kbit/s take 15625 ns; n slots take an n-th, and not a nanosecond less. */
static void service_time_is_size_over_rate(struct kunit *test)
{
	static const u32 sizes[] = { 1, ACK, FRAME, 9180, 65535, U32_MAX };
	u32 n, i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 work = 15625ULL * sizes[i];

		for (n = 1; n <= TC_DTM_MAX_SLOTS; n += 1 + n / 16) {
			struct dtm_service s = {};
			u64 ns = sent_at(&s, 1000, n, sizes[i], false) - 1000;

			KUNIT_EXPECT_GE(test, ns * n, work);
			KUNIT_EXPECT_LT(test, (ns - 1) * n, work);
		}
	}
}

/* Looking at a transmission, at whatever times, does not move its end. */
static void service_end_ignores_looks(struct kunit *test)
{
	struct dtm_service s = {};
	u64 tag = dtm_service_arrive(&s, 0, 7, FRAME, false);
	u64 now, end = dtm_service_end(&s, tag, 7, false);

	for (now = 0; now < end; now += 997) {
		dtm_service_advance(&s, now, 7);
		KUNIT_EXPECT_EQ(test, dtm_service_end(&s, tag, 7, false), end);
	}
}

/*
 * 1514 bytes are 23656250 slot-ns. After 1 ms on 4 slots 19656250 are left, which 8 slots send
 * in 2457031.25 ns: at 3457032.
 */
static void service_change_is_pro_rata(struct kunit *test)
{
	struct dtm_service s = {};
	u64 tag = dtm_service_arrive(&s, 0, 4, FRAME, false);

	dtm_service_advance(&s, 1000000, 4);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, tag, 8, false), 3457032);
}

/*
 * 64 bytes are sent over one slot by 1 ms, and nobody takes them. With 100 slots from 11 ms on the
 * 1514 bytes behind them are sent at 11 ms + (23656250 - 10000000) / 100 ns, as if somebody had.
 */
static void service_change_does_not_act_on_the_past(struct kunit *test)
{
	struct dtm_service s = {};
	u64 first = dtm_service_arrive(&s, 0, 1, 64, false);
	u64 second = dtm_service_arrive(&s, 0, 1, FRAME, false);

	dtm_service_advance(&s, 11000000, 1);
	KUNIT_EXPECT_LE(test, dtm_service_end(&s, first, 100, false), 11000000);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, second, 100, false), 11136563);
}

/* The k-th packet of a backlog ends at k * L / rate, rounded up once, not k times. */
static void service_backlog_does_not_drift(struct kunit *test)
{
	static const u32 slots[] = { 1, 2, 3, 7, 19, 20, 1000, 8191, 65535 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		u32 n = slots[i];
		struct dtm_service s = {};

		for (k = 1; k <= 1000; k++) {
			u64 exact = div_u64(15625ULL * ACK * k + n - 1, n);

			KUNIT_ASSERT_EQ(test, sent_at(&s, 0, n, ACK, false), exact);
		}
	}
}

/* A packet that arrives at an idle channel takes its full time, even in the nanosecond's rest. */
static void service_idle_channel_has_no_credit(struct kunit *test)
{
	struct dtm_service s = {};

	/* 23656250 / 7 = 3379464.3 */
	KUNIT_EXPECT_EQ(test, sent_at(&s, 0, 7, FRAME, false), 3379465);
	KUNIT_EXPECT_EQ(test, sent_at(&s, 3379465, 7, FRAME, false), 2 * 3379465);
	KUNIT_EXPECT_EQ(test, sent_at(&s, NSEC_PER_SEC, 7, FRAME, false), NSEC_PER_SEC + 3379465);
}

/* All slots for a hundred years are more than 2^64 slot-ns, and send a packet in its time. */
static void service_never_overflows(struct kunit *test)
{
	const u64 years = 100 * 365 * 86400ULL * NSEC_PER_SEC;
	struct dtm_service s = {};

	sent_at(&s, 0, 1, FRAME, false);
	KUNIT_EXPECT_EQ(test, sent_at(&s, years, TC_DTM_MAX_SLOTS, FRAME, false), years + 361);
	s.finish = U64_MAX - 7;
	s.done = s.finish;
	KUNIT_EXPECT_EQ(test, sent_at(&s, years, 1, FRAME, false), years + 23656250);
}

/*
 * Framed, a packet takes whole slots of 8 bytes, one after another, and leaves at the end of a
 * cycle of 125 us: 8 bytes on one slot take one, 9 bytes two, and the third ends in the last half
 * of a cycle of two slots.
 */
static void service_framed_keeps_to_cycles(struct kunit *test)
{
	struct dtm_service s = {};
	u64 first = dtm_service_arrive(&s, 125000, 1, 8, true);
	u64 second = dtm_service_arrive(&s, 125000, 1, 9, true);
	u64 third = dtm_service_arrive(&s, 125000, 1, 1, true);

	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, first, 1, true), 250000);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, second, 1, true), 500000);
	dtm_service_advance(&s, 500000, 1);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, third, 2, true), 625000);
	/* Slots that change after the end of its transmission do not move the end of its cycle. */
	dtm_service_advance(&s, 600000, 2);
	KUNIT_EXPECT_EQ(test, dtm_service_end(&s, third, 1, true), 625000);
	dtm_service_advance(&s, 700000, 1);
	KUNIT_EXPECT_LE(test, dtm_service_end(&s, third, 1, true), 700000);
}

static struct kunit_case service_cases[] = {
	KUNIT_CASE(service_time_is_size_over_rate),
	KUNIT_CASE(service_end_ignores_looks),
	KUNIT_CASE(service_change_is_pro_rata),
	KUNIT_CASE(service_change_does_not_act_on_the_past),
	KUNIT_CASE(service_backlog_does_not_drift),
	KUNIT_CASE(service_idle_channel_has_no_credit),
	KUNIT_CASE(service_never_overflows),
	KUNIT_CASE(service_framed_keeps_to_cycles),
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
	KUNIT_EXPECT_EQ(test, dtm_rate_step(0, 1ULL << 40, 0, 10), 1ULL << 40);
	KUNIT_EXPECT_EQ(test, dtm_rate_step(1ULL << 40, 0, 10, 0), 0);
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
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(5000000, 750, 2000, TC_DTM_ROUND_UP), 12);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(5000000, 750, 2000, TC_DTM_ROUND_NEAREST), 12);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(5000000, 750, 2000, TC_DTM_ROUND_DOWN), 11);
}

/* Whole slots stay what they are however they are rounded; half a slot goes up to the nearest. */
static void rate_slots_round_as_told(struct kunit *test)
{
	u8 rounding;

	for (rounding = 0; rounding <= TC_DTM_ROUND_MAX; rounding++)
		KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000, 0, 0, rounding), 7);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000 + 1, 0, 0, TC_DTM_ROUND_UP), 8);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000 + 1, 0, 0, TC_DTM_ROUND_NEAREST), 7);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(7 * 512000 + 256000, 0, 0, TC_DTM_ROUND_NEAREST), 8);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(8 * 512000 - 1, 0, 0, TC_DTM_ROUND_DOWN), 7);
}

/* A channel keeps one slot for an estimate of nothing, and gets no more than a link has. */
static void rate_slots_are_one_to_65535(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(0, 0, 0, TC_DTM_ROUND_DOWN), 1);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(0, 0, 0, TC_DTM_ROUND_UP), 1);
	KUNIT_EXPECT_EQ(test, dtm_rate_slots(1ULL << 40, 65535000, 65535000, TC_DTM_ROUND_UP),
			65535);
}

static struct kunit_case rate_cases[] = {
	KUNIT_CASE(rate_measure_is_bits_per_second),
	KUNIT_CASE(rate_step_is_a_share_of_the_distance),
	KUNIT_CASE(rate_step_response_is_exponential),
	KUNIT_CASE(rate_corridor_is_around_the_estimate),
	KUNIT_CASE(rate_slots_have_margin_and_corridor),
	KUNIT_CASE(rate_slots_round_as_told),
	KUNIT_CASE(rate_slots_are_one_to_65535),
	{}
};

static struct kunit_suite rate_suite = {
	.name = "dtm_rate",
	.test_cases = rate_cases,
};

/* dtm_core.c */

void dtm_channel_changed(struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
			 enum tc_dtm_cause cause)
{
}

/* A pool of some slots for up to two channels. */
static struct dtm_pool *pool_of(struct kunit *test, u32 size)
{
	struct dtm_pool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pool);
	dtm_pool_init(pool, size);
	pool->heap = kunit_kcalloc(test, 2, sizeof(*pool->heap), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pool->heap);
	return pool;
}

static struct dtm_config *configuration(struct kunit *test, u8 allocator)
{
	struct dtm_config *config = kunit_kzalloc(test, sizeof(*config), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, config);
	*config = dtm_defaults;
	config->initial = 10;
	config->allocator = allocator;
	return config;
}

static void advance(struct dtm_pool *pool, u64 now)
{
	while (!dtm_pool_advance(pool, now))
		;
}

/* Slot-nanoseconds that a channel has held until now. */
static u64 held(struct dtm_channel *ch, u64 now)
{
	dtm_count_slots(ch, now);
	return ch->slot_seconds * NSEC_PER_SEC + ch->slot_ns;
}

/*
 * A channel that could have changed since 1 s, and gets a reason at 100 s, changes at 100 s: it
 * has held 10 slots for 100 s and 20 for one more.
 */
static void channel_decides_when_there_is_a_reason(struct kunit *test)
{
	struct dtm_config *config = configuration(test, TC_DTM_HYSTERESIS);
	struct dtm_pool *pool = pool_of(test, TC_DTM_MAX_SLOTS);
	struct dtm_channel ch = {};

	config->n_levels = 2;
	config->levels[0] = (struct dtm_level){ .slots = 10, .up_bytes = 1000 };
	config->levels[1] = (struct dtm_level){ .slots = 20, .down_bytes = 100 };
	dtm_pool_join(pool, &ch, config, 0);
	advance(pool, 50 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, held(&ch, 50 * NSEC_PER_SEC), 500 * NSEC_PER_SEC);
	advance(pool, 100 * NSEC_PER_SEC);
	dtm_arrive(&ch, 100 * NSEC_PER_SEC, FRAME);
	advance(pool, 101 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, ch.slots, 20);
	KUNIT_EXPECT_EQ(test, ch.changed_ns, 100 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, held(&ch, 101 * NSEC_PER_SEC), 1020 * NSEC_PER_SEC);
}

/* A request on its way through the network ends within the bounds set meanwhile. */
static void channel_bounds_hold_for_requests_under_way(struct kunit *test)
{
	struct dtm_config *config = configuration(test, TC_DTM_BUFFER);
	struct dtm_config *narrow = configuration(test, TC_DTM_BUFFER);
	struct dtm_pool *pool = pool_of(test, TC_DTM_MAX_SLOTS);
	struct dtm_channel ch = {};

	config->signalling_ns = 5 * NSEC_PER_SEC;
	config->high = 1000;
	config->low = 100;
	config->step = 50;
	*narrow = *config;
	narrow->max_slots = 40;
	dtm_pool_join(pool, &ch, config, 0);
	dtm_arrive(&ch, 0, FRAME);
	/* Asked for at 1 s, the least time between changes. */
	advance(pool, 2 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, ch.target, 60);
	dtm_reconfigure(&ch, narrow, 2 * NSEC_PER_SEC, false, 0);
	advance(pool, 6 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, ch.slots, 40);
	KUNIT_EXPECT_EQ(test, ch.target, 40);
}

/*
 * Two channels own 60 and 40 of 100 slots. Either may use all that the other leaves; an owner
 * gets its own back at once, and only that.
 */
static void pool_lends_and_returns(struct kunit *test)
{
	struct dtm_config *a_config = configuration(test, TC_DTM_STATIC);
	struct dtm_config *b_config = configuration(test, TC_DTM_STATIC);
	struct dtm_pool *pool = pool_of(test, 100);
	struct dtm_channel a = {}, b = {};

	strscpy(a_config->pool, "bus");
	a_config->owned = 60;
	a_config->initial = 1;
	strscpy(b_config->pool, "bus");
	b_config->owned = 40;
	b_config->initial = 1;
	dtm_pool_join(pool, &a, a_config, 0);
	dtm_pool_join(pool, &b, b_config, 0);
	KUNIT_EXPECT_FALSE(test, dtm_pool_has_room(pool, 1));
	dtm_request(&b, 1, 100, TC_DTM_CAUSE_ALLOCATOR);
	KUNIT_EXPECT_EQ(test, b.slots, 99);
	KUNIT_EXPECT_EQ(test, b.denied, 1);
	KUNIT_EXPECT_EQ(test, dtm_borrowed(&b), 59);
	dtm_request(&a, 2, 100, TC_DTM_CAUSE_ALLOCATOR);
	KUNIT_EXPECT_EQ(test, a.slots, 60);
	KUNIT_EXPECT_EQ(test, b.slots, 40);
	KUNIT_EXPECT_EQ(test, b.reclaimed, 59);
	KUNIT_EXPECT_EQ(test, pool->used, 100);
	dtm_pool_leave(&a, 3);
	/* b has waited for the rest of its hundred. */
	KUNIT_EXPECT_EQ(test, b.slots, 100);
	KUNIT_EXPECT_EQ(test, pool->used, 100);
	KUNIT_EXPECT_TRUE(test, dtm_pool_has_room(pool, 60));
}

/* Estimates that are made up for after an idle hour are the ones that were due. */
static void channel_samples_idle_time_exactly(struct kunit *test)
{
	struct dtm_config *config = configuration(test, TC_DTM_RATE);
	struct dtm_pool *one = pool_of(test, TC_DTM_MAX_SLOTS);
	struct dtm_pool *two = pool_of(test, TC_DTM_MAX_SLOTS);
	struct dtm_channel late = {}, prompt = {};
	u64 now;

	dtm_pool_join(one, &late, config, 0);
	dtm_pool_join(two, &prompt, config, 0);
	dtm_arrive(&late, 0, 62500);
	dtm_arrive(&prompt, 0, 62500);
	for (now = 0; now <= 3600 * NSEC_PER_SEC; now += 50 * NSEC_PER_MSEC)
		advance(two, now);
	advance(one, 3600 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, late.samples, 36000);
	KUNIT_EXPECT_EQ(test, prompt.samples, 36000);
	KUNIT_EXPECT_EQ(test, late.rate.estimate, prompt.rate.estimate);
	KUNIT_EXPECT_EQ(test, late.slots, prompt.slots);
	KUNIT_EXPECT_EQ(test, late.changed_ns, prompt.changed_ns);
	KUNIT_EXPECT_EQ(test, held(&late, now), held(&prompt, now));
}

static struct kunit_case channel_cases[] = {
	KUNIT_CASE(channel_decides_when_there_is_a_reason),
	KUNIT_CASE(channel_bounds_hold_for_requests_under_way),
	KUNIT_CASE(pool_lends_and_returns),
	KUNIT_CASE(channel_samples_idle_time_exactly),
	{}
};

static struct kunit_suite channel_suite = {
	.name = "dtm_channel",
	.test_cases = channel_cases,
};

/* fast_window.h */

/* Halves go away from zero, on either side of it. */
static void fast_quotients_are_nearest(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, fast_div_nearest(5, 4), 1);
	KUNIT_EXPECT_EQ(test, fast_div_nearest(6, 4), 2);
	KUNIT_EXPECT_EQ(test, fast_div_nearest(7, 4), 2);
	KUNIT_EXPECT_EQ(test, fast_div_nearest(-5, 4), -1);
	KUNIT_EXPECT_EQ(test, fast_div_nearest(-6, 4), -2);
	KUNIT_EXPECT_EQ(test, fast_div_nearest(-7, 4), -2);
	KUNIT_EXPECT_EQ(test, fast_whole(fast_q24(7) + (1 << 23)), 8);
	KUNIT_EXPECT_EQ(test, fast_whole(fast_q24(7) + (1 << 23) - 1), 7);
}

/* eta = min{3/w, 1/4}: a quarter of the way up to a window of 12, a tenth at 30. */
static void fast_average_moves_by_its_weight(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, fast_average_rtt(0, 100, 30), fast_q24(100));
	KUNIT_EXPECT_EQ(test, fast_average_rtt(fast_q24(100), 200, 1), fast_q24(125));
	KUNIT_EXPECT_EQ(test, fast_average_rtt(fast_q24(100), 200, 12), fast_q24(125));
	KUNIT_EXPECT_EQ(test, fast_average_rtt(fast_q24(100), 200, 30), fast_q24(110));
	KUNIT_EXPECT_EQ(test, fast_average_rtt(fast_q24(200), 100, 30), fast_q24(190));
	KUNIT_EXPECT_EQ(test, fast_average_rtt(fast_q24(200), 200, 13), fast_q24(200));
}

/* The longest round trip after the shortest, and back, with any window, stays between them. */
static void fast_average_does_not_overflow(struct kunit *test)
{
	u32 window;

	for (window = 1; window < FAST_MAX_WINDOW; window += 1 + window / 2) {
		u64 up = fast_average_rtt(fast_q24(1), FAST_MAX_RTT_US, window);
		u64 down = fast_average_rtt(fast_q24(FAST_MAX_RTT_US), 1, window);

		KUNIT_EXPECT_GT(test, up, fast_q24(1));
		KUNIT_EXPECT_LE(test, up, fast_q24(FAST_MAX_RTT_US));
		KUNIT_EXPECT_LT(test, down, fast_q24(FAST_MAX_RTT_US));
		KUNIT_EXPECT_GE(test, down, fast_q24(1));
	}
}

/*
 * One flow, 1000 segments/s, 100 ms, alpha 20: w* = 120. Its round trip is w ms, so that each
 * update leaves 1 - gamma of the distance; with 80 and 1/2, that is 80 / 2^k, exact in Q24.
 */
static void fast_distance_halves(struct kunit *test)
{
	u64 window = fast_q24(200), distance = fast_q24(80);

	while (distance) {
		KUNIT_ASSERT_EQ(test, window, fast_q24(120) + distance);
		window = fast_next_window(window, fast_q24(100000), window * 1000, 20, 500);
		if (distance & 1)
			break;
		distance /= 2;
	}
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(120), fast_q24(100000),
					       fast_q24(120000), 20, 500), fast_q24(120));
}

/* Without delay it grows by gamma * alpha, but never beyond twice the window. */
static void fast_growth_is_bounded(struct kunit *test)
{
	const u64 rtt = fast_q24(100000);

	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(50), rtt, rtt, 20, 500), fast_q24(60));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(50), rtt + 1, rtt, 20, 500),
			fast_q24(60));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(2), rtt, rtt, 100, 1000), fast_q24(4));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(100), 1, rtt, 1, 1000),
			fast_q24(FAST_MIN_WINDOW));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(FAST_MAX_WINDOW), rtt, rtt,
					       FAST_MAX_WINDOW, 1000),
			fast_q24(FAST_MAX_WINDOW));
	/* Nearly all of the largest window is queued, behind the longest round trip. */
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(FAST_MAX_WINDOW), 1,
					       fast_q24(FAST_MAX_RTT_US), 1, 1000),
			fast_q24(FAST_MIN_WINDOW));
}

/* An increase to no more than the double adds at most a segment per ACK, and all of it in time. */
static void fast_increase_is_spread_evenly(struct kunit *test)
{
	u32 from, to, acked;

	for (from = 1; from <= 40; from++)
		for (to = from; to <= 2 * from; to++)
			for (acked = 0; acked <= from; acked++) {
				u32 now = fast_spread(from, to, acked);
				u32 next = fast_spread(from, to, acked + 1);

				/* now - from is (to - from) * acked / from, rounded down. */
				KUNIT_ASSERT_LE(test, (now - from) * from, (to - from) * acked);
				KUNIT_ASSERT_GE(test, next, now);
				KUNIT_ASSERT_LE(test, next, now + 1);
			}
	KUNIT_EXPECT_EQ(test, fast_spread(10, 20, 5), 15);
	KUNIT_EXPECT_EQ(test, fast_spread(10, 20, 10), 20);
	KUNIT_EXPECT_EQ(test, fast_spread(10, 20, 1000), 20);
}

/* Thousandths are cut, not rounded, up to the largest window and the longest round trip. */
static void fast_thousandths_are_cut(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, fast_thousandths(fast_q24(33) + (1 << 23)), 33500);
	KUNIT_EXPECT_EQ(test, fast_thousandths(fast_q24(33) - 1), 32999);
	KUNIT_EXPECT_EQ(test, fast_thousandths(fast_q24(FAST_MAX_RTT_US)),
			1000ULL * FAST_MAX_RTT_US);
}

static struct kunit_case fast_cases[] = {
	KUNIT_CASE(fast_quotients_are_nearest),
	KUNIT_CASE(fast_average_moves_by_its_weight),
	KUNIT_CASE(fast_average_does_not_overflow),
	KUNIT_CASE(fast_distance_halves),
	KUNIT_CASE(fast_growth_is_bounded),
	KUNIT_CASE(fast_increase_is_spread_evenly),
	KUNIT_CASE(fast_thousandths_are_cut),
	{}
};

static struct kunit_suite fast_suite = {
	.name = "fast_window",
	.test_cases = fast_cases,
};

/* timetable.h */

/* 1500 bytes at 1 MB/s take 1.5 ms; half of them at 2 MB/s take half as long. */
static void timetable_rate_counts_pro_rata(struct kunit *test)
{
	static const struct tc_timetable_step steps[] = { { 0, 1000000 }, { 750000, 2000000 } };
	struct timetable tt = {
		.kind = TC_TIMETABLE_RATE, .n_steps = 2,
		.steps = steps,
	};

	KUNIT_EXPECT_NULL(test, timetable_problem(&tt));
	timetable_start(&tt, 1000, 0);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 1000, 1500), 1000 + 750000 + 375000);
	/* One that waits goes on where that one ended. */
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 2000, 1500), 1000 + 750000 + 375000 + 750000);
}

/* A packet that does not fit waits with what is left; what nobody took is lost. */
static void timetable_opportunities_add_up(struct kunit *test)
{
	static const struct tc_timetable_step steps[] = { { 0, 1500 }, { 4, 1500 } };
	struct timetable tt = {
		.kind = TC_TIMETABLE_OPPORTUNITY, .n_steps = 2, .period = 10,
		.steps = steps,
	};

	KUNIT_EXPECT_NULL(test, timetable_problem(&tt));
	timetable_start(&tt, 0, 0);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 1, 1000), 4);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 1, 500), 4);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 1, 2000), 14);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 1, 1000), 14);
	/* An opportunity at the very time of an arrival is gone. */
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 34, 1), 40);
}

/* A packet with a shorter delay leaves with the one before it, not earlier. */
static void timetable_delays_keep_order(struct kunit *test)
{
	static const struct tc_timetable_step steps[] = { { 0, 100 }, { 50, 10 } };
	struct timetable tt = {
		.kind = TC_TIMETABLE_DELAY, .n_steps = 2,
		.steps = steps,
	};

	KUNIT_EXPECT_NULL(test, timetable_problem(&tt));
	timetable_start(&tt, 0, 0);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 49, 1500), 149);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 50, 1500), 149);
	KUNIT_EXPECT_EQ(test, timetable_arrive(&tt, 140, 1500), 150);
}

static struct kunit_case timetable_cases[] = {
	KUNIT_CASE(timetable_rate_counts_pro_rata),
	KUNIT_CASE(timetable_opportunities_add_up),
	KUNIT_CASE(timetable_delays_keep_order),
	{}
};

static struct kunit_suite timetable_suite = {
	.name = "timetable",
	.test_cases = timetable_cases,
};

/* medium.h */

/* At both ends a packet waits: turns, a gap each, whole ns upwards. */
static void medium_ends_take_turns(struct kunit *test)
{
	struct medium_turns m;

	medium_begin(&m, 100, 1);
	for (int i = 0; i < 4; i++)
		medium_arrive(&m, i % 2, 5);
	for (int i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, medium_next(&m), i % 2);
		KUNIT_EXPECT_EQ(test, medium_send(&m, i % 2, 10), 5 + (i + 1) * 110);
	}
	KUNIT_EXPECT_EQ(test, medium_next(&m), MEDIUM_NO_END);
	KUNIT_EXPECT_EQ(test, medium_bits(1500, 2500000), 600000);
	KUNIT_EXPECT_EQ(test, medium_bits(1, 3 * (u64)NSEC_PER_SEC), 1);
}

/* A turn of several packets pays the gap once, and another of the same end once more. */
static void medium_turn_pays_one_gap(struct kunit *test)
{
	struct medium_turns m;

	medium_begin(&m, 100, 2);
	for (int i = 0; i < 3; i++)
		medium_arrive(&m, 0, 0);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 0, 10), 110);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 0, 10), 120);
	KUNIT_EXPECT_EQ(test, medium_next(&m), 0);
	KUNIT_EXPECT_EQ(test, medium_leaves(&m, 0, 10), 230);
	/* But the other's turn is first, if a packet comes there in time. */
	medium_arrive(&m, 1, 120);
	KUNIT_EXPECT_EQ(test, medium_next(&m), 1);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 1, 10), 230);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 0, 10), 340);
}

/* An idle medium ends a turn: the next packet pays the gap, and the other end is the first. */
static void medium_idle_time_ends_turn(struct kunit *test)
{
	struct medium_turns m;

	medium_begin(&m, 100, 8);
	medium_arrive(&m, 0, 0);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 0, 10), 110);
	/* At the very time of its end a packet is one more of the turn. */
	medium_arrive(&m, 0, 110);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 0, 10), 120);
	medium_arrive(&m, 0, 121);
	medium_arrive(&m, 1, 121);
	KUNIT_EXPECT_EQ(test, medium_next(&m), 1);
	KUNIT_EXPECT_EQ(test, medium_send(&m, 1, 10), 231);
}

static struct kunit_case medium_cases[] = {
	KUNIT_CASE(medium_ends_take_turns),
	KUNIT_CASE(medium_turn_pays_one_gap),
	KUNIT_CASE(medium_idle_time_ends_turn),
	{}
};

static struct kunit_suite medium_suite = {
	.name = "medium",
	.test_cases = medium_cases,
};

/* variants.h */

/* Congestion controls of these names, to be registered. */
static struct variant *variants_named(struct kunit *test, const char *first, const char *second)
{
	struct variant *variants = kunit_kcalloc(test, 2, sizeof(*variants), GFP_KERNEL);
	const char * const names[] = { first, second };
	int i;

	KUNIT_ASSERT_NOT_NULL(test, variants);
	for (i = 0; i < 2; i++) {
		variants[i].ops.ssthresh = tcp_reno_ssthresh;
		variants[i].ops.undo_cwnd = tcp_reno_undo_cwnd;
		variants[i].ops.cong_avoid = tcp_reno_cong_avoid;
		variants[i].ops.owner = THIS_MODULE;
		strscpy(variants[i].ops.name, names[i], TCP_CA_NAME_MAX);
	}
	return variants;
}

/* If the second name is taken the first is free again afterwards, and the module may go. */
static void variants_are_registered_all_or_none(struct kunit *test)
{
	struct variant *taken = variants_named(test, "kunit2", "kunit3");
	struct variant *others = variants_named(test, "kunit1", "kunit2");
	int two = 2, count = 2;

	KUNIT_ASSERT_EQ(test, variants_register(taken, &two), 0);
	KUNIT_EXPECT_EQ(test, variants_register(others, &count), -EEXIST);
	KUNIT_EXPECT_EQ(test, count, 0);
	strscpy(others[1].ops.name, "kunit4", TCP_CA_NAME_MAX);
	count = 2;
	KUNIT_EXPECT_EQ(test, variants_register(others, &count), 0);
	KUNIT_EXPECT_EQ(test, count, 2);
	variants_unregister(others, count);
	variants_unregister(taken, two);
}

/* The same while something holds the module, as a socket would: it must stay, without a name. */
static void variants_outlive_their_names(struct kunit *test)
{
	struct variant *taken = variants_named(test, "kunit2", "kunit3");
	struct variant *others = variants_named(test, "kunit1", "kunit2");
	int two = 2, count = 2;

	KUNIT_ASSERT_EQ(test, variants_register(taken, &two), 0);
	__module_get(THIS_MODULE);
	KUNIT_EXPECT_EQ(test, variants_register(others, &count), 0);
	KUNIT_EXPECT_EQ(test, count, 0);
	/* Taken by its first name, no socket can have it: that may fail. */
	count = 1;
	KUNIT_EXPECT_EQ(test, variants_register(&others[1], &count), -EEXIST);
	module_put(THIS_MODULE);
	variants_unregister(taken, two);
}

static struct kunit_case variants_cases[] = {
	KUNIT_CASE(variants_are_registered_all_or_none),
	KUNIT_CASE(variants_outlive_their_names),
	{}
};

static struct kunit_suite variants_suite = {
	.name = "variants",
	.test_cases = variants_cases,
};

/* tahoe_window.h */

/* ACKs that it takes from one window to another, in segments. */
static u32 acks_between(u32 from, u32 to, u32 ssthresh, enum tahoe_growth growth)
{
	struct tahoe_window w = { .segments = from };
	u32 acks;

	for (acks = 0; w.segments < to; acks++)
		tahoe_window_open(&w, ssthresh, growth);
	return acks;
}

/* Slow start: one segment per ACK, up to ssthresh and not beyond. */
static void tahoe_slow_start_adds_a_segment(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, acks_between(1, 40, 40, TAHOE_GROWTH_FLOOR), 39);
	KUNIT_EXPECT_EQ(test, acks_between(1, 41, 40, TAHOE_GROWTH_FLOOR), 39 + 40);
	KUNIT_EXPECT_EQ(test, acks_between(1, 40, 40, TAHOE_GROWTH_BSD), 39);
}

/* 1/floor(w): n ACKs from n to n + 1, for every n, so 10 + 11 + ... + 99 from 10 to 100. */
static void tahoe_floor_grows_by_one_per_window(struct kunit *test)
{
	u32 n;

	KUNIT_EXPECT_EQ(test, acks_between(10, 100, 2, TAHOE_GROWTH_FLOOR), 4905);
	for (n = 2; n <= TAHOE_MAX_SEGMENTS; n++) {
		u64 share = tahoe_window_share(n);

		KUNIT_ASSERT_GE(test, share * n, 1ULL << 32);
		KUNIT_ASSERT_LT(test, share * (n - 1), 1ULL << 32);
	}
}

/*
 * 1/w: (w + 1/w)^2 = w^2 + 2 + 1/w^2, so from 10 to 100 it takes (100^2 - 10^2 - S) / 2 ACKs,
 * where S, the sum of all 1/w^2, is ln(100 / 10) = 2.3 within 1/10^2: 4949. What is cut off, less
 * than 2^-16 per ACK, adds up to 0.076 of a segment at most, which near 100 are 8 ACKs more.
 */
static void tahoe_bsd_grows_with_the_root(struct kunit *test)
{
	u32 acks = acks_between(10, 100, 2, TAHOE_GROWTH_BSD);

	KUNIT_EXPECT_GE(test, acks, 4949);
	KUNIT_EXPECT_LE(test, acks, 4949 + 8);
}

/* Neither slow start nor avoidance goes beyond the largest window. */
static void tahoe_window_has_an_end(struct kunit *test)
{
	struct tahoe_window w = { .segments = TAHOE_MAX_SEGMENTS, .fraction = U32_MAX };

	tahoe_window_open(&w, U32_MAX, TAHOE_GROWTH_FLOOR);
	KUNIT_EXPECT_EQ(test, w.segments, TAHOE_MAX_SEGMENTS);
	tahoe_window_open(&w, 2, TAHOE_GROWTH_FLOOR);
	KUNIT_EXPECT_EQ(test, w.segments, TAHOE_MAX_SEGMENTS);
	w.fraction = U32_MAX;
	tahoe_window_open(&w, 2, TAHOE_GROWTH_BSD);
	KUNIT_EXPECT_EQ(test, w.segments, TAHOE_MAX_SEGMENTS);
	tahoe_window_close(&w);
	KUNIT_EXPECT_EQ(test, w.segments, 1);
	KUNIT_EXPECT_EQ(test, w.fraction, 0);
}

/*
 * The paper's MAX[MIN(cwnd/2, maxwnd), 2] in whole segments, and 4.3BSD's, which halves the
 * lesser of cwnd and the receiver's window: they differ where that is less than cwnd.
 */
static void tahoe_threshold_is_the_papers_or_bsds(struct kunit *test)
{
	static const struct {
		u32 window, offered, paper, bsd;
	} cases[] = {
		{ 30, 1000, 15, 15 }, { 31, 1000, 15, 15 }, { 100, 100, 50, 50 },
		{ 100, 60, 50, 30 }, { 100, 20, 20, 10 }, { 40, 20, 20, 10 },
		{ 4, 1000, 2, 2 }, { 3, 1000, 2, 2 }, { 1, 1000, 2, 2 }, { 30, 1, 2, 2 },
		{ 30, 0, 2, 2 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct tahoe_window w = { .segments = cases[i].window, .fraction = U32_MAX };

		KUNIT_EXPECT_EQ(test,
				tahoe_window_ssthresh(&w, cases[i].offered, TAHOE_THRESHOLD_PAPER),
				cases[i].paper);
		KUNIT_EXPECT_EQ(test,
				tahoe_window_ssthresh(&w, cases[i].offered, TAHOE_THRESHOLD_BSD),
				cases[i].bsd);
	}
}

static struct kunit_case tahoe_cases[] = {
	KUNIT_CASE(tahoe_slow_start_adds_a_segment),
	KUNIT_CASE(tahoe_floor_grows_by_one_per_window),
	KUNIT_CASE(tahoe_bsd_grows_with_the_root),
	KUNIT_CASE(tahoe_window_has_an_end),
	KUNIT_CASE(tahoe_threshold_is_the_papers_or_bsds),
	{}
};

static struct kunit_suite tahoe_suite = {
	.name = "tahoe_window",
	.test_cases = tahoe_cases,
};

/* tahoe_timer.h */

/* Before a sample the timer waits for twice 3 s, 12 ticks; after it for twice the sample. */
static void timer_starts_with_a_guess(struct kunit *test)
{
	static const u32 timeouts[] = { 2, 4, 6, 8, 10 };
	u32 ticks;

	for (ticks = 0; ticks < ARRAY_SIZE(timeouts); ticks++) {
		struct tahoe_timer t;

		tahoe_timer_init(&t);
		KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), 12);
		tahoe_timer_sample(&t, ticks);
		KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), timeouts[ticks]);
	}
}

/*
 * 4 ticks, then 8: srtt from 40 to 43 eighths, rttvar from 10 quarters by 3 - 2; the timeout from
 * (10 + 10) / 2 to (10 + 11) / 2. Equal samples take off the deviation what it is, but for less
 * than a tick, which truncation hides: rttvar stays at 3 quarters, srtt at 64 to 71 eighths.
 */
static void timer_follows_the_samples(struct kunit *test)
{
	struct tahoe_timer t;
	u32 i;

	tahoe_timer_init(&t);
	tahoe_timer_sample(&t, 4);
	KUNIT_EXPECT_EQ(test, t.srtt, 40);
	KUNIT_EXPECT_EQ(test, t.rttvar, 10);
	tahoe_timer_sample(&t, 8);
	KUNIT_EXPECT_EQ(test, t.srtt, 43);
	KUNIT_EXPECT_EQ(test, t.rttvar, 11);
	KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), 10);
	for (i = 0; i < 100; i++)
		tahoe_timer_sample(&t, 8);
	KUNIT_EXPECT_EQ(test, t.srtt, 64);
	KUNIT_EXPECT_EQ(test, t.rttvar, 3);
	KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), 9);
	/* Neither ends at nought, which would mean that there was no sample. */
	for (i = 0; i < 100; i++)
		tahoe_timer_sample(&t, 0);
	KUNIT_EXPECT_EQ(test, t.srtt, 7);
	KUNIT_EXPECT_EQ(test, t.rttvar, 3);
	KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), TAHOE_TIMER_MIN_TICKS);
}

/* Doubled at each timeout, up to 64 s, also when the round trip is forgotten; a sample ends it. */
static void timer_backs_off(struct kunit *test)
{
	static const u32 ticks[] = { 8, 16, 32, 64, 128, 128, 128, 128, 128 };
	struct tahoe_timer t;
	u32 i;

	tahoe_timer_init(&t);
	tahoe_timer_sample(&t, 3);
	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), ticks[i]);
		KUNIT_EXPECT_EQ(test, !t.srtt, i > TAHOE_TIMER_LOST_SHIFT);
		tahoe_timer_expired(&t);
	}
	tahoe_timer_sample(&t, 3);
	KUNIT_EXPECT_EQ(test, tahoe_timer_ticks(&t), ticks[0]);
}

static struct kunit_case timer_cases[] = {
	KUNIT_CASE(timer_starts_with_a_guess),
	KUNIT_CASE(timer_follows_the_samples),
	KUNIT_CASE(timer_backs_off),
	{}
};

static struct kunit_suite timer_suite = {
	.name = "tahoe_timer",
	.test_cases = timer_cases,
};

kunit_test_suites(&service_suite, &rate_suite, &channel_suite, &fast_suite, &variants_suite,
		  &tahoe_suite, &timer_suite, &timetable_suite, &medium_suite);

MODULE_DESCRIPTION("Unit tests of the modules of twoway");
MODULE_LICENSE("GPL");
