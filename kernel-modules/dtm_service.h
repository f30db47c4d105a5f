/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Transmission over n slots, in whole numbers.
 *
 * A slot carries 64 bits per cycle of 125 us, so one byte takes 15625 ns of one slot. A packet of
 * L bytes is therefore 15625 * L slot-nanoseconds of work, n slots do n of them each nanosecond,
 * and a change of n in between simply goes on with what work is left (pro rata). Nothing is ever
 * divided but to ask when the work ends. What the last nanosecond of a packet could have done
 * beyond its end is credited to the packet that follows at once, so that a backlog drains at the
 * exact rate: departures are the true ends, each rounded up to a nanosecond.
 *
 * With framing a packet begins with a cycle and leaves at the end of one.
 *
 * Pure: no locks, no time source; shared by sch_dtm, its KUnit tests and user space.
 */
#ifndef DTM_SERVICE_H
#define DTM_SERVICE_H

#include <linux/math64.h>
#include <linux/types.h>

#include "pkt_dtm.h"

/* Slot-nanoseconds in a byte: 8 bits at 512 kbit/s. */
#define DTM_BYTE_WORK	(8ULL * NSEC_PER_SEC / DTM_SLOT_RATE)

struct dtm_service {
	u64 work;	/* slot-ns of the packet in service that are left at `since` */
	u64 since;	/* ns; the end of transmission once work is 0 */
	u64 begun;	/* ns, when the packet's transmission began */
	u32 credit;	/* slot-ns done beyond the packet's end, below one ns of all slots */
};

/* When the packet in service has been sent if the number of slots stays as it is. */
static inline u64 dtm_service_end(const struct dtm_service *s, u32 slots, bool framed)
{
	u64 end = s->since + div_u64(s->work + slots - 1, slots);

	if (framed)
		end = s->begun + DTM_CYCLE_NS * div_u64(end - s->begun + DTM_CYCLE_NS - 1,
							DTM_CYCLE_NS);
	return end;
}

/* Account for the slots held until now; to be called before their number changes. */
static inline void dtm_service_advance(struct dtm_service *s, u64 now, u32 slots)
{
	u64 end;

	if (now < s->since || !s->work)
		return;
	end = dtm_service_end(s, slots, false);
	if (now < end) {
		s->work -= (now - s->since) * slots;
		s->since = now;
	} else {
		s->credit = (end - s->since) * slots - s->work;
		s->work = 0;
		s->since = end;
	}
}

/* A packet arrives at an idle channel. */
static inline void dtm_service_begin(struct dtm_service *s, u64 now, u32 bytes)
{
	s->begun = now;
	s->since = now;
	s->credit = 0;
	s->work = bytes * DTM_BYTE_WORK;
}

/* The packet in service, sent by now, has left; the next follows it without a gap. */
static inline void dtm_service_follow(struct dtm_service *s, u32 slots, bool framed, u32 bytes)
{
	u64 end = dtm_service_end(s, slots, framed);

	if (framed) {
		dtm_service_begin(s, end, bytes);
		return;
	}
	dtm_service_advance(s, end, slots);
	s->begun = end;
	s->work = bytes * DTM_BYTE_WORK;
	/* A credit is below DTM_MAX_SLOTS, the work of one byte above it. */
	s->work -= s->credit;
	s->credit = 0;
}

#endif /* DTM_SERVICE_H */
