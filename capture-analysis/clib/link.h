/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_LINK_H
#define CAPTURE_ANALYSIS_LINK_H

#include "frame.h"

/* The offset of IP in a frame, and IP's version and VLANs by the link's header. */
struct link_payload {
	size_t offset;
	uint32_t vlans;		/* as in struct segment */
	uint8_t version;
};

struct frame link_without_pktap(const struct frame *frame);
enum fate link_find_ip(uint32_t link_type, struct view frame, struct link_payload *ip);

#endif
