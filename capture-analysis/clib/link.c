// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds IP in a frame: a fixed header ends with a protocol number; if that is an EtherType, VLAN
 * tags, LLC with SNAP, MPLS labels and a PPPoE session may follow in any nesting.
 *
 * Link types are those of tcpdump.org/linktypes.html. Nesting is limited to TAGS_MAX tags and
 * labels: real networks use four, but a jumbo frame has room for thousands.
 */
#include "layers.h"

enum link_type {
	LINK_NULL = 0,
	LINK_ETHERNET = 1,
	LINK_PPP = 9,
	LINK_PPP_HDLC = 50,	/* PPP (RFC 1662), or Cisco's HDLC */
	LINK_RAW_OPENBSD = 14,	/* DLT_RAW as OpenBSD wrote it into files */
	LINK_RAW_BSD = 12,
	LINK_RAW = 101,
	LINK_CISCO_HDLC = 104,
	LINK_WLAN = 105,
	LINK_LOOP = 108,
	LINK_SLL = 113,
	LINK_RADIOTAP = 127,
	LINK_IPV4 = 228,
	LINK_IPV6 = 229,
	LINK_PKTAP = 258,
	LINK_SLL2 = 276,
};

enum ethertype {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_MPLS = 0x8847,
	ETHERTYPE_MPLS_UPSTREAM = 0x8848,
	ETHERTYPE_PPPOE_SESSION = 0x8864,
	ETHERTYPE_QINQ = 0x88a8,
	ETHERTYPE_QINQ_OLD = 0x9100,
};

enum ppp_protocol {
	PPP_IPV4 = 0x0021,
	PPP_IPV6 = 0x0057,
};

/* Address families as BSD, macOS and Linux number them. */
enum family {
	FAMILY_IPV4 = 2,
	FAMILY_IPV6_LINUX = 10,
	FAMILY_IPV6_NETBSD = 24,
	FAMILY_IPV6_FREEBSD = 28,
	FAMILY_IPV6_DARWIN = 30,
};

#define PKTAP_BYTES 12		/* least; the header begins with its length, all little-endian */
#define PKTAP_LINK_TYPE 8
#define ETHERNET_BYTES 14
#define ETHERNET_TYPE 12	/* offset of the EtherType */
#define FAMILY_BYTES 4
#define SLL_BYTES 16
#define SLL_PROTOCOL 14
#define SLL2_BYTES 20
#define SLL2_PROTOCOL 0
#define VLAN_BYTES 4
#define VLAN_ID 0x0fff
#define VLAN_ID_BITS 12
#define VLAN_TYPE 2
#define MPLS_BYTES 4
#define MPLS_BOTTOM 2		/* byte whose lowest bit marks the bottom of the stack */
#define PPPOE_BYTES 6
#define PPP_ADDRESS 0xff03	/* address and control, where they are not left out (RFC 1662) */
#define PPP_ADDRESS_BYTES 2
#define CISCO_HDLC_BYTES 4
#define CISCO_HDLC_TYPE 2
#define CISCO_UNICAST 0x0f
#define CISCO_BROADCAST 0x8f
#define LENGTH_MAX 1500		/* of IEEE 802.3; greater numbers are EtherTypes */
#define SNAP_BYTES 8
#define SNAP_TYPE 6
#define SNAP_START 0xaaaa0300	/* RFC 1042: LLC's header and the first byte of its OUI, all 0 */
#define TAGS_MAX 8

static enum fate by_version(struct view frame, struct link_payload *ip)
{
	if (!view_has(frame, ip->offset + 1))
		return FATE_TOO_SHORT;
	ip->version = view_u8(frame, ip->offset) >> 4;
	return ip->version == 4 || ip->version == 6 ? FATE_PACKET : FATE_NOT_IP;
}

static enum fate by_family(struct view frame, struct link_payload *ip, bool either_order)
{
	uint32_t family = view_be32(frame, 0);

