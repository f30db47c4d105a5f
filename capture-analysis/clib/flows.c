// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections of a capture: finds the connection of a segment (decision 0035).
 *
 * A hash table with a chain per bucket and never more connections than buckets. The hash is
 * multilinear over the 32-bit words of addresses and ports, with random 64-bit keys:
 *
 *	h = (k0 + k1 w1 + k2 w2 + ... mod 2^64) / 2^33
 *
 * For any two connections the chance of meeting in a bucket is one over the number of buckets,
 * for every capture, because its author does not know the keys (Carter and Wegman, 1979;
 * Dietzfelbinger, 1996). That bounds the length of chains, but not of runs of occupied slots: hence
 * no open addressing. Both directions must have the same hash, so the words are those of the lower
 * end first.
 *
 * Connections between the same ends in different VLANs are different ones. But one connection may
 * also show different tags: tagged in one direction only, or captured before and behind a router or
 * a VLAN's interface. So VLANs are not part of the hash. A packet in another VLAN belongs to a
 * connection if its numbers continue those of the connection.
 */
#include <stdlib.h>
#include <string.h>

#include "flows.h"

#ifndef FLOWS_FIRST_CAPACITY
#define FLOWS_FIRST_CAPACITY 1024
#endif
#define HASH_BITS 31
#define HASH_MASK ((UINT32_C(1) << HASH_BITS) - 1)
/* Numbers of one connection in two VLANs differ by less than this when the second VLAN appears. */
#define NEAR_BYTES (INT32_C(1) << 24)

struct link {
	uint32_t next;		/* row + 1; 0 at the end of the chain */
	uint32_t hash : HASH_BITS;
	uint32_t source_is_higher : 1;
};

/* SplitMix64 (Steele, Lea and Flood, 2014): makes keys from a seed. */
static uint64_t split_mix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Branch-free: the result changes from packet to packet, and no branch predictor could guess it. */
static uint8_t sender_is_higher(const struct segment *segment)
{
	const struct end *a = &segment->ends[SENDER], *b = &segment->ends[RECEIVER];

	return (a->address > b->address) | ((a->address == b->address) & (a->port > b->port));
}

static uint32_t hash_of(const struct flows *flows, const struct segment *segment)
{
	const struct end *low = &segment->ends[segment->sender_is_higher];
	const struct end *high = &segment->ends[!segment->sender_is_higher];
	uint64_t sum = flows->keys[0] + flows->keys[1] * ((uint32_t)low->port << 16 | high->port);

	/* IPv4 addresses differ in the last word only. */
	for (unsigned int word = 0; word < 3 && segment->version == 6; word++)
		sum += flows->keys[2 + word] * (uint32_t)(low->address >> 32 * word) +
		       flows->keys[5 + word] * (uint32_t)(high->address >> 32 * word);
	sum += flows->keys[8] * (uint32_t)(low->address >> 96) +
	       flows->keys[9] * (uint32_t)(high->address >> 96);
	return (uint32_t)(sum >> (64 - HASH_BITS));
}

static uint32_t *bucket_of(const struct flows *flows, uint32_t hash)
{
	return &flows->heads[hash >> flows->hash_shift];
}

/* Doubles the room and moves every chain to its new buckets; false without memory. */
static bool flows_grow(struct flows *flows)
{
	uint32_t capacity = flows->capacity ? 2 * flows->capacity : FLOWS_FIRST_CAPACITY;
	uint32_t *old = flows->heads, old_capacity = flows->capacity;
	void *rows, *links, *heads;

	rows = realloc(flows->rows, capacity * sizeof(*flows->rows));
	if (!rows)
		return false;
	flows->rows = rows;
	links = realloc(flows->links, capacity * sizeof(*flows->links));
	if (!links)
		return false;
	flows->links = links;
	heads = calloc(capacity, sizeof(*flows->heads));
	if (!heads)
		return false;
	flows->heads = heads;
	flows->capacity = capacity;
	flows->hash_shift = HASH_BITS - (unsigned int)__builtin_ctz(capacity);
	for (uint32_t bucket = 0; bucket < old_capacity; bucket++) {
		for (uint32_t at = old[bucket], next; at; at = next) {
			struct link *link = &flows->links[at - 1];
			uint32_t *head = bucket_of(flows, link->hash);

			next = link->next;
			link->next = *head;
			*head = at;
		}
	}
	free(old);
	return true;
}

