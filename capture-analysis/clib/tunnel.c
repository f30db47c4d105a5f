// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the frame behind a tunnel's header, in an IP packet of another protocol than TCP.
 *
 *	IP in IP	nothing (RFC 2003, 2473, 4213)
 *	GRE		4 bytes, and 4 each for checksum, key and number (RFC 2784, 2890)
 *	ERSPAN		GRE, then 0 bytes (type I), 8 (II), or 12 and maybe 8 (III)
 *	VXLAN		UDP to port 4789 or 8472, 8 bytes (RFC 7348)
 *	Geneve		UDP to port 6081, 8 bytes and options (RFC 8926)
 *	GTP-U		UDP to port 2152, 8 bytes, 4 optional, extensions (3GPP TS 29.281)
 */
#include "tunnel.h"

enum {
	PROTOCOL_IPV4 = 4,
	PROTOCOL_IPV6 = 41,
	PROTOCOL_GRE = 47,
};

enum {
	PORT_GTP = 2152,
	PORT_VXLAN = 4789,
	PORT_GENEVE = 6081,
	PORT_VXLAN_OLD = 8472,	/* Linux's, from before there was a standard */
};

enum {
	CARRIES_IPV4 = 0x0800,
	CARRIES_ERSPAN_III = 0x22eb,
	CARRIES_ETHERNET = 0x6558,
	CARRIES_IPV6 = 0x86dd,
	CARRIES_ERSPAN = 0x88be,
};

#define LINK_ETHERNET 1
#define LINK_RAW 101
#define UDP_BYTES 8
#define GRE_BYTES 4
#define GRE_CHECKSUM 0x8000
#define GRE_KEY 0x2000
#define GRE_NUMBER 0x1000
#define GRE_VERSION 7
#define GRE_FIELD_BYTES 4
#define ERSPAN_II_BYTES 8
#define ERSPAN_III_BYTES 12
#define ERSPAN_III_OPTIONAL 1	/* lowest bit of the header, behind which 8 bytes follow */
#define HEADER_BYTES 8		/* of VXLAN, Geneve and GTP-U */
#define VXLAN_VALID 0x08
#define GENEVE_WORD 4
#define GTP_VERSION 0xf0	/* version 1, and GTP rather than GTP' */
#define GTP_VERSION_1 0x30
#define GTP_OPTIONAL 0x07
#define GTP_EXTENDED 0x04
#define GTP_PACKET 255
#define GTP_WORD 4
#define GTP_EXTENSIONS_MAX 8

static enum tunnel by_type(uint16_t type, enum tunnel tunnel, struct carried *carried)
{
	if (type == CARRIES_IPV4 || type == CARRIES_IPV6)
		carried->link_type = LINK_RAW;
	else if (type == CARRIES_ETHERNET)
		carried->link_type = LINK_ETHERNET;
	else
		return NO_TUNNEL;
	return tunnel;
}

static enum tunnel in_gre(struct view gre, struct carried *carried)
{
	uint16_t flags = view_be16(gre, 0), type = view_be16(gre, 2);
	bool numbered = flags & GRE_NUMBER;

	if (!view_has(gre, GRE_BYTES) || flags & GRE_VERSION)
		return NO_TUNNEL;
	carried->offset = GRE_BYTES;
	carried->offset += flags & GRE_CHECKSUM ? GRE_FIELD_BYTES : 0;
	carried->offset += flags & GRE_KEY ? GRE_FIELD_BYTES : 0;
	carried->offset += numbered ? GRE_FIELD_BYTES : 0;
	carried->link_type = LINK_ETHERNET;
	if (type == CARRIES_ERSPAN) {
		carried->offset += numbered ? ERSPAN_II_BYTES : 0;
		return TUNNEL_ERSPAN;
	}
	if (type == CARRIES_ERSPAN_III) {
		size_t last = carried->offset + ERSPAN_III_BYTES - 1;

		carried->offset += ERSPAN_III_BYTES;
		carried->offset += view_u8(gre, last) & ERSPAN_III_OPTIONAL ? 8 : 0;
		return TUNNEL_ERSPAN;
	}
	return by_type(type, TUNNEL_GRE, carried);
}

/* Passes GTP-U's extensions, each of which ends with the kind of the next. */
static enum tunnel in_gtp(struct view gtp, struct carried *carried)
{
	uint8_t flags = view_u8(gtp, 0);
	size_t at = HEADER_BYTES;
	uint8_t next = 0;

	if ((flags & GTP_VERSION) != GTP_VERSION_1 || view_u8(gtp, 1) != GTP_PACKET)
		return NO_TUNNEL;
	if (flags & GTP_OPTIONAL) {
		at += GTP_WORD;
		next = flags & GTP_EXTENDED ? view_u8(gtp, at - 1) : 0;
	}
	for (unsigned int passed = 0; next; passed++) {
		size_t bytes = (size_t)view_u8(gtp, at) * GTP_WORD;

		if (!bytes || passed == GTP_EXTENSIONS_MAX)
			return NO_TUNNEL;
		at += bytes;
		next = view_u8(gtp, at - 1);
	}
	carried->offset = UDP_BYTES + at;
	carried->link_type = LINK_RAW;
	return TUNNEL_GTP;
}

static enum tunnel in_udp(struct view udp, struct carried *carried)
{
	struct view inside = view_after(udp, UDP_BYTES);

	if (!view_has(inside, HEADER_BYTES))
		return NO_TUNNEL;
	carried->offset = UDP_BYTES + HEADER_BYTES;
	carried->link_type = LINK_ETHERNET;
	switch (view_be16(udp, 2)) {
	case PORT_VXLAN:
	case PORT_VXLAN_OLD:
		return view_u8(inside, 0) & VXLAN_VALID ? TUNNEL_VXLAN : NO_TUNNEL;
	case PORT_GENEVE:
		carried->offset += (size_t)(view_u8(inside, 0) & 0x3f) * GENEVE_WORD;
		if (view_u8(inside, 0) >> 6)
			return NO_TUNNEL;
		return by_type(view_be16(inside, 2), TUNNEL_GENEVE, carried);
	case PORT_GTP:
		return in_gtp(inside, carried);
	default:
		return NO_TUNNEL;
	}
}

/* Finds what a packet carries inside a tunnel. outer: from the protocol's header on. */
enum tunnel tunnel_find(struct view outer, uint8_t protocol, struct carried *carried)
{
	switch (protocol) {
	case PROTOCOL_IPV4:
	case PROTOCOL_IPV6:
		carried->offset = 0;
		carried->link_type = LINK_RAW;
		return TUNNEL_IP;
	case PROTOCOL_GRE:
		return in_gre(outer, carried);
	case PROTOCOL_UDP:
		return in_udp(outer, carried);
	default:
		return NO_TUNNEL;
	}
}