	if (!view_has(frame, FAMILY_BYTES))
		return FATE_TOO_SHORT;
	if (either_order && family > UINT16_MAX)
		family = view_le32(frame, 0);
	ip->offset = FAMILY_BYTES;
	switch (family) {
	case FAMILY_IPV4:
		ip->version = 4;
		return FATE_PACKET;
	case FAMILY_IPV6_LINUX:
	case FAMILY_IPV6_NETBSD:
	case FAMILY_IPV6_FREEBSD:
	case FAMILY_IPV6_DARWIN:
		ip->version = 6;
		return FATE_PACKET;
	default:
		return FATE_NOT_IP;
	}
}

/* Reads PPP's protocol number, which is one byte if that is odd (RFC 1661, section 6.5). */
static enum fate in_ppp(struct view frame, struct link_payload *ip)
{
	uint16_t protocol = view_u8(frame, ip->offset);
	size_t bytes = protocol & 1 ? 1 : 2;

	if (!view_has(frame, ip->offset + bytes))
		return FATE_TOO_SHORT;
	if (bytes == 2)
		protocol = view_be16(frame, ip->offset);
	ip->offset += bytes;
	switch (protocol) {
	case PPP_IPV4:
		ip->version = 4;
		return FATE_PACKET;
	case PPP_IPV6:
		ip->version = 6;
		return FATE_PACKET;
	default:
		return FATE_NOT_IP;
	}
}

static enum fate in_pppoe(struct view frame, struct link_payload *ip)
{
	ip->offset += PPPOE_BYTES;
	return in_ppp(frame, ip);
}

static enum fate after_address(struct view frame, struct link_payload *ip)
{
	ip->offset = view_be16(frame, 0) == PPP_ADDRESS ? PPP_ADDRESS_BYTES : 0;
	return in_ppp(frame, ip);
}

/* Skips labels to the bottom of the stack; behind it only IP's version tells the protocol. */
static enum fate in_mpls(struct view frame, struct link_payload *ip, unsigned int tags)
{
	bool bottom = false;

	for (; !bottom; ip->offset += MPLS_BYTES) {
		if (++tags > TAGS_MAX)
			return FATE_MALFORMED;
		if (!view_has(frame, ip->offset + MPLS_BYTES))
			return FATE_TOO_SHORT;
		bottom = view_u8(frame, ip->offset + MPLS_BOTTOM) & 1;
	}
	return by_version(frame, ip);
}

/* Tells whether LLC's header with SNAP follows, whose last two bytes are an EtherType. */
static bool is_snap(struct view frame, size_t offset)
{
	return view_has(frame, offset + SNAP_BYTES) &&
	       view_be32(frame, offset) == SNAP_START && !view_be16(frame, offset + 4);
}

/* Notes a tag's VLAN; a tag of VLAN 0 has a priority only (IEEE 802.1Q). */
static void note_vlan(struct link_payload *ip, uint16_t tag)
{
	if (tag & VLAN_ID)
		ip->vlans = (ip->vlans << VLAN_ID_BITS | (tag & VLAN_ID)) & VLANS_MASK;
}

static enum fate by_ethertype(struct view frame, uint16_t type, struct link_payload *ip)
{
	for (unsigned int tags = 0;;) {
		switch (type) {
		case ETHERTYPE_IPV4:
			ip->version = 4;
			return FATE_PACKET;
		case ETHERTYPE_IPV6:
			ip->version = 6;
			return FATE_PACKET;
		case ETHERTYPE_VLAN:
		case ETHERTYPE_QINQ:
		case ETHERTYPE_QINQ_OLD:
			if (++tags > TAGS_MAX)
				return FATE_MALFORMED;
			if (!view_has(frame, ip->offset + VLAN_BYTES))
				return FATE_TOO_SHORT;
			note_vlan(ip, view_be16(frame, ip->offset));
			type = view_be16(frame, ip->offset + VLAN_TYPE);
			ip->offset += VLAN_BYTES;
			break;
		case ETHERTYPE_MPLS:
		case ETHERTYPE_MPLS_UPSTREAM:
			return in_mpls(frame, ip, tags);
		case ETHERTYPE_PPPOE_SESSION:
			return in_pppoe(frame, ip);
		default:
			if (!type || type > LENGTH_MAX)
				return FATE_NOT_IP;
			if (++tags > TAGS_MAX)
				return FATE_MALFORMED;
			if (!is_snap(frame, ip->offset))
				return FATE_NOT_IP;
			type = view_be16(frame, ip->offset + SNAP_TYPE);
			ip->offset += SNAP_BYTES;
		}
	}
}

