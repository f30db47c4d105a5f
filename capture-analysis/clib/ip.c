// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds TCP in IP, or whatever it carries: addresses, length, fragments, and IPv6's chain of extension headers (RFC 8200,
 * section 4), which may have EXTENSIONS_MAX headers.
 *
 * An IP length of 0 comes from offload (a host hands 64 KiB and more to its interface) and from
 * jumbograms: the packet is then the rest of the frame, and is marked. A packet longer than its
 * frame is marked, too: a tool that cut frames changed their sizes.
 */
#include "layers.h"

enum extension {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44,
	PROTOCOL_AUTHENTICATION = 51,
	PROTOCOL_DESTINATION = 60,
	PROTOCOL_MOBILITY = 135,
	PROTOCOL_HIP = 139,
	PROTOCOL_SHIM6 = 140,
};

#define IPV4_BYTES 20
#define IPV4_WORD 4		/* unit of the header length */
#define IPV4_MORE_FRAGMENTS 0x2000
#define IPV4_FRAGMENT_OFFSET 0x1fff

#define IPV6_BYTES 40
#define IPV6_EXTENSION_BYTES 8	/* least size of an extension, and the unit of its length */
#define IPV6_AUTHENTICATION_WORD 4
#define IPV6_MORE_FRAGMENTS 0x0001
#define IPV6_FRAGMENT_OFFSET 0xfff8
#define EXTENSIONS_MAX 8

/* An IPv4 address as ::ffff:a.b.c.d, in memory order. */
static ca_u128 mapped(uint32_t address_in_memory)
{
	return (ca_u128)address_in_memory << 96 | (ca_u128)0xffff << 80;
}

static ca_u128 ipv6_address(struct view ip, size_t offset)
{
	return (ca_u128)view_le64(ip, offset + 8) << 64 | view_le64(ip, offset);
}

/* The marks of the two bits of ECN (RFC 3168) that end a traffic class. */
static uint16_t ecn(uint8_t traffic_class)
{
	return (uint16_t)((traffic_class & 3) * MARK_ECN_1);
}

/* Hosts send packets with these TTLs, and routers lower them. */
static uint16_t first_ttl(uint8_t ttl)
{
	return ttl == 64 || ttl == 128 || ttl == 255 ? MARK_FIRST_TTL : 0;
}

static enum fate from_ipv4(struct view ip, int64_t room, bool every_protocol,
			   struct segment *segment, struct transport *found)
{
	uint16_t total, fragment;
	uint8_t first;

	if (!view_has(ip, IPV4_BYTES))
		return FATE_TOO_SHORT;
	first = view_u8(ip, 0);
	found->offset = (size_t)(first & 0xf) * IPV4_WORD;
	if (first >> 4 != 4 || found->offset < IPV4_BYTES)
		return FATE_MALFORMED;
	segment->protocol = view_u8(ip, 9);
	fragment = view_be16(ip, 6);
	found->later = fragment & IPV4_FRAGMENT_OFFSET;
	if (segment->protocol != PROTOCOL_TCP && segment->protocol != PROTOCOL_UDP && !every_protocol)
		return FATE_NOT_TCP;
	segment->marks |= ecn(view_u8(ip, 1)) | first_ttl(view_u8(ip, 8));
	if (found->later && !every_protocol)
		return segment->protocol == PROTOCOL_TCP ? FATE_LATER_FRAGMENT : FATE_NOT_TCP;
	if (fragment & IPV4_MORE_FRAGMENTS && !found->later)
		segment->marks |= MARK_FIRST_FRAGMENT;
	total = view_be16(ip, 2);
	if (!total)
		segment->marks |= MARK_LENGTH_GUESSED;
	else if (total > room)
		segment->marks |= MARK_LENGTH_BEYOND;
	found->bytes = (total ? total : room) - (int64_t)found->offset;
	segment->ip_id = view_be16(ip, 4);
	segment->ends[SENDER].address = mapped(view_le32(ip, 12));
	segment->ends[RECEIVER].address = mapped(view_le32(ip, 16));
	return segment->protocol == PROTOCOL_TCP || every_protocol ? FATE_PACKET : FATE_NOT_TCP;
}

