// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts packets of UDP by flow and direction.
 *
 * Numbers that follow each other tell RTP (RFC 3550) from other payloads afterwards; any
 * payload may be one. So are the packet numbers of load generators: 32 bits at byte 0 (iperf 2) or
 * at byte 8 (iperf 3). The version tells QUIC (RFC 9000, 9369); other versions than 1 and 2, which
 * may mean anything (RFC 8999), are not read.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datagrams.h"

#define UDP_BYTES 8
#define RTP_BYTES 12
#define NEAR_PACKETS 100	/* MAX_MISORDER of RFC 3550, A.1 */
#define DROPOUT_PACKETS 3000	/* MAX_DROPOUT of it: a further number begins anew */
#define UNSURE_PACKETS 3	/* a stream of fewer packets gives way to another */

#define QUIC_LONG 0x80
#define QUIC_FIXED 0x40
#define QUIC_SPIN 0x20
#define QUIC_V1 UINT32_C(1)
#define QUIC_V2 UINT32_C(0x6b3343cf)
#define QUIC_DRAFTS UINT32_C(0xff0000)	/* of version 1, its upper bytes */
/* Reserved versions, which no server knows (RFC 9000, 15); their packets have no known kind. */
#define QUIC_RESERVED UINT32_C(0x0a0a0a0a)
#define QUIC_RESERVED_MASK UINT32_C(0x0f0f0f0f)
#define QUIC_ID_BYTES_MAX 20
#define QUIC_COALESCED_MAX 8

/* In Hz, as CLOCKS_HZ in one_capture/datagrams.py. */
static const double clocks_hz[CLOCKS] = { 8000, 16000, 24000, 44100, 48000, 90000 };

static int64_t since(int64_t later_ns, int64_t earlier_ns)
{
	return (int64_t)((uint64_t)later_ns - (uint64_t)earlier_ns);
}

/* Takes a packet's number: ahead of the highest one, modulo the numbers' size. */
static void take_number(struct ca_stream *stream, int64_t number, int64_t ahead)
{
	if (!stream->packets++) {
		stream->highest = number;
		stream->expected = 1;
		return;
	}
	stream->near += ahead >= -NEAR_PACKETS && ahead <= NEAR_PACKETS;
	if (ahead <= 0 && ahead >= -NEAR_PACKETS) {
		stream->late++;
		return;
	}
	stream->expected += ahead > 0 && ahead <= DROPOUT_PACKETS ? ahead : 1;
	stream->highest = number;
}

/* RFC 3550, A.8: the difference of transit times, smoothed by a sixteenth. */
static void take_jitter(struct ca_stream *stream, int64_t passed_ns, int32_t ticks)
{
	for (unsigned int clock = 0; clock < CLOCKS; clock++) {
		double *jitter_ns = &stream->jitter_ns[clock];
		double off_ns = fabs((double)passed_ns - ticks * 1e9 / clocks_hz[clock]);

		*jitter_ns += (off_ns - *jitter_ns) / 16;
		if (*jitter_ns > stream->jitter_most_ns[clock])
			stream->jitter_most_ns[clock] = *jitter_ns;
	}
}

/* The stream of a source; a new one takes a free place, or that of one which is unsure. */
static struct ca_stream *stream_of(struct ca_datagrams *half, int64_t source)
{
	struct ca_stream *unsure = half->streams;

	for (unsigned int at = 0; at < COUNTERS_FROM; at++) {
		struct ca_stream *stream = &half->streams[at];

		if (stream->packets && stream->source == source)
			return stream;
		if (stream->packets < unsure->packets)
			unsure = stream;
	}
	if (unsure->packets >= UNSURE_PACKETS)
		return NULL;
	*unsure = (struct ca_stream){ .source = source };
	return unsure;
}

static void take_rtp(struct ca_datagrams *half, struct view data, int64_t time_ns)
{
	uint8_t first = view_u8(data, 0), type = view_u8(data, 1) & 0x7f;
	uint32_t stamp = view_be32(data, 4);
	uint16_t number = view_be16(data, 2);
	struct ca_stream *stream;
	int16_t ahead;

	/* RTCP's types share the port (RFC 5761). */
	if (!view_has(data, RTP_BYTES) || first >> 6 != 2 || (type >= 72 && type <= 76))
		return;
	stream = stream_of(half, view_be32(data, 8));
	if (!stream)
		return;
	if (stream->packets) {
		int32_t ticks = (int32_t)(stamp - (uint32_t)stream->stamp);

		stream->ticks += ticks;
		take_jitter(stream, since(time_ns, stream->last_ns), ticks);
	} else {
		stream->first_ns = time_ns;
	}
	stream->last_ns = time_ns;
	stream->stamp = stamp;
	ahead = (int16_t)(number - (uint16_t)stream->highest);
	if (ahead > 0) {
		stream->paced = stream->ticks;
		stream->paced_ns = time_ns;
	}
	take_number(stream, number, ahead);
}

static void take_counters(struct ca_datagrams *half, struct view data)
{
	for (unsigned int place = 0; place < STREAMS - COUNTERS_FROM; place++) {
		struct ca_stream *stream = &half->streams[COUNTERS_FROM + place];
		uint32_t number = view_be32(data, 8 * place);

		if (view_has(data, 8 * place + 4))
			take_number(stream, number, (int32_t)(number - (uint32_t)stream->highest));
	}
}

