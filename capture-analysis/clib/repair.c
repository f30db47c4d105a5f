// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why segments are sent again, seen at their sender (metrics/repairs.py).
 *
 *	acknowledged before?	spurious, and no repair begins
 *	0.2 s of silence?	a time-out: no packet of the direction for the shortest timer in use
 *	told of a gap?		fast: a duplicate ACK or a SACK block since anything new was acknowledged
 *	otherwise		another: a probe of the tail's loss, or ACKs that the capture lacks
 *
 * A repair goes on until all is acknowledged that had been sent when it began, or a time-out begins
 * another: what is sent again meanwhile belongs to it.
 */
#include "half.h"

#define TIMEOUT_NS INT64_C(200000000)	/* Linux's least; see Kind.COPY in tracking.py */

void repairs_start(struct repairs *repairs)
{
	*repairs = (struct repairs){ .point = INT64_MIN, .heard_ns = INT64_MIN };
}

enum repair repairs_of(struct repairs *repairs, const struct again *again)
{
	bool silent = repairs->heard_ns != INT64_MIN && again->time_ns > repairs->heard_ns &&
		      (uint64_t)again->time_ns - (uint64_t)repairs->heard_ns >= TIMEOUT_NS;

	if (again->end <= again->acked)
		return REPAIR_SPURIOUS;
	if (silent)
		repairs->kind = REPAIR_TIMEOUT;
	else if (again->acked >= repairs->point)
		repairs->kind = repairs->told ? REPAIR_FAST : REPAIR_OTHER;
	if (silent || again->acked >= repairs->point)
		repairs->point = again->high;
	return repairs->kind;
}
