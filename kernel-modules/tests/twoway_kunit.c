// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the congestion controls' arithmetic, in the kernel that it is compiled for: the
 * headers that neither lock nor read a clock, each a suite; and of variants.h, which registers
 * names. Numbers are derived beside them from the papers, never from the code. The arithmetic of
 * the qdiscs is tested in user space (user_space.py).
 */

#include <kunit/test.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "../bbr3_model.h"
#include "../fast_window.h"
#include "../prague_window.h"
#include "../tahoe_timer.h"
#include "../tahoe_window.h"
#include "../variants.h"

/* bbr3_model.h */

/* 66 packets in 40 ms are 1650 packets/s: 1.65e-3 packets/us, and 66 in 40 ms again. */
static void bbr3_volume_is_what_the_rate_sends(struct kunit *test)
{
	u32 rate = bbr3_rate(66, 40000);

	KUNIT_EXPECT_EQ(test, rate, 27682);	/* 1.65e-3 * 2^24, cut */
	KUNIT_EXPECT_EQ(test, bbr3_volume(rate, 40000, 256), 66);
	KUNIT_EXPECT_EQ(test, bbr3_volume(rate, 40000, 128), 33);
	KUNIT_EXPECT_EQ(test, bbr3_volume(rate, 40610, 256), 68);	/* 67.007, rounded up */
	KUNIT_EXPECT_EQ(test, bbr3_volume(U32_MAX, U32_MAX, 710), S32_MAX);
	KUNIT_EXPECT_EQ(test, bbr3_rate(U32_MAX, 1), BBR3_INFINITE - 1);
}

/* 1650 packets/s of 1000 bytes, less 1 %: 1633500 bytes/s, a little less for the cut rate. */
static void bbr3_paces_below_the_rate(struct kunit *test)
{
	u32 rate = bbr3_rate(66, 40000);

	KUNIT_EXPECT_EQ(test, bbr3_bytes_per_s(rate, 256, 1000), 1633476);
	KUNIT_EXPECT_EQ(test, bbr3_bytes_per_s(rate, 320, 1000), 2041845);
	KUNIT_EXPECT_EQ(test, bbr3_bytes_per_s(U32_MAX, 710, 9000), 6326099998527);
}

/* Two of a hundred are no reason, three are; losses cross a fiftieth after the second of 98 + x. */
static void bbr3_finds_the_safe_volume(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, bbr3_too_high(0, 0));
	KUNIT_EXPECT_FALSE(test, bbr3_too_high(2, 100));
	KUNIT_EXPECT_TRUE(test, bbr3_too_high(3, 100));
	/* (0 + x) / (90 + x) = 1/50 for x = 90/49. */
	KUNIT_EXPECT_EQ(test, bbr3_inflight_at_loss(100, 10, 10), 91);
	/* (1 + x) / (98 + x) = 1/50 for x = 48/49. */
	KUNIT_EXPECT_EQ(test, bbr3_inflight_at_loss(100, 3, 2), 98);
	KUNIT_EXPECT_EQ(test, bbr3_inflight_at_loss(100, 10, 1), 99);
	KUNIT_EXPECT_EQ(test, bbr3_inflight_at_loss(5, 10, 10), 0);
	KUNIT_EXPECT_EQ(test, bbr3_with_headroom(100), 85);
	KUNIT_EXPECT_EQ(test, bbr3_with_headroom(5), BBR3_MIN_CWND);
	KUNIT_EXPECT_EQ(test, bbr3_with_headroom(BBR3_INFINITE), BBR3_INFINITE);
}

