/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts that all fuzz targets share. */
#ifndef CAPTURE_ANALYSIS_FUZZ_H
#define CAPTURE_ANALYSIS_FUZZ_H

#include "../tests/table.h"

#define check(condition)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);	\
			abort();						\
		}								\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