/* Reads a variable-length integer (RFC 9000, 16) and moves behind it. */
static uint64_t take_varint(struct view *data)
{
	unsigned int bytes = 1u << (view_u8(*data, 0) >> 6);
	uint64_t value = view_u8(*data, 0) & 0x3f;

	for (unsigned int at = 1; at < bytes; at++)
		value = value << 8 | view_u8(*data, at);
	*data = view_after(*data, bytes);
	return value;
}

/* Takes a packet with a long header, and leaves those behind it in the datagram; false if none. */
static bool take_long(struct ca_datagrams *half, struct view *data)
{
	uint32_t version = view_be32(*data, 1);
	unsigned int type = view_u8(*data, 0) >> 4 & 3, to = view_u8(*data, 5);
	unsigned int from = view_u8(*data, 6 + to);
	bool known = version == QUIC_V1 || version == QUIC_V2 || version >> 8 == QUIC_DRAFTS;

	if (!view_has(*data, 7 + to) || to > QUIC_ID_BYTES_MAX || from > QUIC_ID_BYTES_MAX)
		return false;
	if (!version) {
		half->quic[QUIC_NEGOTIATION]++;
		return false;
	}
	if ((version & QUIC_RESERVED_MASK) == QUIC_RESERVED && !half->version)
		half->version = version;
	if (!known || !(view_u8(*data, 0) & QUIC_FIXED))
		return false;
	if (version == QUIC_V2)
		type = (type + 3) & 3;
	half->version = version;
	half->ids[0] = to;
	half->ids[1] = from;
	half->quic[type]++;
	if (type == QUIC_RETRY)
		return false;
	*data = view_after(*data, 7 + to + from);
	if (type == QUIC_INITIAL)
		*data = view_after(*data, take_varint(data));	/* the token */
	*data = view_after(*data, take_varint(data));
	return true;
}

static void take_spin(struct ca_datagrams *half, int64_t spin, int64_t time_ns)
{
	if (half->spin && half->spin != spin) {
		int64_t passed_ns = since(time_ns, half->edge_ns);

		if (half->edges++ && passed_ns > 0) {
			half->spun++;
			half->spun_ns = (int64_t)((uint64_t)half->spun_ns + (uint64_t)passed_ns);
			if (half->spun == 1 || passed_ns < half->spun_least_ns)
				half->spun_least_ns = passed_ns;
		}
		half->edge_ns = time_ns;
	}
	half->spin = spin;
}

static void take_quic(struct ca_datagrams *half, struct view data, int64_t time_ns)
{
	for (unsigned int at = 0; at < QUIC_COALESCED_MAX && data.length; at++) {
		uint8_t first = view_u8(data, 0);

		if (first & QUIC_LONG) {
			if (!take_long(half, &data))
				return;
			continue;
		}
		if (!(first & QUIC_FIXED))
			return;
		if (!half->quic[QUIC_SHORT]++)
			half->short_ns = time_ns;
		take_spin(half, 1 + !!(first & QUIC_SPIN), time_ns);
		return;
	}
}

static void take_time(struct ca_datagrams *half, int64_t time_ns)
{
	if (!half->packets) {
		half->first_ns = time_ns;
	} else if (since(time_ns, half->last_ns) > half->gap_ns) {
		half->gap_ns = since(time_ns, half->last_ns);
		half->gap_at_ns = half->last_ns;
	}
	half->last_ns = time_ns;
}

/* Makes room for the flow that a packet may begin; false without memory. */
static bool grow(struct datagrams *datagrams)
{
	uint32_t capacity = datagrams->capacity ? 2 * datagrams->capacity : 16;
	struct ca_datagrams(*halves)[2];

	if (datagrams->flows.count < datagrams->capacity || capacity > DATAGRAM_FLOWS_MAX)
		return true;
	halves = realloc(datagrams->halves, capacity * sizeof(*halves));
	if (!halves)
		return false;
	memset(halves + datagrams->capacity, 0, (capacity - datagrams->capacity) * sizeof(*halves));
	datagrams->halves = halves;
	datagrams->capacity = capacity;
	return true;
}

void datagrams_end(struct datagrams *datagrams)
{
	flows_end(&datagrams->flows);
	free(datagrams->halves);
}

bool datagrams_add(struct datagrams *datagrams, const struct frame *frame, struct view udp,
		   int64_t bytes, struct segment *segment)
{
	int64_t payload = bytes - UDP_BYTES;
	struct ca_datagrams *half;
	struct place place;
	struct view data;

	if (!view_has(udp, UDP_BYTES))
		return false;
	if (payload < 0)
		return true;
	segment->ends[SENDER].port = view_be16(udp, 0);
	segment->ends[RECEIVER].port = view_be16(udp, 2);
	segment->flags = 0;
	segment->seq = 0;
	flows_expect(&datagrams->flows, segment);
	if (!grow(datagrams) ||
	    !flows_place(&datagrams->flows, segment, frame->time_ns, &place)) {
		datagrams->left_out++;
		return true;
	}
	half = &datagrams->halves[place.flow][place.half];
	take_time(half, frame->time_ns);
	half->packets++;
	half->bytes += payload;
	half->frame_bytes += frame->bytes;
	if (payload > half->largest)
		half->largest = payload;
	half->ecn[segment->marks / MARK_ECN_1 & 3]++;
	data = view_first(view_after(udp, UDP_BYTES), (size_t)payload);
	take_rtp(half, data, frame->time_ns);
	take_counters(half, data);
	take_quic(half, data, frame->time_ns);
	return true;
}
