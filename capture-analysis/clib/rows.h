/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_ROWS_H
#define CAPTURE_ANALYSIS_ROWS_H

#include <inttypes.h>
#include <stdio.h>

#include "datagrams.h"
#include "parser.h"

/* Whether bytes behind damage are likely to be a record, so that reading can go on there. */
enum likely {
	UNLIKELY,
	LIKELY,
	UNDECIDED,	/* more bytes of the file are needed to tell */
};

#define TROUBLE_LENGTH 160

/* A frame that was read, and waits for the lookup of its connection if it is a packet. */
struct waiting {
	enum fate fate;
	uint32_t frame_bytes;
	int64_t time_ns;
	size_t start;		/* offset of its record in the bytes of this call */
	uint16_t interface;
	bool fraction_beyond;
	struct segment segment;
};

/* Number of frames whose connections are looked up together; flows.c says why. */
#define ROWS_BATCH 16

/* The conversion of frames to rows: the caller's columns, and the state of the capture so far. */
struct rows {
	const struct ca_columns *columns;	/* of this call */
	size_t next;		/* next free row */
	size_t capacity;
	size_t done;		/* bytes of this call whose frames are in rows or counted */
	struct waiting waiting[ROWS_BATCH];
	unsigned int waiting_count;
	bool every_protocol;	/* other IP packets than TCP's are rows, too */
	bool inside;		/* frames in tunnels are read */
	unsigned int depth;	/* tunnels around the frame that is being read */
	bool overflow;		/* there is no room for the next connection */
	int64_t last_ns;	/* time of the row before, also if an earlier call wrote it */
	struct flows flows;
	struct datagrams datagrams;	/* of UDP, unless every protocol is read */
	struct ca_counts counts;
	char trouble[TROUBLE_LENGTH];	/* why the next record cannot be found; empty if it can */
	bool damaged;		/* ... and one may follow the damage */
};

#define rows_say(rows, ...) ((void)snprintf((rows)->trouble, TROUBLE_LENGTH, __VA_ARGS__))
#define rows_damaged(rows, ...) ((rows)->damaged = true, rows_say(rows, __VA_ARGS__))

bool rows_room(struct rows *rows, size_t end);
void rows_add(struct rows *rows, const struct frame *frame, size_t start);
void rows_add_unread(struct rows *rows, enum fate fate, size_t start);
void rows_settle(struct rows *rows, size_t end);

/* The number of the frame that will be added next. */
static inline uint64_t rows_frame_number(const struct rows *rows)
{
	return rows->counts.frames + rows->waiting_count + 1;
}

#endif
