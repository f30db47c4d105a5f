/* SPDX-License-Identifier: GPL-2.0-only */
/* The readers of a frame's layers: the link's header, IP, and what IP carries. */
#ifndef CAPTURE_ANALYSIS_LAYERS_H
#define CAPTURE_ANALYSIS_LAYERS_H

#include "frame.h"

/* The offset of IP in a frame, and IP's version and VLANs by the link's header. */
struct link_payload {
	size_t offset;
	uint32_t vlans;		/* as in struct segment */
	uint8_t version;
};

struct frame link_without_pktap(const struct frame *frame);
enum fate link_find_ip(uint32_t link_type, struct view frame, struct link_payload *ip);
enum fate wlan_find_llc(struct view frame, size_t *offset);
enum fate radiotap_find_llc(struct view frame, size_t *offset);

/* What an IP packet carries: where, and the size of its header and payload by IP's length. */
struct transport {
	size_t offset;
	int64_t bytes;		/* negative if the headers are longer than the packet */
	bool later;		/* a fragment other than the first: without the protocol's header */
};

enum fate ip_find_transport(struct view ip, uint8_t version, int64_t room, bool every_protocol,
			    struct segment *segment, struct transport *found);

enum fate tcp_read(struct view tcp, int64_t bytes, struct segment *segment);
enum fate datagram_read(struct view data, int64_t bytes, bool later, struct segment *segment);

#endif
