/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_IP_H
#define CAPTURE_ANALYSIS_IP_H

#include "frame.h"

/* The offset of TCP in an IP packet, and the size of header and payload by IP's length. */
struct transport {
	size_t offset;
	int64_t bytes;		/* negative if the headers are longer than the packet */
};

enum fate ip_find_tcp(struct view ip, uint8_t version, int64_t room, struct segment *segment,
		      struct transport *tcp);

#endif