bool flows_start(struct flows *flows, uint64_t seed, uint32_t most)
{
	memset(flows, 0, sizeof(*flows));
	flows->most = most;
	for (unsigned int key = 0; key < FLOWS_HASH_KEYS; key++)
		flows->keys[key] = split_mix(&seed);
	return flows_grow(flows);
}

void flows_end(struct flows *flows)
{
	free(flows->rows);
	free(flows->links);
	free(flows->heads);
}

/* The half of a connection, by its row + 1, that sent a segment which joins it. */
static uint8_t half_of(const struct flows *flows, const struct segment *segment, uint32_t at)
{
	return segment->sender_is_higher ^ flows->links[at - 1].source_is_higher;
}

/* Tells whether the segment is between this connection's ends, sent by this half's. */
static bool joins(const struct ca_flow *row, const struct segment *segment, uint32_t half)
{
	const struct end *sender = &segment->ends[SENDER], *receiver = &segment->ends[RECEIVER];
	ca_u128 from, to;

	memcpy(&from, row->addresses[half], sizeof(from));
	memcpy(&to, row->addresses[!half], sizeof(to));
	return !((from ^ sender->address) | (to ^ receiver->address) |
		 (uint32_t)(row->ports[half] ^ sender->port) |
		 (uint32_t)(row->ports[!half] ^ receiver->port) |
		 (uint32_t)(row->version ^ segment->version) |
		 (uint32_t)(row->protocol ^ segment->protocol));
}

/* Adds a row for the connection that a segment opens; there must be room. */
static struct ca_flow *flows_add(struct flows *flows, const struct segment *segment,
				 int64_t time_ns)
{
	struct ca_flow *row = &flows->rows[flows->count++];

	*row = (struct ca_flow){
		.first_ns = time_ns,
		.ports = { segment->ends[SENDER].port, segment->ends[RECEIVER].port },
		.window_scale = { NO_SCALE, NO_SCALE },
		.version = segment->version,
		.protocol = segment->protocol,
		.vlans = segment->vlans & VLANS_MASK,
	};
	for (unsigned int end = SENDER; end <= RECEIVER; end++)
		memcpy(row->addresses[end], &segment->ends[end].address, sizeof(ca_u128));
	return row;
}

static bool seen(const struct ca_flow *row, enum seen what, uint8_t half)
{
	return row->seen & what << half;
}

/* Records base, MSS and window scale from a half's first packet and its SYNs. */
static void take_note(struct ca_flow *row, const struct segment *segment, uint8_t half)
{
	bool syn = segment->flags & TCP_SYN;

	if (!seen(row, SEEN_HALF, half)) {
		row->base[half] = segment->seq;
		row->seen |= (uint8_t)((SEEN_HALF | (syn ? SEEN_SYN : 0)) << half);
	}
	if (syn && !row->mss[half])
		row->mss[half] = segment->mss;
	if (syn && row->window_scale[half] == NO_SCALE)
		row->window_scale[half] = segment->window_scale;
}

/* Records that a connection is in several VLANs; it is stored under the first. */
static void take_note_of_vlans(struct ca_flow *row, const struct segment *segment)
{
	row->seen |= SEEN_IN_OTHER_VLANS;
	if (!row->vlans)
		row->vlans = segment->vlans & VLANS_MASK;
}

/*
 * Tells whether a SYN opens another connection between the same addresses and ports. It does not
 * if data overtook it: the first number seen of that end is then the SYN's plus 1.
 */
