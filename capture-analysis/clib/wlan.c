// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds LLC in a frame of IEEE 802.11: in data frames and QoS data frames, of all four kinds of
 * addresses. Encrypted frames, and those with several packets (A-MSDU), are only counted.
 *
 * Radiotap (radiotap.org) is a header in front. Its length matters, and one flag: some drivers pad
 * the header of 802.11 to a multiple of four bytes.
 */
#include "layers.h"

#define RADIOTAP_BYTES 8
#define RADIOTAP_LENGTH 2
#define RADIOTAP_PRESENT 4
#define PRESENT_BYTES 4
#define PRESENT_TIME 1u			/* 8 bytes, aligned to 8 */
#define PRESENT_FLAGS 2u
#define PRESENT_MORE (UINT32_C(1) << 31)
#define TIME_BYTES 8u
#define FLAG_PADDED 0x20

#define TYPE_BYTES 2
#define TYPE_MASK 0x0f			/* version and type */
#define TYPE_DATA 0x08
#define TYPE_NO_DATA 0x40
#define TYPE_QOS 0x80
#define BETWEEN_STATIONS_MASK 0x03	/* to and from the distribution system: four addresses */
#define PROTECTED 0x40
#define HAS_HT_CONTROL 0x80		/* in QoS data frames */
#define HEADER_BYTES 24
#define ADDRESS_BYTES 6
#define QOS_BYTES 2
#define QOS_AGGREGATE 0x80
#define HT_CONTROL_BYTES 4
#define FRAGMENT 22			/* byte whose lower half is the fragment's number */
#define FRAGMENT_MASK 0x0f

/* Finds LLC behind the header at *offset, which may be padded. */
static enum fate pass_header(struct view frame, bool padded, size_t *offset)
{
	struct view header = view_after(frame, *offset);
	uint8_t type = view_u8(header, 0), flags = view_u8(header, 1);
	size_t bytes = HEADER_BYTES, qos_at;

	if (!view_has(header, TYPE_BYTES))
		return FATE_TOO_SHORT;
	if ((type & TYPE_MASK) != TYPE_DATA || type & TYPE_NO_DATA)
		return FATE_NOT_IP;
	if ((flags & BETWEEN_STATIONS_MASK) == BETWEEN_STATIONS_MASK)
		bytes += ADDRESS_BYTES;
	qos_at = bytes;
	if (type & TYPE_QOS) {
		bytes += QOS_BYTES;
		bytes += flags & HAS_HT_CONTROL ? HT_CONTROL_BYTES : 0;
	}
	if (!view_has(header, bytes))
		return FATE_TOO_SHORT;
	if (flags & PROTECTED)
		return FATE_ENCRYPTED;
	if (type & TYPE_QOS && view_u8(header, qos_at) & QOS_AGGREGATE)
		return FATE_AGGREGATED;
	if (view_u8(header, FRAGMENT) & FRAGMENT_MASK)
		return FATE_LATER_FRAGMENT;
	if (padded)
		bytes = (bytes + 3) / 4 * 4;
	*offset += bytes;
	return FATE_PACKET;
}

/* Tells whether radiotap's flags, behind all words of its bitmap and a time, say "padded". */
static bool is_padded(struct view radiotap)
{
	uint32_t present = view_le32(radiotap, RADIOTAP_PRESENT);
	size_t at = RADIOTAP_PRESENT;

	while (view_le32(radiotap, at) & PRESENT_MORE)
		at += PRESENT_BYTES;
	at += PRESENT_BYTES;
	if (present & PRESENT_TIME)
		at = (at + TIME_BYTES - 1) / TIME_BYTES * TIME_BYTES + TIME_BYTES;
	return present & PRESENT_FLAGS && view_u8(radiotap, at) & FLAG_PADDED;
}

/* Returns FATE_PACKET and the offset of LLC in a frame of 802.11. */
enum fate wlan_find_llc(struct view frame, size_t *offset)
{
	*offset = 0;
	return pass_header(frame, false, offset);
}

/* The same behind radiotap. */
enum fate radiotap_find_llc(struct view frame, size_t *offset)
{
	*offset = view_le16(frame, RADIOTAP_LENGTH);
	if (!view_has(frame, RADIOTAP_BYTES) || !view_has(frame, *offset))
		return FATE_TOO_SHORT;
	if (view_u8(frame, 0) || *offset < RADIOTAP_BYTES)
		return FATE_MALFORMED;
	return pass_header(frame, is_padded(view_first(frame, *offset)), offset);
}
