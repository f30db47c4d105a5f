/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_IP_H
#define CAPTURE_ANALYSIS_IP_H

#include "frame.h"

/* What an IP packet carries: where, and the size of its header and payload by IP's length. */
struct transport {
	size_t offset;
	int64_t bytes;		/* negative if the headers are longer than the packet */
	bool later;		/* a fragment other than the first: without the protocol's header */
};

enum fate ip_find_transport(struct view ip, uint8_t version, int64_t room, bool every_protocol,
			    struct segment *segment, struct transport *found);

#endif