/* Which bounds hold in which state: BoundCwndForModel(). */
static void bbr3_states_have_their_bounds(struct kunit *test)
{
	static const u32 bounds[] = {
		[BBR3_STARTUP] = 120, [BBR3_DRAIN] = 120, [BBR3_DOWN] = 100, [BBR3_CRUISE] = 85,
		[BBR3_REFILL] = 100, [BBR3_UP] = 100, [BBR3_PROBE_RTT] = 85,
	};
	struct bbr3 ca = { .inflight_longterm = 100, .inflight_shortterm = 120 };

	for (ca.state = 0; ca.state < ARRAY_SIZE(bounds); ca.state++)
		KUNIT_EXPECT_EQ(test, bbr3_cwnd_bound(&ca), bounds[ca.state]);
	ca.inflight_shortterm = 1;
	KUNIT_EXPECT_EQ(test, bbr3_cwnd_bound(&ca), BBR3_MIN_CWND);
}

static struct kunit_case bbr3_cases[] = {
	KUNIT_CASE(bbr3_volume_is_what_the_rate_sends),
	KUNIT_CASE(bbr3_paces_below_the_rate),
	KUNIT_CASE(bbr3_finds_the_safe_volume),
	KUNIT_CASE(bbr3_states_have_their_bounds),
	{}
};

static struct kunit_suite bbr3_suite = {
	.name = "bbr3_model",
	.test_cases = bbr3_cases,
};

/* prague_window.h */

/* A sixteenth of the way to the share, from 1 and from 0; all marked is the most. */
static void prague_alpha_follows_the_share(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, prague_next_alpha(PRAGUE_ALPHA_ONE, 0, 10), 983040);
	KUNIT_EXPECT_EQ(test, prague_next_alpha(0, 5, 10), 32768);
	KUNIT_EXPECT_EQ(test, prague_next_alpha(PRAGUE_ALPHA_ONE, 11, 10), PRAGUE_ALPHA_ONE);
	KUNIT_EXPECT_EQ(test, prague_next_alpha(0, 0, 0), 0);
}

/* At 5 ms a flow grows by 1/25 of a packet in a round trip, at 25 ms and above by one. */
static void prague_growth_is_that_of_25_ms(struct kunit *test)
{
	struct prague_window w = { .packets = 10 };

	KUNIT_EXPECT_EQ(test, prague_increase(5000), 2621);	/* 65536 / 25 */
	KUNIT_EXPECT_EQ(test, prague_increase(25000), PRAGUE_INCREASE_ONE);
	KUNIT_EXPECT_EQ(test, prague_increase(U32_MAX), PRAGUE_INCREASE_ONE);
	prague_window_grow(&w, 5, PRAGUE_INCREASE_ONE);
	KUNIT_EXPECT_EQ(test, w.packets, 10);
	KUNIT_EXPECT_EQ(test, w.fraction, 1U << 31);
	prague_window_grow(&w, 5, PRAGUE_INCREASE_ONE);
	KUNIT_EXPECT_EQ(test, w.packets, 11);
	w.packets = PRAGUE_MAX_PACKETS;
	prague_window_grow(&w, U32_MAX, PRAGUE_INCREASE_ONE);
	KUNIT_EXPECT_EQ(test, w.packets, PRAGUE_MAX_PACKETS);
}

/* Half of the share goes: of 100 packets 50 at 1, 12.5 at a quarter; two are left. */
static void prague_cut_is_half_of_the_share(struct kunit *test)
{
	struct prague_window w = { .packets = 100 };

	prague_window_cut(&w, PRAGUE_ALPHA_ONE / 4);
	KUNIT_EXPECT_EQ(test, w.packets, 87);
	KUNIT_EXPECT_EQ(test, w.fraction, 1U << 31);
	prague_window_cut(&w, PRAGUE_ALPHA_ONE);
	KUNIT_EXPECT_EQ(test, w.packets, 43);
	w.packets = 3;
	prague_window_cut(&w, PRAGUE_ALPHA_ONE);
	KUNIT_EXPECT_EQ(test, w.packets, PRAGUE_MIN_PACKETS);
	KUNIT_EXPECT_EQ(test, w.fraction, 0);
	w.packets = PRAGUE_MAX_PACKETS;
	prague_window_cut(&w, PRAGUE_ALPHA_ONE);
	KUNIT_EXPECT_EQ(test, w.packets, PRAGUE_MAX_PACKETS / 2);
}

