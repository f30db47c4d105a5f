/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The congestion window of tcp_tahoe as a number: arithmetic alone, no sockets.
 *
 *	w < ssthresh		w += 1				slow start
 *	otherwise		w += 1/floor(w)			Zhang, Shenker and Clark's rule
 *			or	w += 1/w			4.3BSD's
 *	loss		ssthresh = max(min(w/2, offered), 2)	Zhang, Shenker and Clark's rule
 *			or	= max(min(w, offered)/2, 2)	4.3BSD's
 *
 * offered is the receiver's window, the paper's maxwnd. The two thresholds differ only where w is
 * the larger: it grows with every ACK, whether or not the receiver lets it be used.
 *
 * With 1/w, floor(w) sometimes stays what it was for a whole window of ACKs; with
 * 1/floor(w) it grows by one in each, exactly, and so it does here: the step is rounded up, and any
 * excess over the next whole number is dropped. The window sent is floor(w) under either rule.
 */
#ifndef TAHOE_WINDOW_H
#define TAHOE_WINDOW_H

#include <linux/minmax.h>
#include <linux/types.h>

/* Segments: BSD's 65535 bytes, as if a segment were one. Below 2^16 every step is exact. */
#define TAHOE_MAX_SEGMENTS 65535U
/* Segments, in the paper and in 4.3BSD. */
#define TAHOE_MIN_SSTHRESH 2U

/**
 * struct tahoe_window - the window w
 * @segments: floor(w), 1..TAHOE_MAX_SEGMENTS
 * @fraction: w - floor(w), in 2^-32 segments
 */
struct tahoe_window {
	u32 segments;
	u32 fraction;
};

enum tahoe_growth {
	TAHOE_GROWTH_FLOOR,	/* 1/floor(w) */
	TAHOE_GROWTH_BSD,	/* 1/w */
};

enum tahoe_threshold {
	TAHOE_THRESHOLD_PAPER,	/* min(w/2, offered) */
	TAHOE_THRESHOLD_BSD,	/* min(w, offered)/2 */
};

static inline void tahoe_window_close(struct tahoe_window *w)
{
	w->segments = 1;
	w->fraction = 0;
}

static inline void tahoe_window_add_segment(struct tahoe_window *w)
{
	if (w->segments < TAHOE_MAX_SEGMENTS)
		w->segments++;
}

/* 1/n of a segment, n >= 2, in 2^-32, rounded up: n of them are one segment or barely more. */
static inline u32 tahoe_window_share(u32 n)
{
	return ~0U / n + 1;
}

static inline void tahoe_window_grow_floor(struct tahoe_window *w)
{
	u32 sum = w->fraction + tahoe_window_share(w->segments);

	if (sum < w->fraction) {
		tahoe_window_add_segment(w);
		sum = 0;
	}
	w->fraction = sum;
}

/* In 2^-16 segments, truncated; BSD truncates to a byte, which is coarser. */
static inline void tahoe_window_grow_bsd(struct tahoe_window *w)
{
	u32 window = w->segments << 16 | w->fraction >> 16;
	u32 sum = w->fraction + (~0U / window << 16);

	if (sum < w->fraction)
		tahoe_window_add_segment(w);
	w->fraction = sum;
}

/* One ACK of new data. ssthresh in segments, at least TAHOE_MIN_SSTHRESH. */
static inline void tahoe_window_open(struct tahoe_window *w, u32 ssthresh,
				     enum tahoe_growth growth)
{
	if (w->segments < ssthresh)
		tahoe_window_add_segment(w);
	else if (growth == TAHOE_GROWTH_FLOOR)
		tahoe_window_grow_floor(w);
	else
		tahoe_window_grow_bsd(w);
}

/* ssthresh after a loss, in segments; offered is the receiver's window. */
static inline u32 tahoe_window_ssthresh(const struct tahoe_window *w, u32 offered,
					enum tahoe_threshold threshold)
{
	u32 ssthresh;

	if (threshold == TAHOE_THRESHOLD_PAPER)
		ssthresh = min(w->segments / 2, offered);
	else
		ssthresh = min(w->segments, offered) / 2;
	return max(ssthresh, TAHOE_MIN_SSTHRESH);
}

#endif /* TAHOE_WINDOW_H */
