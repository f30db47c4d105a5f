/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of each connection: its handshake, its first bytes, its ends, and its waits. */
#ifndef CAPTURE_ANALYSIS_LIFE_H
#define CAPTURE_ANALYSIS_LIFE_H

#include "block.h"

/* What a connection waits for, as in one_capture/lives.py. */
enum wait {
	WAIT_HALF,		/* the application of half 0; of half 1 */
	WAIT_CONNECT = 2,	/* the answers to the handshake */
	WAIT_REPAIR,		/* data that was sent again */
	WAIT_WINDOW,		/* a receiver with a window of 0 */
	WAIT_NETWORK,		/* an ACK, or further data, of data on its way */
	WAITS,
};

/* Bits of `seen`; those of the second half are shifted by one. */
enum life {
	LIFE_SYN = 1,
	LIFE_ANSWERED = 2,	/* a SYN-ACK */
	LIFE_CONNECTED = 4,	/* a packet after the handshake */
	LIFE_FIN = 8,
	LIFE_RST = 32,
	LIFE_DATA = 128,	/* data of the half */
	LIFE_LAST = 512,	/* the last data is of half 1 */
	LIFE_REPAIRING = 1024,	/* data was sent again, and no progress was made since */
	LIFE_HEARD = 2048,	/* a packet of the half */
	LIFE_MORE = 8192,	/* the last data, far from their sender, had no PSH: more follow */
};

/* ClientHello, ServerHello, and an encrypted record of the client, and then of the server. */
#define TLS_PARTS 4

/* Laid out as in one_capture/lives.py; all of it is 0 at first. */
struct ca_life {
	int64_t seen;
	int64_t last_ns;	/* the last packet's time, */
	int64_t time_ns;	/* and the time from the first to it, without steps back */
	int64_t syn_ns;		/* the first SYN, */
	int64_t again_ns;	/* and the last one */
	int64_t connect_ns;	/* from the first SYN to the end of the handshake */
	int64_t trip_ns;	/* from the last SYN to it */
	int64_t data_ns[2];	/* the first data of each half */
	int64_t this_ns;	/* the wait since the last progress, */
	int64_t gap_ns, wait;	/* its longest gap, and what that waited for */
	int64_t stalled_ns[WAITS];	/* the stalls for each cause: their sum, */
	int64_t longest_ns[WAITS];	/* the longest, */
	int64_t begun_ns[WAITS];	/* and its begin */
	int64_t tls;		/* the parts of TLS's handshake so far: twice their number, and the
				 * client's half */
	int64_t tls_ns[TLS_PARTS];	/* their times */
	int64_t closing;	/* one more than the half whose small data may be its last words */
	int64_t before_ns[2][3];	/* stalled_ns, longest_ns and begun_ns of each half before
					 * the present wait */
};

/* Takes a packet, and whether a window was 0 before it. */
void life_add(const struct ca_block *block, size_t row, bool shut, struct ca_life *life);

#endif
