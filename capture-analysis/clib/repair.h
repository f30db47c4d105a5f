/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_REPAIR_H
#define CAPTURE_ANALYSIS_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

/* Values of Repair in tracking.py: why a segment was sent again. */
enum repair {
	REPAIR_NONE,
	REPAIR_SPURIOUS,
	REPAIR_TIMEOUT,
	REPAIR_FAST,
	REPAIR_OTHER,
};

/* The state of a half's losses and their repair. */
struct repairs {
	int64_t point;		/* a repair ends when this number is acknowledged */
	int64_t heard_ns;	/* last packet of its direction, data or pure ACK; INT64_MIN: none */
	bool told;		/* the last ACKs told of a gap */
	uint8_t kind;		/* of the repair up to point */
};

/* Numbers and time of a segment that is sent again. */
struct again {
	int64_t end;		/* one past its last byte */
	int64_t acked;		/* highest number acknowledged before it */
	int64_t high;		/* one past the highest number sent */
	int64_t time_ns;
};

void repairs_start(struct repairs *repairs);
enum repair repairs_of(struct repairs *repairs, const struct again *again);

#endif
