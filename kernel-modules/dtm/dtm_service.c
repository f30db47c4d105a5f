// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transmission over n slots, in whole numbers.
 *
 * A slot carries 64 bits per cycle of 125 us, so one byte takes 15625 ns of one slot, or as much
 * more as a slot is made smaller. A packet of L bytes is therefore 15625 * L slot-nanoseconds of
 * work, and n slots do n of them each nanosecond.
 *
 * Let S(t) be the work that a channel has done by time t: the integral of its slots over the time
 * in which it had anything to send. A packet that arrives at time a gets a finish tag
 *
 *	F = max(F of the packet before it, S(a)) + 15625 * L
 *
 * and has been sent when S reaches F. Slots that change move S, not the tags. So it does not matter
 * when a packet is taken out: how long it is left there has no effect on those behind it. Nothing
 * is ever divided, except to ask when S will reach a tag, rounded up to a nanosecond.
 *
 * S stops at the last tag while there is nothing to send. Differences of S and tags are therefore
 * at most the work of the backlog, and both may wrap. Where another queue chooses the next packet,
 * a packet gets its tag when the one before has been sent. While packets wait there, S goes on
 * beyond the last tag: it is the next one's work.
 *
 * With framing a packet takes whole slots, that is a multiple of 8 bytes, and leaves at the end of
 * the cycle in which its last slot is sent. All channels have the same cycles: they begin at
 * multiples of 125 us of the clock.
 */

#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/time64.h>

#include "dtm_core.h"

#define DTM_SLOT_BYTES	(TC_DTM_SLOT_BITS / 8)

/* The beginning of the cycle in which a time lies, ns. */
static u64 dtm_cycle_start(u64 now)
{
	u32 rest;

	div_u64_rem(now, TC_DTM_CYCLE_NS, &rest);
	return now - rest;
}

/* S at a time not before `since`, with the slots held since then. */
static u64 dtm_service_done(const struct dtm_service *s, u64 now, u32 slots)
{
	u64 work, left = max_t(s64, s->finish - s->done, 0);

	if (check_mul_overflow(now - s->since, (u64)slots, &work) || (!s->waits && work > left))
		work = left;
	return s->done + work;
}

void dtm_service_advance(struct dtm_service *s, u64 now, u32 slots)
{
	u64 cycle;

	if (now <= s->since)
		return;
	cycle = dtm_cycle_start(now);
	if (cycle > s->since)
		s->cycle_done = dtm_service_done(s, cycle, slots);
	s->done = dtm_service_done(s, now, slots);
	s->since = now;
}

/* Slot-nanoseconds in a byte: 15625 at 512 kbit/s. */
static u64 dtm_byte_work(u32 slot_rate)
{
	return div_u64(8ULL * NSEC_PER_SEC, slot_rate);
}

u64 dtm_service_arrive(struct dtm_service *s, u64 now, u32 slots, u32 bytes, bool framed,
		       u32 slot_rate)
{
	u64 work = bytes;

	if (framed)
		work = DTM_SLOT_BYTES * div_u64(work + DTM_SLOT_BYTES - 1, DTM_SLOT_BYTES);
	dtm_service_advance(s, now, slots);
	s->finish += work * dtm_byte_work(slot_rate);
	return s->finish;
}

u64 dtm_service_end(const struct dtm_service *s, u64 tag, u32 slots, bool framed)
{
	s64 left = tag - s->done;
	u64 end = s->since;
	u32 rest;

	if (framed && (s64)(tag - s->cycle_done) <= 0)
		return dtm_cycle_start(end);
	if (left > 0)
		end += div_u64(left + slots - 1, slots);
	if (framed) {
		div_u64_rem(end, TC_DTM_CYCLE_NS, &rest);
		end += rest ? TC_DTM_CYCLE_NS - rest : 0;
	}
	return end;
}

void dtm_service_wait(struct dtm_service *s, u64 now, u32 slots, bool waits)
{
	dtm_service_advance(s, now, slots);
	s->waits = waits;
	/* Nothing waits any more: what was done beyond the last tag is lost. */
	if (!waits && (s64)(s->finish - s->done) < 0)
		s->finish = s->done;
}

void dtm_service_clear(struct dtm_service *s, u64 now, u32 slots)
{
	dtm_service_advance(s, now, slots);
	s->finish = s->done;
}
