/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_HALF_H
#define CAPTURE_ANALYSIS_HALF_H

#include <stdbool.h>
#include <stddef.h>

#include "holes.h"
#include "track.h"

/* Limits in tracking.py: 1 MiB of segments; 1 KiB until the other end acknowledges anything. */
#define SEGMENTS_MAX 65536
#define SEGMENTS_AT_FIRST 64
/* Packets among which a copy is looked for: at first, once there is one, and at most. */
#define RECENT 4
#define RECENT_MORE 64	/* packets that a network card hands over at once (NAPI) */
#define RECENT_MOST 1024
#define NO_TIME INT64_MIN
/* Packets of a connection are reordered by less: from this step back on, a clock was set. */
#define SET_BACK_NS 10000000
#define NO_NUMBER INT64_MIN

/* Values of Kind in tracking.py. */
enum kind {
	KIND_CONTROL,
	KIND_NEW_DATA,
	KIND_RETRANSMISSION,
	KIND_LATE_DATA,
	KIND_PROBE,
	KIND_ACK,
	KIND_DUPLICATE_ACK,
	KIND_WINDOW_UPDATE,
	KIND_OLD_ACK,
	KIND_COPY,
	KINDS,
};

/* Flags of columns.py. */
#define FLAG_FIN 0x01
#define FLAG_SYN 0x02
#define FLAG_RST 0x04
#define FLAG_PSH 0x08
#define FLAG_ACK 0x10

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

/* One row of the columns. */
struct packet {
	int64_t time_ns;
	uint32_t payload_bytes;
	uint32_t seq, ack;
	uint32_t ts_value, ts_echo;
	uint32_t sack_left, sack_right;
	uint16_t window;
	uint16_t ip_id;
	uint16_t flags;
	uint16_t marks;
};

/* A segment that was sent and is not acknowledged. */
struct awaited {
	int64_t end;
	int64_t time_ns;
};

struct segments {
	struct awaited *ring;
	uint32_t first;
	uint32_t count;
	uint32_t capacity;	/* a power of two, or 0 */
};

struct recent {
	uint64_t likeness;
	int64_t time_ns;
};

/* The numbers that one end sent and the other acknowledged; all unwrapped. */
struct half {
	int64_t low;		/* lowest number seen */
	int64_t high;		/* one past the highest number seen */
	int64_t acked;		/* highest acknowledged; NO_NUMBER: nothing yet */
	int64_t first;		/* first number behind the SYN; NO_NUMBER: no SYN seen */
	int64_t rival;		/* as first, of another SYN; NO_NUMBER: none */
	int64_t fin_at;		/* end of the payload, where the FIN is; INT64_MAX: not seen */
	struct span unclear;	/* they give no RTT (half.c); empty: end is NO_NUMBER */
	int64_t last_ns[2];	/* last packet without and with payload, or NO_TIME */
	struct recent recent[RECENT];
	struct recent *more;	/* in place of recent[], once a copy was seen; else NULL */
	struct segments segments;
	struct holes holes;
	struct repairs repairs;
	uint32_t base;		/* first number; until one is seen, the first acknowledged */
	uint16_t window;	/* in the highest acknowledgement that this half sent */
	uint16_t room;		/* of recent[], or of *more: a power of two */
	uint16_t remembered;	/* packets there */
	uint16_t oldest;	/* index of the oldest, or of the first free one */
	bool seen;
};

void half_start(struct half *half);
void half_begin(struct half *half, uint32_t seq);
void half_end(struct half *half);
int64_t half_unwrap(const struct half *half, uint32_t number);
bool half_is_copy(struct half *half, const struct packet *packet);
bool half_is_later(const struct half *half, int64_t time_ns);
void half_forget_times(struct half *half);
int64_t half_gap(struct half *half, const struct packet *packet);
bool half_is_stray(struct half *half, const struct packet *packet, int64_t start);
void half_choose(struct half *half, const struct packet *answer);
bool half_is_probe(const struct half *half, const struct packet *packet, int64_t start,
		   uint16_t other_window);
uint32_t half_send(struct half *half, const struct packet *packet, int64_t start,
		   struct ca_forgotten *forgotten);
int64_t half_acknowledge(struct half *half, int64_t ack, int64_t time_ns, int64_t *rtt_ns);
int64_t half_unseen(const struct half *half, int64_t ack);
int64_t half_in_flight(const struct half *half);

void repairs_start(struct repairs *repairs);
enum repair repairs_of(struct repairs *repairs, const struct again *again);

#endif