static struct kunit_case prague_cases[] = {
	KUNIT_CASE(prague_alpha_follows_the_share),
	KUNIT_CASE(prague_growth_is_that_of_25_ms),
	KUNIT_CASE(prague_cut_is_half_of_the_share),
	{}
};

static struct kunit_suite prague_suite = {
	.name = "prague_window",
	.test_cases = prague_cases,
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
		window = fast_next_window(window, window, fast_q24(100000), window * 1000, 20, 500);
		if (distance & 1)
			break;
		distance /= 2;
	}
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(120), fast_q24(120), fast_q24(100000),
					       fast_q24(120000), 20, 500), fast_q24(120));
}

/* Without delay it grows by gamma * alpha, but never beyond twice the window. */
static void fast_growth_is_bounded(struct kunit *test)
{
	const u64 rtt = fast_q24(100000), most = fast_q24(FAST_MAX_WINDOW);

	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(50), fast_q24(50), rtt, rtt, 20, 500),
			fast_q24(60));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(50), fast_q24(50), rtt + 1, rtt, 20, 500),
			fast_q24(60));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(2), fast_q24(2), rtt, rtt, 100, 1000),
			fast_q24(4));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(100), fast_q24(100), 1, rtt, 1, 1000),
			fast_q24(FAST_MIN_WINDOW));
	KUNIT_EXPECT_EQ(test, fast_next_window(most, most, rtt, rtt,
					       FAST_MAX_WINDOW, 1000),
			fast_q24(FAST_MAX_WINDOW));
	/* Nearly all of the largest window is queued, behind the longest round trip. */
	KUNIT_EXPECT_EQ(test, fast_next_window(most, most, 1,
					       fast_q24(FAST_MAX_RTT_US), 1, 1000),
			fast_q24(FAST_MIN_WINDOW));
}

/* With f packets flown for w the law settles at f base/RTT + alpha, and ns-2's average is slow. */
static void fast_ns2_moves_as_its_module(struct kunit *test)
{
	u64 rtt = fast_q24(100000);

	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(100), fast_q24(80), rtt, rtt, 20, 1000),
			fast_q24(100));
	KUNIT_EXPECT_EQ(test, fast_next_window(fast_q24(100), fast_q24(80), rtt / 2, rtt, 20, 500),
			fast_q24(80));
	KUNIT_EXPECT_EQ(test, fast_average_rtt_ns2(0, 100, 30), fast_q24(100));
	KUNIT_EXPECT_EQ(test, fast_average_rtt_ns2(fast_q24(100), 356, 30), fast_q24(101));
	KUNIT_EXPECT_EQ(test, fast_average_rtt_ns2(fast_q24(100), 356, 770), fast_q24(101));
	KUNIT_EXPECT_EQ(test, fast_average_rtt_ns2(fast_q24(1000), 488, 1536), fast_q24(999));
}

/* Each ACK adds a packet while less than 0.75 ms is queued, and none before the first sample. */
static void fast_ns2_grows_below_its_threshold(struct kunit *test)
{
	const u64 threshold = fast_q24(20750);

	KUNIT_EXPECT_FALSE(test, fast_has_little_delay(0, 20000));
	KUNIT_EXPECT_TRUE(test, fast_has_little_delay(fast_q24(20000), 20000));
	KUNIT_EXPECT_TRUE(test, fast_has_little_delay(threshold - 1, 20000));
	KUNIT_EXPECT_FALSE(test, fast_has_little_delay(threshold, 20000));
	KUNIT_EXPECT_TRUE(test, fast_has_little_delay(fast_q24(FAST_MAX_RTT_US), FAST_MAX_RTT_US));
}

