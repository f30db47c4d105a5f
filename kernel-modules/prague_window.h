/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The window of tcp_prague as a number, and alpha, the share of marked packets: arithmetic alone,
 * no sockets.
 *
 *	each virtual RTT	alpha += (marked / delivered - alpha) / 16
 *	ACK			w += (acked - marked) / w * min{ 1, srtt / 25 ms }^2
 *	mark			w -= w alpha / 2, once each virtual RTT
 *	loss			w -= w / 2
 */
#ifndef PRAGUE_WINDOW_H
#define PRAGUE_WINDOW_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* alpha is Q20; the draft's gain is 1/16. */
#define PRAGUE_ALPHA_ONE	1048576U
#define PRAGUE_GAIN_SHIFT	4
/* The least virtual round trip: a flow of a shorter one grows as if it had this one. */
#define PRAGUE_RTT_VIRT_US	25000U
/* Increases are Q16 packets per round trip. */
#define PRAGUE_INCREASE_ONE	65536U
/* Packets, as Reno's; below 2^20 no product overflows. */
#define PRAGUE_MIN_PACKETS	2U
#define PRAGUE_MAX_PACKETS	1048576U

/**
 * struct prague_window - the window w
 * @packets: floor(w)
 * @fraction: w - floor(w), Q32
 */
struct prague_window {
	u32 packets;
	u32 fraction;
};

static inline u32 prague_next_alpha(u32 alpha, u32 marked, u32 delivered)
{
	u32 share = div_u64((u64)min(marked, delivered) * PRAGUE_ALPHA_ONE, max(delivered, 1U));

	return alpha - (alpha >> PRAGUE_GAIN_SHIFT) + (share >> PRAGUE_GAIN_SHIFT);
}

/* In one round trip; the round trip is squared, for the rate and for the round trips per second. */
static inline u32 prague_increase(u32 srtt_us)
{
	u32 ratio = div_u64((u64)min(srtt_us, PRAGUE_RTT_VIRT_US) * PRAGUE_INCREASE_ONE,
			    PRAGUE_RTT_VIRT_US);

	return (u64)ratio * ratio >> 16;
}

/* For packets that were acknowledged without a mark. */
static inline void prague_window_grow(struct prague_window *w, u32 acked, u32 increase)
{
	u64 sum = w->fraction + div_u64((u64)acked * increase << 16, max(w->packets, 1U));

	w->packets = min(w->packets + (u32)(sum >> 32), PRAGUE_MAX_PACKETS);
	w->fraction = (u32)sum;
}

/* w (1 - share / 2), share in Q20. */
static inline void prague_window_cut(struct prague_window *w, u32 share)
{
	/* Q20: the product with the share has 20 bits more. */
	u64 size = (u64)w->packets << 20 | w->fraction >> 12;

	size -= size * share >> 21;
	w->packets = size >> 20;
	w->fraction = (u32)size << 12;
	if (w->packets < PRAGUE_MIN_PACKETS)
		*w = (struct prague_window){ .packets = PRAGUE_MIN_PACKETS };
}

#endif /* PRAGUE_WINDOW_H */
