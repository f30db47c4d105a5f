/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 4.3BSD-Tahoe's retransmission timer as numbers: arithmetic alone, no clock, no sockets.
 *
 *	sample		srtt += err / 8, rttvar += (|err| - rttvar) / 4
 *	timeout		(srtt + 2 rttvar) << shift, from 2 ticks to 128
 *
 * A tick is half a second. A round trip is the number of ticks that it has seen, plus
 * one for the first sample; srtt is kept in 1/8 tick and rttvar in 1/4.
 */
#ifndef TAHOE_TIMER_H
#define TAHOE_TIMER_H

#include <linux/minmax.h>
#include <linux/types.h>

#define TAHOE_TIMER_MIN_TICKS	2U	/* TCPTV_MIN: 1 s */
#define TAHOE_TIMER_MAX_TICKS	128U	/* TCPTV_REXMTMAX: 64 s */
#define TAHOE_TIMER_GUESS	24U	/* rttvar before a sample: 6 ticks, 3 s */
#define TAHOE_TIMER_MAX_SHIFT	6U	/* tcp_backoff[] ends at 64 */
#define TAHOE_TIMER_LOST_SHIFT	3U	/* TCP_MAXRXTSHIFT / 4: beyond it, srtt is bogus */

/**
 * struct tahoe_timer - what the timeout is computed from
 * @srtt: averaged round trip, 1/8 tick; 0 before a sample
 * @rttvar: its mean deviation, 1/4 tick
 * @shift: timeouts since the last sample, up to TAHOE_TIMER_MAX_SHIFT
 */
struct tahoe_timer {
	u32 srtt;
	u32 rttvar;
	u32 shift;
};

static inline void tahoe_timer_init(struct tahoe_timer *t)
{
	t->srtt = 0;
	t->rttvar = TAHOE_TIMER_GUESS;
	t->shift = 0;
}

/* A segment sent once has been acknowledged; ticks is how many there were meanwhile. */
static inline void tahoe_timer_sample(struct tahoe_timer *t, u32 ticks)
{
	t->shift = 0;
	if (t->srtt) {
		s32 err = (s32)ticks - (s32)(t->srtt >> 3);
		s32 off = (err < 0 ? -err : err) - (s32)(t->rttvar >> 2);

		t->srtt = max((s32)t->srtt + err, 1);
		t->rttvar = max((s32)t->rttvar + off, 1);
	} else {
		t->srtt = (ticks + 1) << 3;
		t->rttvar = (ticks + 1) << 1;
	}
}

/* The timer has fired. After four times in a row the next sample starts afresh. */
static inline void tahoe_timer_expired(struct tahoe_timer *t)
{
	t->shift = min(t->shift + 1, TAHOE_TIMER_MAX_SHIFT);
	if (t->shift > TAHOE_TIMER_LOST_SHIFT) {
		t->rttvar += t->srtt >> 2;
		t->srtt = 0;
	}
}

/* Ticks until the timer fires. */
static inline u32 tahoe_timer_ticks(const struct tahoe_timer *t)
{
	u32 ticks = (((t->srtt >> 2) + t->rttvar) >> 1) << t->shift;

	return clamp(ticks, TAHOE_TIMER_MIN_TICKS, TAHOE_TIMER_MAX_TICKS);
}

#endif /* TAHOE_TIMER_H */
