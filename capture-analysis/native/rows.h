/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_ROWS_H
#define CAPTURE_ANALYSIS_ROWS_H

#include <inttypes.h>
#include <stdio.h>

#include "flows.h"
#include "parser.h"

#define TROUBLE_LENGTH 160

/* Where frames become rows: the caller's columns, and what is known of the capture so far. */
struct rows {
	const struct ca_columns *columns;	/* of this call */
	size_t next;		/* free row */
	size_t capacity;
	int64_t last_ns;	/* time of the row before, of whichever call */
	struct flows flows;
	struct ca_counts counts;
	char trouble[TROUBLE_LENGTH];	/* why frames cannot be followed further; empty if they can */
};

#define rows_say(rows, ...) ((void)snprintf((rows)->trouble, TROUBLE_LENGTH, __VA_ARGS__))

bool rows_take(struct rows *rows, const struct frame *frame);
void rows_pass(struct rows *rows, enum fate fate);

#endif
