/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_PCAP_H
#define CAPTURE_ANALYSIS_PCAP_H

#include "rows.h"

#define PCAP_FILE_HEADER_BYTES 24

/* A classic capture file, as its header describes it. */
struct pcap {
	uint32_t link_type;
	uint32_t record_header_bytes;
	uint32_t ns_per_unit;	/* unit of the fraction in a time stamp: 1 or 1000 */
	bool big_endian;
};

bool pcap_open(struct pcap *pcap, struct view header);
const char *pcap_format(const struct pcap *pcap);
void pcap_parse(const struct pcap *pcap, struct view data, uint64_t offset, struct rows *rows);
enum likely pcap_likely(const struct pcap *pcap, struct view data, int64_t last_ns, bool last);

#endif
