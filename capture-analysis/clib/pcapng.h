/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_PCAPNG_H
#define CAPTURE_ANALYSIS_PCAPNG_H

#include "interface.h"
#include "likely.h"
#include "rows.h"

#define PCAPNG_MAGIC 0x0a0d0d0a		/* the same in both byte orders */
#define PCAPNG_SECTION_START_BYTES 12	/* up to and with the byte-order magic */

struct pcapng {
	struct interfaces interfaces;
	bool big_endian;	/* byte order of this section */
	bool began_big_endian;	/* byte order of the first section */
};

bool pcapng_open(struct pcapng *pcapng, struct view start);
void pcapng_close(struct pcapng *pcapng);
void pcapng_parse(struct pcapng *pcapng, struct view data, uint64_t offset, struct rows *rows);
enum likely pcapng_likely(const struct pcapng *pcapng, struct view data, bool last);

#endif
