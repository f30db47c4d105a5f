// SPDX-License-Identifier: GPL-2.0-only
/*
 * Half a connection: the numbers that one end sent, as far as seen, and those acknowledged.
 *
 *	low        holes        high      sequence numbers, SYN and FIN count as one each
 *	 |####..####.#############|
 *	              ^ acked
 *
 * A number is unwrapped to the value nearest to the highest known (high or acked), so that up to
 * 2^31 bytes in a row may be missing. Only 2^30 packets of 4 GiB would exceed 64 bits.
 *
 * RTT. End and time of every segment that reaches above high are queued. An ACK removes the
 * segments that it acknowledges in full, and the newest of these gives the sample. Segments sent
 * before a clock was set back give none. Karn's rule needs no mark on each segment: `unclear` spans everything that was sent again or late and is not
 * acknowledged yet, and an ACK that reaches into it gives no sample. That loses samples between two
 * retransmissions in the same window, and never takes a wrong one. Segments that find no room are
 * unclear, too.
 */
#include <stdlib.h>
#include <string.h>

#include "half.h"

#define SEGMENTS_FIRST_CAPACITY 2		/* most connections are short */

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Time from one packet to the next; -1 if it ran backward. */
static int64_t elapsed(int64_t from_ns, int64_t to_ns)
{
	int64_t ns;

	if (to_ns < from_ns)
		return -1;
	return __builtin_sub_overflow(to_ns, from_ns, &ns) ? INT64_MAX : ns;
}

void half_start(struct half *half)
{
	memset(half, 0, sizeof(*half));
	half->acked = NO_NUMBER;
	half->first = NO_NUMBER;
	half->rival = NO_NUMBER;
	half->fin_at = INT64_MAX;
	half->room = RECENT;
	half->unclear = (struct span){ INT64_MAX, NO_NUMBER };
	repairs_start(&half->repairs);
	half->last_ns[0] = NO_TIME;
	half->last_ns[1] = NO_TIME;
}

void half_end(struct half *half)
{
	holes_end(&half->holes);
	free(half->segments.ring);
	free(half->more);
}

/* Starts a half at its first number; converts what was acknowledged before it was seen. */
void half_begin(struct half *half, uint32_t seq)
{
	if (half->seen)
		return;
	if (half->acked != NO_NUMBER)
		half->acked = (int32_t)(half->base + (uint32_t)half->acked - seq);
	half->base = seq;
	half->seen = true;
}

int64_t half_unwrap(const struct half *half, uint32_t number)
{
	int64_t front = max(half->high, half->acked);

	return front + (int32_t)(number - half->base - (uint32_t)front);
}

int64_t half_gap(struct half *half, const struct packet *packet)
{
	int64_t *last_ns = &half->last_ns[packet->payload_bytes > 0], before_ns = *last_ns;

	if (packet->flags & (FLAG_SYN | FLAG_FIN | FLAG_RST))
		return -1;
	*last_ns = packet->time_ns;
	return before_ns == NO_TIME ? -1 : elapsed(before_ns, packet->time_ns);
}

/*
 * Tells whether a SYN has another number than the half's own: a server answered twice, or it is of
 * an old connection. It changes nothing unless it is the one that is acknowledged.
 */
bool half_is_stray(struct half *half, const struct packet *packet, int64_t start)
{
	if (!(packet->flags & FLAG_SYN) || half->first == NO_NUMBER || half->first == start + 1)
		return false;
	half->rival = start + 1;
	return true;
}

/*
 * Starts the half anew at its other SYN if the answer acknowledges that one, and no answer came
 * before.
 */
void half_choose(struct half *half, const struct packet *answer)
{
	if (half->rival == NO_NUMBER || half->acked != NO_NUMBER ||
	    half->base + (uint32_t)half->rival != answer->ack)
		return;
	half->base = answer->ack - 1;
	half->rival = NO_NUMBER;
	half->low = 0;
	half->high = 1;
	half->first = 1;
	half->fin_at = INT64_MAX;
	half->unclear = (struct span){ INT64_MAX, NO_NUMBER };
	half->segments.count = 0;
	half->holes.count = 0;
	repairs_start(&half->repairs);
}

bool half_is_probe(const struct half *half, const struct packet *packet, int64_t start,
		   uint16_t other_window)
{
	if (packet->payload_bytes > 1 || packet->flags & FLAG_FIN || half->acked == NO_NUMBER)
		return false;
	if (start == half->high - 1 && half->acked == half->high)
		return true;
	return packet->payload_bytes == 1 && !other_window && start >= half->acked;
}

/* Tells whether packets of the half are later than a time by so much that a clock was set back. */
bool half_is_later(const struct half *half, int64_t time_ns)
{
	int64_t last_ns = max(half->last_ns[0], half->last_ns[1]);

	return last_ns > time_ns && elapsed(time_ns, last_ns) >= SET_BACK_NS;
}

/* Marks [first, end), below high, as seen; returns how many bytes were not seen before. */
static int64_t half_fill(struct half *half, int64_t first, int64_t end, uint64_t *forgotten)
{
	int64_t filled = 0;

	if (first >= end)
		return 0;
	if (first < half->low) {
		filled = min(end, half->low) - first;
		if (end < half->low)
			holes_add(&half->holes, 0, (struct span){ end, half->low }, forgotten);
		half->low = first;
	}
	return filled + holes_fill(&half->holes, (struct span){ first, end }, forgotten);
}

