// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table and packets from standard input, and when each packet leaves, as sch_timetable has it:
 *
 *	KIND PERIOD START NOW STEPS, then STEPS of AT VALUE, then TIME BYTES for each packet;
 *	0 BYTES: all packets are gone, which is no departure
 *
 * Compiled together with timetable.c.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "timetable.h"

#include <net/netlink.h>

int main(void)
{
	struct netlink_ext_ack extack;
	struct timetable_step *steps;
	struct timetable tt = { 0 };
	uint64_t start, now, bytes;
	unsigned int kind;
	bool good;

	if (scanf("%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %u", &kind, &tt.period, &start, &now,
		  &tt.n_steps) != 5)
		return 1;
	steps = calloc(tt.n_steps + 1, sizeof(*steps));
	for (u32 i = 0; i < tt.n_steps; i++)
		if (scanf("%" SCNu64 " %" SCNu64, &steps[i].at_ns, &steps[i].value) != 2)
			return 1;
	tt.kind = kind;
	tt.steps = steps;
	good = !timetable_check(&tt, &extack);
	if (!good) {
		printf("%s\n", extack.sentence);
	} else {
		printf("%" PRIu64 "\n", timetable_digest(&tt));
		timetable_start(&tt, start, now);
	}
	while (good && scanf("%" SCNu64 " %" SCNu64, &now, &bytes) == 2)
		if (bytes)
			printf("%" PRIu64 "\n", timetable_arrive(&tt, now, bytes));
		else
			timetable_clear(&tt, now);
	free(steps);
	return 0;
}