/* Bytes of an extension header of a kind; 0 for a kind that is not an extension. */
static size_t extension_bytes(uint8_t kind, uint8_t length)
{
	switch (kind) {
	case PROTOCOL_FRAGMENT:
		return IPV6_EXTENSION_BYTES;
	case PROTOCOL_AUTHENTICATION:
		return (length + 2u) * IPV6_AUTHENTICATION_WORD;
	case PROTOCOL_HOP_BY_HOP:
	case PROTOCOL_ROUTING:
	case PROTOCOL_DESTINATION:
	case PROTOCOL_MOBILITY:
	case PROTOCOL_HIP:
	case PROTOCOL_SHIM6:
		return (length + 1u) * IPV6_EXTENSION_BYTES;
	default:
		return 0;
	}
}

/* Skips the extension headers: moves found->offset from the first of them to what is carried. */
static enum fate pass_extensions(struct view ip, bool every_protocol, struct segment *segment,
				 struct transport *found)
{
	uint8_t kind = segment->protocol;

	for (unsigned int passed = 0; kind != PROTOCOL_TCP && !found->later; passed++) {
		size_t bytes = extension_bytes(kind, view_u8(ip, found->offset + 1));

		if (!bytes)
			break;
		if (passed == EXTENSIONS_MAX)
			return FATE_MALFORMED;
		if (!view_has(ip, found->offset + IPV6_EXTENSION_BYTES))
			return FATE_TOO_SHORT;
		if (kind == PROTOCOL_FRAGMENT) {
			uint16_t fragment = view_be16(ip, found->offset + 2);

			found->later = fragment & IPV6_FRAGMENT_OFFSET;
			if (found->later && !every_protocol)
				return FATE_LATER_FRAGMENT;
			if (fragment & IPV6_MORE_FRAGMENTS && !found->later)
				segment->marks |= MARK_FIRST_FRAGMENT;
		}
		kind = view_u8(ip, found->offset);
		found->offset += bytes;
	}
	segment->protocol = kind;
	return kind == PROTOCOL_TCP || every_protocol ? FATE_PACKET : FATE_NOT_TCP;
}

static enum fate from_ipv6(struct view ip, int64_t room, bool every_protocol,
			   struct segment *segment, struct transport *found)
{
	uint16_t payload;

	if (!view_has(ip, IPV6_BYTES))
		return FATE_TOO_SHORT;
	if (view_u8(ip, 0) >> 4 != 6)
		return FATE_MALFORMED;
	segment->marks |= ecn(view_u8(ip, 1) >> 4) | first_ttl(view_u8(ip, 7));
	payload = view_be16(ip, 4);
	if (!payload)
		segment->marks |= MARK_LENGTH_GUESSED;
	else if (payload + IPV6_BYTES > room)
		segment->marks |= MARK_LENGTH_BEYOND;
	segment->ends[SENDER].address = ipv6_address(ip, 8);
	segment->ends[RECEIVER].address = ipv6_address(ip, 24);
	segment->ip_id = 0;
	found->offset = IPV6_BYTES;
	found->later = false;
	segment->protocol = view_u8(ip, 6);
	enum fate fate = pass_extensions(ip, every_protocol, segment, found);

	found->bytes = (payload ? payload + IPV6_BYTES : room) - (int64_t)found->offset;
	return fate;
}

/*
 * Returns FATE_PACKET for TCP with at least the first fragment, or for every protocol and fragment.
 * room: the bytes of the frame on the wire that are left for IP.
 */
enum fate ip_find_transport(struct view ip, uint8_t version, int64_t room, bool every_protocol,
			    struct segment *segment, struct transport *found)
{
	segment->version = version;
	segment->marks = 0;
	return version == 4 ? from_ipv4(ip, room, every_protocol, segment, found) :
			      from_ipv6(ip, room, every_protocol, segment, found);
}
