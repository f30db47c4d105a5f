/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The causes for which a direction waits; metrics/transfer_limits.py defines them for a tap near
 * the data's sender, metrics/limits_from_afar.py for a tap elsewhere.
 */
#ifndef CAPTURE_ANALYSIS_LIMITS_H
#define CAPTURE_ANALYSIS_LIMITS_H

#include <stdbool.h>

#include "block.h"

/* In the order of the numbers in transfer_limits.py. Away from the sender CAUSE_CONGESTION is a
 * sender that holds back.
 */
enum ca_cause {
	CAUSE_APPLICATION,
	CAUSE_RECOVERY,
	CAUSE_RECEIVER,
	CAUSE_CONGESTION,
	CAUSE_ACKS,
	CAUSE_BUFFER,
	CAUSE_SHUT,
	CAUSE_PAUSE,
	CAUSE_NAGLE,
	CAUSES,
};

/* Times since the last data, whose cause the next data decides. */
enum ca_open {
	OPEN_WAIT,		/* something is outstanding, and the announced window is open */
	OPEN_HELD,		/* the part of it for which an ACK was held on its path */
	OPEN_FULL,		/* the announced window is full */
	OPEN_FULL_HELD,
	OPEN_SHUT,		/* the announced window is 0 */
	OPEN_RECOVERY,
	OPEN_IDLE,		/* nothing is outstanding */
	OPENS,
};

/* The state of a direction. Bytes and times are -1 before there are any; rows are of `coming`. */
struct ca_waits {
	int64_t last_ns;	/* time of the last event at the sender, */
	int64_t data_ns;	/* of the last data there, */
	int64_t ack_ns;		/* of the last ACK there, */
	int64_t heard_ns;	/* and of the other end's last data, which acknowledge all data */
	int64_t sent;		/* highest byte sent, */
	int64_t acked;		/* acknowledged, */
	int64_t edge;		/* allowed by the window, */
	int64_t repaired;	/* and up to which losses are repaired */
	int64_t peak;		/* most bytes in flight, */
	int64_t peak_at;	/* and the highest byte sent when they were first in flight */
	int64_t outstanding;	/* bytes in flight after the last data */
	int64_t emptied;	/* 0: the last data had PSH, and less than a segment could hold */
	int64_t unreleased;	/* ACKs since the last data, if that had PSH; otherwise -1 */
	int64_t lossy;		/* 0: something was sent again */
	int64_t stamp;		/* time stamp of the last pure ACK */
	int64_t oldest, newest;	/* ACKs on their way to the sender */
	/* If the scale of windows is unknown, the least one, and the ACK at the tap that allows most. */
	int64_t shift, told_acked, told_window;
};

/* Sums of a direction. */
struct ca_spent {
	int64_t cause_ns[CAUSES];
	int64_t open_ns[OPENS];
	int64_t whole_ns;	/* all of these */
	int64_t timeouts;	/* data sent again after TIMEOUT_NS without an event */
	int64_t nagles;		/* small data that waited for an ACK */
};

/* An ACK that has not reached the sender, or a free row. */
struct ca_coming {
	int64_t time_ns;	/* when it does */
	int64_t acked, edge;
	int64_t next;		/* row of the direction's next one, or of another free row; -1: none */
};

/* All of them; the caller makes room for the packets of the next block. */
struct ca_all_coming {
	struct ca_coming *rows;
	int64_t free;		/* a row, or -1 */
};

/* For each packet with data near its sender: the time since the data before, and its main cause. */
struct ca_waited {
	int64_t *ns;
	int64_t *cause;
};

/*
 * Takes the directions of a block that were captured at a known place; `directions` and `spent` have
 * all its directions, and `waited` may be NULL. Returns the number of rows of `coming` taken, less
 * those freed.
 */
CA_API int64_t ca_limits_add(const struct ca_block *block, struct ca_waits *directions,
			     struct ca_all_coming *coming, struct ca_spent *spent,
			     const struct ca_waited *waited);

#endif
