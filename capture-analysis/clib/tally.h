/* SPDX-License-Identifier: GPL-2.0-only */
/* Sums over the packets of each direction; see Tally in one_capture/tally.py. */
#ifndef CAPTURE_ANALYSIS_TALLY_H
#define CAPTURE_ANALYSIS_TALLY_H

#include "life.h"

/* The zero windows that a direction's receiver announced; one lasts as far as it is seen. */
struct ca_shut {
	int64_t windows;	/* their number */
	int64_t ns, longest_ns;
	int64_t whole_ns;	/* time for which the window is known */
	int64_t this_ns;	/* the length of the last one so far */
	int64_t gap_ns;		/* time with a window of 0 since the last data */
	int64_t acked;		/* highest acknowledgement number so far, */
	int64_t until_ns;	/* and its latest time */
	int64_t opened;		/* 1: the window is open, after a zero window or none */
};

/* The numbers of a direction; laid out as _SUMS in tally.py. */
struct ca_tally {
	int64_t kinds[KINDS];
	int64_t payload;
	int64_t new_payload;
	int64_t data_frame_bytes;
	int64_t ack_frame_bytes;
	int64_t acked;
	int64_t full_segments;
	int64_t spaced_acks;
	int64_t first_new;
	int64_t merged;
	int64_t syns;
	int64_t unseen[2];
	int64_t pause_ns;
	int64_t first_ns;
	int64_t first_ack_ns;
	int64_t last_ns;
	int64_t last_ack_ns;
	int64_t answer_ns;
	int64_t acked_ns;
	int64_t back_ns[2];
	struct ca_shut shut;
};

/* Takes a block; `directions` has all its directions, `lives` all its connections. */
CA_API void ca_tally_add(const struct ca_block *block, struct ca_tally *directions,
			 struct ca_life *lives);

#endif
