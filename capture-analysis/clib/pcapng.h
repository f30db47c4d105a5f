/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_PCAPNG_H
#define CAPTURE_ANALYSIS_PCAPNG_H

#include "rows.h"

#define PCAPNG_MAGIC 0x0a0d0d0a		/* the same in both byte orders */
#define PCAPNG_SECTION_START_BYTES 12	/* up to and with the byte-order magic */

#define LINK_TYPES (UINT16_MAX + 1)
#define LINK_TYPES_IN_WORD 64

/* An interface of the section and its clock: ns = (ticks * multiplier >> shift) / divisor. */
struct interface {
	uint64_t multiplier;
	uint64_t divisor;
	int64_t offset_s;	/* added to every time */
	uint16_t link_type;
	uint8_t shift;
};

struct interfaces {
	struct interface *rows;
	uint32_t count;		/* of this section */
	uint32_t capacity;
	uint64_t link_types[LINK_TYPES / LINK_TYPES_IN_WORD];	/* a bit for each type seen */
};

struct pcapng {
	struct interfaces interfaces;
	bool big_endian;	/* byte order of this section */
	bool began_big_endian;	/* byte order of the first section */
};

bool interfaces_add(struct interfaces *interfaces, struct view block, bool big);
bool interface_time(const struct interface *interface, uint64_t ticks, int64_t *time_ns);

bool pcapng_open(struct pcapng *pcapng, struct view start);
void pcapng_close(struct pcapng *pcapng);
void pcapng_parse(struct pcapng *pcapng, struct view data, uint64_t offset, struct rows *rows);
enum likely pcapng_likely(const struct pcapng *pcapng, struct view data, bool last);

#endif
