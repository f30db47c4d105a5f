/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CAPTURE_ANALYSIS_TUNNEL_H
#define CAPTURE_ANALYSIS_TUNNEL_H

#include "frame.h"

/* The fields of Counts in parsing.py, in order. */
enum tunnel {
	TUNNEL_IP,
	TUNNEL_GRE,
	TUNNEL_ERSPAN,
	TUNNEL_VXLAN,
	TUNNEL_GENEVE,
	TUNNEL_GTP,
	TUNNELS,
	NO_TUNNEL = TUNNELS,
};

/* What a tunnel carries: at an offset, a frame of a link type. */
struct carried {
	size_t offset;
	uint32_t link_type;
};

enum tunnel tunnel_find(struct view outer, uint8_t protocol, struct carried *carried);

#endif