/* Excludes [first, end), as far as it is not acknowledged, from RTT samples. */
static void half_mark_unclear(struct half *half, int64_t first, int64_t end)
{
	first = max(first, half->acked);
	if (first >= end)
		return;
	half->unclear.first = min(half->unclear.first, first);
	half->unclear.end = max(half->unclear.end, end);
}

/* Excludes all that was sent so far from RTT samples. */
void half_forget_times(struct half *half)
{
	half_mark_unclear(half, half->low, half->high);
}

static bool segments_grow(struct segments *segments)
{
	uint32_t capacity = segments->capacity ? 2 * segments->capacity : SEGMENTS_FIRST_CAPACITY;
	struct awaited *ring = malloc(capacity * sizeof(*ring));
	uint32_t to_the_end = segments->capacity - segments->first;

	if (!ring)
		return false;
	/* The ring is full: the entries before `first` are the newest and go to the end. */
	if (segments->capacity) {
		memcpy(ring, segments->ring + segments->first, to_the_end * sizeof(*ring));
		memcpy(ring + to_the_end, segments->ring, segments->first * sizeof(*ring));
	}
	free(segments->ring);
	segments->ring = ring;
	segments->first = 0;
	segments->capacity = capacity;
	return true;
}

/* Queues a segment for its ACK, if there is room. */
static bool half_await(struct half *half, int64_t end, int64_t time_ns)
{
	uint32_t limit = half->acked == NO_NUMBER ? SEGMENTS_AT_FIRST : SEGMENTS_MAX;
	struct segments *segments = &half->segments;

	if (segments->count >= limit)
		return false;
	if (segments->count == segments->capacity && !segments_grow(segments))
		return false;
	segments->ring[(segments->first + segments->count++) & (segments->capacity - 1)] =
		(struct awaited){ end, time_ns };
	return true;
}

/* Begins the half at its SYN, unless payload overtook it: earlier numbers are not part of it. */
static void half_open(struct half *half, int64_t start)
{
	half->first = start + 1;
	if (half->low == half->high) {
		half->low = start;
		half->high = start;
	}
}

/* Records payload, SYN and FIN as sent; returns how many bytes were not seen before. */
uint32_t half_send(struct half *half, const struct packet *packet, int64_t start,
		   struct ca_forgotten *forgotten)
{
	int64_t first = start + !!(packet->flags & FLAG_SYN);
	int64_t payload_end = first + packet->payload_bytes;
	int64_t end = payload_end + !!(packet->flags & FLAG_FIN);
	int64_t high, new;

	if (start == end)
		return 0;
	if (packet->flags & FLAG_SYN)
		half_open(half, start);
	high = half->high;
	new = half_fill(half, first, min(payload_end, high), &forgotten->holes) +
	      max(payload_end - max(first, high), 0);
	if (start < high)
		half_mark_unclear(half, start, min(end, high));
	if (start > high)
		holes_add(&half->holes, half->holes.count, (struct span){ high, start },
			  &forgotten->holes);
	if (end > high) {
		half->high = end;
		if (!half_await(half, end, packet->time_ns)) {
			half_mark_unclear(half, high, end);
			forgotten->segments += half->acked != NO_NUMBER;
		}
	}
	if (packet->flags & FLAG_FIN)
		half->fin_at = payload_end;
	return (uint32_t)new;
}

/* The number limited to the payload: behind the SYN and not behind the FIN. */
static int64_t payload_edge(const struct half *half, int64_t number)
{
	return min(max(number, half->first), half->fin_at);
}

/* The number below which everything is acknowledged; before any ACK the start, if known. */
static int64_t half_acked(const struct half *half)
{
	if (half->acked != NO_NUMBER)
		return half->acked;
	return half->first == NO_NUMBER ? 0 : half->first;
}

/* Removes the segments that ack covers; returns the time of the newest, or NO_TIME. */
static int64_t segments_take(struct segments *segments, int64_t ack)
{
	int64_t time_ns = NO_TIME;

	while (segments->count && segments->ring[segments->first].end <= ack) {
		time_ns = segments->ring[segments->first].time_ns;
		segments->first = (segments->first + 1) & (segments->capacity - 1);
		segments->count--;
	}
	return time_ns;
}

/* Records everything below ack as acknowledged; returns how much payload that adds. */
int64_t half_acknowledge(struct half *half, int64_t ack, int64_t time_ns, int64_t *rtt_ns)
{
	int64_t before = half_acked(half), sent_ns = segments_take(&half->segments, ack);

	if (half->acked == NO_NUMBER && !half->seen)
		before = ack;
	if (sent_ns != NO_TIME && ack <= half->unclear.first)
		*rtt_ns = elapsed(sent_ns, time_ns);
	if (half->unclear.end <= ack)
		half->unclear = (struct span){ INT64_MAX, NO_NUMBER };
	half->acked = ack;
	return max(payload_edge(half, ack) - payload_edge(half, before), 0);
}

/* The payload up to ack that is neither acknowledged yet nor seen. */
int64_t half_unseen(const struct half *half, int64_t ack)
{
	int64_t acked = payload_edge(half, half_acked(half)), end = payload_edge(half, ack);
	int64_t unseen = max(end - max(acked, half->high), 0);

	for (unsigned int at = 0; at < half->holes.count; at++) {
		const struct span *hole = &half->holes.spans[at];

		unseen += max(min(hole->end, end) - max(hole->first, acked), 0);
	}
	return unseen;
}

int64_t half_in_flight(const struct half *half)
{
	return max(payload_edge(half, half->high) - payload_edge(half, half_acked(half)), 0);
}