static bool opens_another(const struct ca_flow *row, const struct segment *segment, uint8_t half)
{
	uint32_t ahead = segment->seq - row->base[half];

	return (segment->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && seen(row, SEEN_HALF, half) &&
	       ahead && (seen(row, SEEN_SYN, half) || ahead != UINT32_MAX);
}

static bool near(uint32_t number, uint32_t base, int32_t distance)
{
	int32_t ahead = (int32_t)(number - base);

	return ahead >= -distance && ahead <= distance;
}

/*
 * Tells whether a segment in another VLAN is of this connection, by its numbers. Those of a SYN
 * must be the same. Other protocols have no numbers: always true.
 */
static bool follows(const struct ca_flow *row, const struct segment *segment, uint8_t half)
{
	bool sent = seen(row, SEEN_HALF, half), answered = seen(row, SEEN_HALF, !half);
	bool acknowledges = segment->flags & TCP_ACK;

	if (segment->protocol != PROTOCOL_TCP || row->seen & SEEN_IN_OTHER_VLANS)
		return true;
	if (sent && !near(segment->seq, row->base[half], segment->flags & TCP_SYN ? 0 : NEAR_BYTES))
		return false;
	if (acknowledges && answered)
		return near(segment->ack, row->base[!half], NEAR_BYTES);
	return sent;
}

/*
 * With many connections the table is in memory, not in a cache: waiting for bucket, link and row
 * takes longer than all other work. So segments come in batches; each passes through
 * flows_expect(), flows_expect_row() and flows_place(), and the waits of a batch overlap.
 */
void flows_expect(const struct flows *flows, struct segment *segment)
{
	segment->sender_is_higher = sender_is_higher(segment);
	segment->hash = hash_of(flows, segment);
	__builtin_prefetch(bucket_of(flows, segment->hash));
}

/* Fetches link and row of a segment's connection; the bucket was fetched by flows_expect(). */
void flows_expect_row(const struct flows *flows, const struct segment *segment)
{
	uint32_t first = *bucket_of(flows, segment->hash);

	if (!first)
		return;
	__builtin_prefetch(&flows->links[first - 1]);
	__builtin_prefetch(&flows->rows[first - 1]);
}

/*
 * The reference to the latest connection in another VLAN, between the segment's ends, that the
 * segment continues; or the end of the chain.
 */
static __attribute__((noinline)) uint32_t *
flows_find_in_other_vlans(struct flows *flows, const struct segment *segment, uint8_t *half)
{
	uint32_t *at = bucket_of(flows, segment->hash), *found = NULL, *latest = NULL;
	unsigned int others = 0;

	for (; *at; at = &flows->links[*at - 1].next) {
		*half = half_of(flows, segment, *at);
		if (!joins(&flows->rows[*at - 1], segment, *half))
			continue;
		others++;
		if (!latest || *at > *latest)
			latest = at;
		if (follows(&flows->rows[*at - 1], segment, *half) && (!found || *at > *found))
			found = at;
	}
	if (!found && others >= FLOWS_VLANS_MAX)
		found = latest;
	if (!found)
		return at;
	*half = half_of(flows, segment, *found);
	return found;
}

/* The reference to the segment's connection, or the one that ends its chain. */
static uint32_t *flows_find(struct flows *flows, const struct segment *segment, uint8_t *half)
{
	uint32_t *at = bucket_of(flows, segment->hash);

	for (; *at; at = &flows->links[*at - 1].next) {
		const struct ca_flow *row = &flows->rows[*at - 1];

		*half = half_of(flows, segment, *at);
		if (joins(row, segment, *half) && row->vlans == segment->vlans)
			return at;
	}
	return flows_find_in_other_vlans(flows, segment, half);
}

/* Finds or adds the segment's connection; false beyond the most or without memory. */
bool flows_place(struct flows *flows, const struct segment *segment, int64_t time_ns,
		 struct place *place)
{
	if (flows->count == flows->capacity && flows->count < flows->most && !flows_grow(flows))
		return false;

	uint32_t *at = flows_find(flows, segment, &place->half), next = 0;

	if (*at) {
		struct ca_flow *row = &flows->rows[*at - 1];

		if (!opens_another(row, segment, place->half)) {
			if (!seen(row, SEEN_HALF, place->half) || segment->flags & TCP_SYN)
				take_note(row, segment, place->half);
			if (row->vlans != segment->vlans)
				take_note_of_vlans(row, segment);
			place->flow = *at - 1;
			return true;
		}
		next = flows->links[*at - 1].next;
	}
	if (flows->count == flows->most)
		return false;
	*place = (struct place){ .flow = flows->count, .half = 0 };
	flows->links[flows->count] = (struct link){
		.next = next,
		.hash = segment->hash & HASH_MASK,
		.source_is_higher = segment->sender_is_higher & 1u,
	};
	take_note(flows_add(flows, segment, time_ns), segment, 0);
	*at = flows->count;
	return true;
}
