/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_IP_H
#define CAPTURE_ANALYSIS_IP_H

#include "frame.h"

/* Where TCP begins in an IP packet, and how many bytes IP says it has, header included. */
struct transport {
	size_t offset;
	int64_t bytes;		/* negative if the headers are longer than the packet */
};

enum fate ip_find_tcp(struct view ip, uint8_t version, int64_t room, struct segment *segment,
		      struct transport *tcp);

#endif