/* A window's fraction is cut off, never rounded up. */
static void fast_ns2_windows_are_whole(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, fast_cut(fast_q24(33)), fast_q24(33));
	KUNIT_EXPECT_EQ(test, fast_cut(fast_q24(34) - 1), fast_q24(33));
	KUNIT_EXPECT_EQ(test, fast_cut(fast_q24(FAST_MAX_WINDOW) + 1), fast_q24(FAST_MAX_WINDOW));
}

/* ns-2 spreads an increase over ACKs of 10 ms, with whole distances, or over none. */
static void fast_ns2_spreads_over_10_ms(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, fast_spread_as_ns2(15, 250, fast_q24(20000), 4000), 15 * 8);
	KUNIT_EXPECT_EQ(test, fast_spread_as_ns2(15, 2, fast_q24(100000), 4000), 15);
	KUNIT_EXPECT_EQ(test, fast_spread_as_ns2(15, 250, fast_q24(20000), 3999), 0);
	KUNIT_EXPECT_EQ(test, fast_spread_as_ns2(1, FAST_MAX_WINDOW, 1, 4000), FAST_MAX_WINDOW);
	KUNIT_EXPECT_EQ(test, fast_spread(100, 110, 20, 5), 102);
	KUNIT_EXPECT_EQ(test, fast_spread(100, 130, 20, 20), 120);
	KUNIT_EXPECT_EQ(test, fast_spread(100, 130, 20, 30), 130);
	KUNIT_EXPECT_EQ(test, fast_spread(100, 130, 0, 1), 130);
}

/* Where ns-2 spreads an increase it is whole; the fraction of the window stays. */
static void fast_ns2_increases_are_whole(struct kunit *test)
{
	const u64 half = fast_q24(1) / 2, window = fast_q24(33) + half;

	KUNIT_EXPECT_EQ(test, fast_cut_increase(window, window + half, 4000), window);
	KUNIT_EXPECT_EQ(test, fast_cut_increase(window, window + 3 * half, 4000),
			window + fast_q24(1));
	KUNIT_EXPECT_EQ(test, fast_cut_increase(window, window + half, 3999), window + half);
	KUNIT_EXPECT_EQ(test, fast_cut_increase(window, window - 1, 4000), window - 1);
}

/* An increase to no more than the double adds at most a segment per ACK, and all of it in time. */
static void fast_increase_is_spread_evenly(struct kunit *test)
{
	u32 from, to, acked;

	for (from = 1; from <= 40; from++)
		for (to = from; to <= 2 * from; to++)
			for (acked = 0; acked <= from; acked++) {
				u32 now = fast_spread(from, to, from, acked);
				u32 next = fast_spread(from, to, from, acked + 1);

				/* now - from is (to - from) * acked / from, rounded down. */
				KUNIT_ASSERT_LE(test, (now - from) * from, (to - from) * acked);
				KUNIT_ASSERT_GE(test, next, now);
				KUNIT_ASSERT_LE(test, next, now + 1);
			}
	KUNIT_EXPECT_EQ(test, fast_spread(10, 20, 10, 5), 15);
	KUNIT_EXPECT_EQ(test, fast_spread(10, 20, 10, 10), 20);
	KUNIT_EXPECT_EQ(test, fast_spread(10, 20, 10, 1000), 20);
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
	KUNIT_CASE(fast_ns2_moves_as_its_module),
	KUNIT_CASE(fast_ns2_grows_below_its_threshold),
	KUNIT_CASE(fast_ns2_windows_are_whole),
	KUNIT_CASE(fast_ns2_spreads_over_10_ms),
	KUNIT_CASE(fast_ns2_increases_are_whole),
	KUNIT_CASE(fast_increase_is_spread_evenly),
	KUNIT_CASE(fast_thousandths_are_cut),
	{}
};

static struct kunit_suite fast_suite = {
	.name = "fast_window",
	.test_cases = fast_cases,
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

kunit_test_suites(&bbr3_suite, &prague_suite, &fast_suite, &variants_suite, &tahoe_suite,
		  &timer_suite);

MODULE_DESCRIPTION("Unit tests of the modules of twoway");
MODULE_LICENSE("GPL");
