/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The library: some rows of a column, as 64 bits each; see gather.py.
 */
#ifndef CAPTURE_ANALYSIS_GATHER_H
#define CAPTURE_ANALYSIS_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parser.h"

/*
 * Writes the values of a column, of `size` numbers, at `count` rows, each to its place. False if
 * rows or places are beyond the column or what is written, or numbers not 1, 2, 4 or 8 bytes wide;
 * those of 8 are signed.
 */
CA_API bool ca_gather(const void *column, size_t width, size_t size, const int64_t *rows,
		      const int64_t *places, size_t count, int64_t *to);

#endif
