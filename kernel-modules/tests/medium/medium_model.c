// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets at both ends of a medium from standard input, and when each has been sent:
 *
 *	GAP TURN RATE RATE, then TIME END BYTES for each packet, in the order of their times;
 *	0 BYTES: all packets of the end are gone
 *
 * The answers, END TIME, are in the order in which the medium sends.
 *
 * Compiled together with medium.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "medium.h"

#define MOST 4096

static u32 waiting[2][MOST];	/* sizes, of all that have come */
static unsigned int come[2], gone[2];

/* Send, as sch_medium does, whatever starts before now. */
static void advance(struct medium_turns *m, const uint64_t *rate, uint64_t now)
{
	int end;

	while ((end = medium_next(m)) != MEDIUM_NO_END && m->start_at < now) {
		u64 bits = medium_bits(waiting[end][gone[end]++], rate[end]);

		printf("%d %" PRIu64 "\n", end, medium_send(m, end, bits));
	}
}

int main(void)
{
	uint64_t gap, now, rate[2];
	struct medium_turns m;
	u32 turn, bytes;
	int end;

	if (scanf("%" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu64, &gap, &turn, &rate[0],
		  &rate[1]) != 4)
		return 1;
	medium_begin(&m, gap, turn);
	while (scanf("%" SCNu64 " %d %" SCNu32, &now, &end, &bytes) == 3) {
		if (end < 0 || end > 1 || come[end] == MOST)
			return 1;
		advance(&m, rate, now);
		if (!bytes) {
			gone[end] = come[end];
			medium_clear(&m, end, now);
			continue;
		}
		waiting[end][come[end]++] = bytes;
		medium_arrive(&m, end, now);
	}
	advance(&m, rate, UINT64_MAX);
	return 0;
}
