// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies: packets that were captured twice.
 *
 * They are found by a hash of their fields, 16 bytes for each of the last packets of the half: two
 * packets that differ are taken for copies with a chance of 2^-64.
 */
#include <stdlib.h>

#include "half.h"

#define COPY_NS UINT64_C(200000000)		/* see Kind.COPY in tracking.py */
#define COPY_WITHOUT_ID_NS UINT64_C(1000000)

/* Folds the halves of the product: every bit of a and b affects every bit of the result. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	ca_u128 product = (ca_u128)a * b;

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Hashes a packet's fields. The constants are digits of pi: any numbers without structure do. */
static uint64_t likeness_of(const struct packet *packet)
{
	uint64_t numbers = (uint64_t)packet->seq << 32 | packet->ack;
	uint64_t stamps = (uint64_t)packet->ts_value << 32 | packet->ts_echo;
	uint64_t sack = (uint64_t)packet->sack_left << 32 | packet->sack_right;
	uint64_t rest = (uint64_t)packet->payload_bytes << 32 | (uint32_t)packet->window << 16 |
			packet->ip_id;

	return fold(numbers ^ UINT64_C(0x243f6a8885a308d3), stamps ^ UINT64_C(0x13198a2e03707344)) ^
	       fold(sack ^ UINT64_C(0xa4093822299f31d0), rest ^ UINT64_C(0x082efa98ec4e6c89)) ^
	       (packet->flags * UINT64_C(0x452821e638d01377));
}

static uint64_t apart(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? (uint64_t)a_ns - (uint64_t)b_ns : (uint64_t)b_ns - (uint64_t)a_ns;
}

/*
 * Makes room for twice the packets, or for RECENT_MORE: who captures one packet twice does so with
 * all, and bursts may lie between the two. Without memory the room stays.
 */
static void remember_more(struct half *half, const struct recent *recent)
{
	unsigned int mask = half->room - 1u, kept = half->remembered;
	unsigned int room = half->more ? 2u * half->room : RECENT_MORE;
	struct recent *more = malloc(room * sizeof(*more));

	if (!more)
		return;
	for (unsigned int at = 0; at < kept; at++)
		more[at] = recent[(half->oldest - kept + at) & mask];
	free(half->more);
	half->more = more;
	half->room = (uint16_t)room;
	half->oldest = (uint16_t)kept;
}

/* Tells whether one of recent[] is alike; without a branch for each. */
static bool is_among_recent(const struct half *half, uint64_t likeness)
{
	unsigned int alike = 0;

	for (unsigned int at = 0; at < RECENT; at++)
		alike |= (unsigned int)(half->recent[at].likeness == likeness) << at;
	return alike & ((1u << half->remembered) - 1);
}

/* Tells whether the packet was captured before; remembers it if not. */
bool half_is_copy(struct half *half, const struct packet *packet)
{
	uint64_t limit_ns = packet->ip_id ? COPY_NS : COPY_WITHOUT_ID_NS;
	uint64_t likeness = likeness_of(packet);
	struct recent *recent = half->more ? half->more : half->recent;
	unsigned int mask = half->room - 1u;
	bool maybe = half->more || is_among_recent(half, likeness);

	for (unsigned int back = 1; maybe && back <= half->remembered; back++) {
		const struct recent *at = &recent[(half->oldest - back) & mask];

		if (at->likeness != likeness || apart(at->time_ns, packet->time_ns) >= limit_ns)
			continue;
		if (!half->more || (2 * back > half->room && half->room < RECENT_MOST))
			remember_more(half, recent);
		return true;
	}
	recent[half->oldest & mask] = (struct recent){ likeness, packet->time_ns };
	half->oldest = (uint16_t)((half->oldest + 1) & mask);
	half->remembered = (uint16_t)(half->remembered + (half->remembered < half->room));
	return false;
}
