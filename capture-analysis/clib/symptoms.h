/* SPDX-License-Identifier: GPL-2.0-only */
/* What people look for in a direction; the metrics that read each field define it. */
#ifndef CAPTURE_ANALYSIS_SYMPTOMS_H
#define CAPTURE_ANALYSIS_SYMPTOMS_H

#include "block.h"

/* The state and sums of a direction, in the order of Symptom in tally.py; all 0 at first. */
struct ca_symptoms {
	/* Answers: data that follow the other end's; the first, all, and the longest. */
	int64_t answers, first_ns, answered_ns, longest_ns;
	int64_t asked_ns;		/* the other end's last data, 0: this half has answered */
	/* Keep-alives, and those since the other end's last packet: now, and the most. */
	int64_t keepalives, unheard, unheard_most;
	/* The largest new segment, its end, and the largest one that was acknowledged. */
	int64_t largest, largest_end, passed;
	/* Data sent again: its first byte, how often without progress, the most, and its size. */
	int64_t again_at, repeats, repeats_most, repeated;
	/* Slow start: its begin, the most bytes in flight, their last doubling, and a loss. */
	int64_t begun_ns, peak, doubled_ns, lost;
	/* One past the highest byte sent, acknowledged, and allowed by the window; its last value. */
	int64_t high, acked, edge, window;
	int64_t silly;			/* segments that a window smaller than a segment made small */
	/* Segments sent again since the last progress, the most, and repairs of the last segment. */
	int64_t run, run_most, tails;
	/* RSTs of this half: the time since the other end's last packet, and its data in flight. */
	int64_t resets, reset_ns, reset_bytes;
	/* Losses: the time and the new bytes at the first one and at the last. */
	int64_t losses, loss_ns[2], loss_bytes[2], bytes;
	/* Data by IP's field of ECN: not capable, ECT(1), ECT(0), CE; and the answers to CE. */
	int64_t ecn[4], echoes, reduced;
	/* One more than the three bits of ECN in the SYN, and in the last ACK; CE that those told. */
	int64_t offered, counter, told;
	int64_t byte_counters;		/* ACKs with AccECN's option */
	/* The last packet of this half, and the silence before data that is not acknowledged. */
	int64_t last_ns, idle_ns;
};

/* Takes a block; `directions` has all its directions. */
CA_API void ca_symptoms_add(const struct ca_block *block, struct ca_symptoms *directions);

#endif
