// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a fragment, or a packet of another protocol than TCP: UDP's ports, and a hash of its first
 * bytes, by which packets of one flow differ. The hash's halves are stored as seq and ack.
 */
#include "layers.h"

#define UDP_BYTES 8
/* Bytes of a packet in its hash: taps that keep at least as many give it the same one. */
#define HASHED_BYTES 40

/* FNV-1a (Fowler, Noll and Vo, 1991). */
static uint64_t hash(struct view data)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t at = 0; at < data.length; at++)
		sum = (sum ^ view_u8(data, at)) * UINT64_C(0x100000001b3);
	return sum;
}

/* Returns FATE_PACKET if the header was captured; bytes: size of header and payload by IP. */
enum fate datagram_read(struct view data, int64_t bytes, bool later, struct segment *segment)
{
	bool udp = segment->protocol == PROTOCOL_UDP && !later;
	int64_t header = udp ? UDP_BYTES : 0;
	uint64_t sum;

	if (udp && !view_has(data, UDP_BYTES))
		return FATE_TOO_SHORT;
	if (bytes < header)
		return FATE_MALFORMED;
	segment->ends[SENDER].port = udp ? view_be16(data, 0) : 0;
	segment->ends[RECEIVER].port = udp ? view_be16(data, 2) : 0;
	sum = hash(view_first(data, bytes < HASHED_BYTES ? (size_t)bytes : HASHED_BYTES));
	segment->seq = (uint32_t)sum;
	segment->ack = (uint32_t)(sum >> 32);
	segment->payload_bytes = (uint32_t)(bytes - header);
	segment->ts_value = 0;
	segment->ts_echo = 0;
	segment->sack_left = 0;
	segment->sack_right = 0;
	segment->window = 0;
	segment->flags = 0;
	segment->mss = 0;
	segment->window_scale = NO_SCALE;
	return FATE_PACKET;
}