static enum fate after_header(struct view frame, size_t header_bytes, size_t type_offset,
			      struct link_payload *ip)
{
	if (!view_has(frame, header_bytes))
		return FATE_TOO_SHORT;
	ip->offset = header_bytes;
	return by_ethertype(frame, view_be16(frame, type_offset), ip);
}

/* Looks for IP behind LLC, as it stands behind an 802.3 length. */
static enum fate in_llc(struct view frame, enum fate found, struct link_payload *ip)
{
	return found == FATE_PACKET ? by_ethertype(frame, LENGTH_MAX, ip) : found;
}

/* Takes the header off that macOS writes before the frames of any interface (pktap). */
struct frame link_without_pktap(const struct frame *frame)
{
	struct frame inside = *frame;
	uint32_t bytes = view_le32(frame->captured, 0);
	uint32_t link_type = view_le32(frame->captured, PKTAP_LINK_TYPE);

	if (frame->link_type != LINK_PKTAP || bytes < PKTAP_BYTES ||
	    !view_has(frame->captured, bytes) || link_type == LINK_PKTAP)
		return inside;
	inside.captured = view_after(frame->captured, bytes);
	inside.bytes -= bytes;
	inside.link_type = link_type;
	return inside;
}

/* Returns FATE_PACKET if the frame has IP, and sets its offset, version and VLANs. */
enum fate link_find_ip(uint32_t link_type, struct view frame, struct link_payload *ip)
{
	ip->offset = 0;
	ip->vlans = 0;
	switch (link_type) {
	case LINK_ETHERNET:
		return after_header(frame, ETHERNET_BYTES, ETHERNET_TYPE, ip);
	case LINK_SLL:
		return after_header(frame, SLL_BYTES, SLL_PROTOCOL, ip);
	case LINK_SLL2:
		return after_header(frame, SLL2_BYTES, SLL2_PROTOCOL, ip);
	case LINK_WLAN:
		return in_llc(frame, wlan_find_llc(frame, &ip->offset), ip);
	case LINK_RADIOTAP:
		return in_llc(frame, radiotap_find_llc(frame, &ip->offset), ip);
	case LINK_PPP_HDLC:
		if (view_u8(frame, 0) != CISCO_UNICAST && view_u8(frame, 0) != CISCO_BROADCAST)
			return after_address(frame, ip);
		return after_header(frame, CISCO_HDLC_BYTES, CISCO_HDLC_TYPE, ip);
	case LINK_CISCO_HDLC:
		return after_header(frame, CISCO_HDLC_BYTES, CISCO_HDLC_TYPE, ip);
	case LINK_PPP:
		return after_address(frame, ip);
	case LINK_NULL:
		return by_family(frame, ip, true);
	case LINK_LOOP:
		return by_family(frame, ip, false);
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
		return by_version(frame, ip);
	case LINK_IPV4:
		ip->version = 4;
		return FATE_PACKET;
	case LINK_IPV6:
		ip->version = 6;
		return FATE_PACKET;
	case LINK_PKTAP:
		return view_has(frame, PKTAP_BYTES) ? FATE_MALFORMED : FATE_TOO_SHORT;
	default:
		return FATE_UNKNOWN_LINK_TYPE;
	}
}
