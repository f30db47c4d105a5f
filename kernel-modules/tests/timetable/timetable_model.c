// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table and packets from standard input, and when each packet leaves, as sch_timetable has it:
 *
 *	KIND PERIOD START NOW STEPS PART, then STEPS of AT VALUE, then TIME BYTES for each packet;
 *	PART: steps of a request; 0 BYTES: all packets are gone, which is no departure
 *
 * Compiled together with timetable.c. How many of its basic blocks ran is written to standard
 * error.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "timetable.h"

#include <linux/minmax.h>
#include <net/netlink.h>

static uint64_t blocks;

/* The compiler calls it in each block of timetable.c. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

int main(void)
{
	struct netlink_ext_ack extack;
	struct timetable_step *steps;
	struct timetable tt = { 0 };
	uint64_t start, now, bytes;
	u32 kind, n_steps, part, checked;
	bool good;

	if (scanf("%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %u %u", &kind, &tt.period, &start, &now,
		  &n_steps, &part) != 6)
		return 1;
	steps = calloc(n_steps + 1, sizeof(*steps));
	for (u32 i = 0; i < n_steps; i++)
		if (scanf("%" SCNu64 " %" SCNu64, &steps[i].at_ns, &steps[i].value) != 2)
			return 1;
	tt.kind = kind;
	tt.steps = steps;
	do {
		checked = tt.n_steps;
		tt.n_steps = min(checked + part, n_steps);
		good = !timetable_check(&tt, checked, &extack);
	} while (good && tt.n_steps < n_steps);
	if (!good) {
		printf("%s\n", extack.sentence);
	} else {
		printf("%" PRIu64 "\n", tt.digest);
		timetable_start(&tt, start, now);
	}
	while (good && scanf("%" SCNu64 " %" SCNu64, &now, &bytes) == 2)
		if (bytes)
			printf("%" PRIu64 "\n", timetable_arrive(&tt, now, bytes));
		else
			timetable_clear(&tt, now);
	fprintf(stderr, "%" PRIu64 "\n", blocks);
	free(steps);
	return 0;
}
