/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rate estimator of Abrahamsson, Hagsand and Marsh, "TCP over high speed variable capacity
 * links" (2002), figure 1:
 *
 *	new      = 8 * incoming bytes / sample interval
 *	current += (new - current) >> shift_up		or	-= (current - new) >> shift_down
 *
 *	if current > upper or current < lower:
 *		slots = current + margin + corridor / 2	in slots, rounded
 *		upper, lower = current +- corridor / 2
 *
 * All of it in whole bit/s. The paper prints neither the last line nor the start: we let the
 * corridor's middle follow the estimate at each decision, which leaves the allocation above the
 * upper edge by the margin and gives the 1 Mbit/s above a 5 Mbit/s flow of its figure 4; and both
 * edges start at the initial estimate, so that the first decision falls to the first traffic.
 *
 * Pure: no locks, no time source; shared by sch_dtm, its KUnit tests and user space.
 */
#ifndef DTM_RATE_H
#define DTM_RATE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/pkt_dtm.h>
#include <linux/time64.h>
#include <linux/types.h>

/* Margin and corridor are in thousandths of a slot, each a whole number of bit/s. */
#define DTM_MILLISLOT_RATE	(TC_DTM_SLOT_RATE / 1000)

struct dtm_rate {
	u64 estimate;		/* bit/s, the paper's "current" */
	u64 lower;		/* bit/s, edges of the corridor */
	u64 upper;
};

/* Bit/s of a sample; rounded down, as all of the estimator is. */
static inline u64 dtm_rate_measure(u64 bytes, u64 sample_ns)
{
	return mul_u64_u64_div_u64(bytes, 8ULL * NSEC_PER_SEC, sample_ns);
}

/* The estimate, moved towards a new measurement by 2^-shift of their distance. */
static inline u64 dtm_rate_step(u64 estimate, u64 new_bit, u8 shift_up, u8 shift_down)
{
	if (new_bit < estimate)
		return estimate - ((estimate - new_bit) >> shift_down);
	return estimate + ((new_bit - estimate) >> shift_up);
}

static inline bool dtm_rate_is_outside(const struct dtm_rate *rate)
{
	return rate->estimate > rate->upper || rate->estimate < rate->lower;
}

/* Put the corridor around the estimate. */
static inline void dtm_rate_centre(struct dtm_rate *rate, u32 corridor)
{
	u64 half = (u64)corridor * DTM_MILLISLOT_RATE / 2;

	rate->lower = rate->estimate > half ? rate->estimate - half : 0;
	rate->upper = rate->estimate + half;
}

/* Slots for an estimate: at least 1; margin and corridor in thousandths of a slot. */
static inline u32 dtm_rate_slots(u64 estimate, u32 margin, u32 corridor, u8 rounding)
{
	u64 bit = estimate + (u64)margin * DTM_MILLISLOT_RATE +
		  (u64)corridor * DTM_MILLISLOT_RATE / 2;
	u64 slots;

	if (rounding == TC_DTM_ROUND_UP)
		bit += TC_DTM_SLOT_RATE - 1;
	else if (rounding == TC_DTM_ROUND_NEAREST)
		bit += TC_DTM_SLOT_RATE / 2;
	slots = div_u64(bit, TC_DTM_SLOT_RATE);
	return clamp_t(u64, slots, 1, TC_DTM_MAX_SLOTS);
}

#endif /* DTM_RATE_H */
