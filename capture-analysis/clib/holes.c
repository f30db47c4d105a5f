// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holes: the numbers of a half that were not seen, in bounded memory.
 *
 * Most halves have no hole, and few have more than some: an array, searched from its front. When
 * there are too many, or no memory, the lowest is discarded and counted: it is the least likely to
 * be filled (the capture, not the network, lost those bytes).
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "holes.h"

#define HOLES_FIRST_CAPACITY 4

static bool holes_have_room(struct holes *holes)
{
	unsigned int capacity = holes->capacity ? 2u * holes->capacity : HOLES_FIRST_CAPACITY;
	struct span *spans;

	if (holes->count < holes->capacity)
		return true;
	if (holes->capacity == HOLES_MAX)
		return false;
	spans = realloc(holes->spans, capacity * sizeof(*spans));
	if (!spans)
		return false;
	holes->spans = spans;
	holes->capacity = (uint16_t)capacity;
	return true;
}

static void holes_move(struct holes *holes, unsigned int to, unsigned int from, unsigned int count)
{
	memmove(holes->spans + to, holes->spans + from, count * sizeof(*holes->spans));
}

/* Inserts a hole before index `at`; without room the lowest is discarded, maybe this one. */
void holes_add(struct holes *holes, unsigned int at, struct span hole, uint64_t *forgotten)
{
	if (holes_have_room(holes)) {
		holes_move(holes, at + 1, at, holes->count - at);
		holes->spans[at] = hole;
		holes->count++;
		return;
	}
	++*forgotten;
	if (!at)
		return;
	holes_move(holes, 0, 1, at - 1);
	holes->spans[at - 1] = hole;
}

/* Marks a span as seen; returns how many of its bytes were not seen before. */
int64_t holes_fill(struct holes *holes, struct span filling, uint64_t *forgotten)
{
	unsigned int from = 0, to, at;
	struct span left, right;
	int64_t filled = 0;

	while (from < holes->count && holes->spans[from].end <= filling.first)
		from++;
	for (to = from; to < holes->count && holes->spans[to].first < filling.end; to++)
		filled += holes->spans[to].end - holes->spans[to].first;
	if (from == to)
		return 0;
	left = (struct span){ holes->spans[from].first, filling.first };
	right = (struct span){ filling.end, holes->spans[to - 1].end };
	at = from;
	if (left.first < left.end) {
		filled -= left.end - left.first;
		holes->spans[at++] = left;
	}
	if (right.first < right.end) {
		filled -= right.end - right.first;
		if (at == to) {
			holes_add(holes, at, right, forgotten);
			return filled;
		}
		holes->spans[at++] = right;
	}
	holes_move(holes, at, to, holes->count - to);
	holes->count -= (uint16_t)(to - at);
	return filled;
}

void holes_end(struct holes *holes)
{
	free(holes->spans);
}
