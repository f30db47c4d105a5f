/* SPDX-License-Identifier: GPL-2.0-only */
/* UDP flows: what each direction shows of its packets, its streams of media, and QUIC. */
#ifndef CAPTURE_ANALYSIS_DATAGRAMS_H
#define CAPTURE_ANALYSIS_DATAGRAMS_H

#include "flows.h"

/* Streams of a direction that are kept apart: of RTP by source, and numbers at two places. */
#define STREAMS 6
#define COUNTERS_FROM 4
#define CLOCKS 6

/* A stream of numbered packets, laid out as STREAM in one_capture/datagrams.py; all 0 at first. */
struct ca_stream {
	int64_t source;		/* RTP's SSRC */
	int64_t packets;
	int64_t near;		/* packets whose number follows the highest closely */
	int64_t expected;	/* packets between the first number and the highest */
	int64_t late;		/* packets whose number is not above the highest */
	int64_t highest, stamp;	/* the highest number; the last time stamp of RTP */
	int64_t ticks;		/* time stamps from the first packet to the last */
	int64_t first_ns, last_ns;
	int64_t paced, paced_ns;	/* ticks and time at the highest number */
	double jitter_ns[CLOCKS], jitter_most_ns[CLOCKS];	/* for each clock of RTP */
};

/* Kinds of QUIC packets, as in one_capture/datagrams.py. */
enum quic {
	QUIC_INITIAL,
	QUIC_0_RTT,
	QUIC_HANDSHAKE,
	QUIC_RETRY,
	QUIC_NEGOTIATION,
	QUIC_SHORT,
	QUICS,
};

/* One direction of a flow, laid out as DATAGRAMS in one_capture/datagrams.py; all 0 at first. */
struct ca_datagrams {
	int64_t packets, bytes, frame_bytes, largest;
	int64_t first_ns, last_ns;
	int64_t gap_ns, gap_at_ns;	/* the longest time between two packets, and its begin */
	int64_t ecn[4];			/* packets by IP's field of ECN */
	int64_t quic[QUICS], version;	/* packets of QUIC, and the last known version */
	int64_t ids[2];			/* bytes of the last connection ids: the receiver's, its own */
	int64_t short_ns;		/* the first packet with a short header */
	int64_t spin;			/* one more than the spin bit */
	int64_t edges, edge_ns;		/* changes of the spin bit; the last one */
	int64_t spun, spun_ns, spun_least_ns;	/* times from change to change: number, sum, least */
	struct ca_stream streams[STREAMS];
};

/* A capture with more flows has them counted as packets only. */
#ifndef DATAGRAM_FLOWS_MAX	/* a lower limit under sanitisers (Makefile) */
#define DATAGRAM_FLOWS_MAX (UINT32_C(1) << 16)
#endif

struct datagrams {
	struct flows flows;
	struct ca_datagrams (*halves)[2];	/* of each flow */
	uint32_t capacity;
	uint64_t left_out;			/* packets of flows for which there was no room */
};

void datagrams_end(struct datagrams *datagrams);

/*
 * Takes a packet of UDP; false if the capture cut its header. udp: from its header on, as far as it
 * was captured; bytes: of header and payload by IP; segment: IP's fields.
 */
bool datagrams_add(struct datagrams *datagrams, const struct frame *frame, struct view udp,
		   int64_t bytes, struct segment *segment);

#endif
