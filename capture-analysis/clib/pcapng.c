// SPDX-License-Identifier: GPL-2.0-only
/*
 * pcapng files (draft-ietf-opsawg-pcapng): blocks, each between two copies of its length.
 *
 *	section header		byte order from here on; forgets the interfaces
 *	interface description	link type, resolution and offset of the clock
 *	enhanced packet		frame with interface and time
 *	packet (obsolete)	frame with a short interface number and time
 *	simple packet		frame without a time: counted only
 *
 * Other blocks are skipped by their length. Times are integers throughout: ticks of 10^-n or
 * 2^-n seconds for any n become ns, truncated.
 */
#include <stdlib.h>

#include "pcapng.h"

enum block {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 2,
	BLOCK_SIMPLE_PACKET = 3,
	BLOCK_ENHANCED_PACKET = 6,
	BLOCK_SECTION = PCAPNG_MAGIC,
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4d

/* Least lengths of blocks, both copies of the length included. */
#define BLOCK_BYTES 12
#define SECTION_BYTES 28
#define INTERFACE_BYTES 20
#define SIMPLE_PACKET_BYTES 16
#define PACKET_BYTES 32

/* No block is larger: a length above it is damage. */
#define BLOCK_BYTES_MAX (UINT32_C(64) << 20)
#define LENGTH_BYTES 4		/* the second copy of the length */
#define PADDING 4		/* sizes of blocks and options are multiples of this */

#define PACKET_FRAME 28		/* offset of the frame */
#define INTERFACE_OPTIONS 16

#define OPTION_HEADER_BYTES 4
#define OPTION_END 0
#define OPTION_RESOLUTION 9
#define OPTION_OFFSET 14
#define RESOLUTION_BINARY 0x80	/* powers of two instead of ten; the exponent is in the bits below */

#define NS_PER_SECOND INT64_C(1000000000)
#define NS_DECIMALS 9
#define TICKS_DECIMALS 19	/* 10^19 is the largest power of ten in 64 bits */
#define DEFAULT_RESOLUTION 6	/* microseconds */

/* Limits the descriptions of interfaces to 32 MiB. */
#ifndef INTERFACES_MAX
#define INTERFACES_MAX (UINT32_C(1) << 20)
#endif
#define INTERFACES_FIRST 8

static uint64_t power_of_ten(unsigned int exponent)
{
	uint64_t power = 1;

	while (exponent--)
		power *= 10;
	return power;
}

static void set_resolution(struct interface *interface, uint8_t resolution)
{
	unsigned int exponent = resolution & (RESOLUTION_BINARY - 1u);

	interface->multiplier = 1;
	interface->divisor = 1;
	interface->shift = 0;
	if (resolution & RESOLUTION_BINARY) {
		interface->multiplier = NS_PER_SECOND;
		interface->shift = (uint8_t)exponent;
	} else if (exponent <= NS_DECIMALS) {
		interface->multiplier = power_of_ten(NS_DECIMALS - exponent);
	} else if (exponent <= NS_DECIMALS + TICKS_DECIMALS) {
		interface->divisor = power_of_ten(exponent - NS_DECIMALS);
	} else {
		interface->multiplier = 0;	/* 2^64 such ticks are less than a nanosecond */
	}
}

/* Converts ticks to ns since the epoch; false if the time does not fit. */
static bool time_of(const struct interface *interface, uint64_t ticks, int64_t *time_ns)
{
	ca_u128 since = (ca_u128)ticks * interface->multiplier >> interface->shift;

	if (interface->divisor > 1)
		since = (uint64_t)since / interface->divisor;

	ca_s128 ns = (ca_s128)since + (ca_s128)interface->offset_s * NS_PER_SECOND;

	*time_ns = (int64_t)ns;
	return ns >= INT64_MIN && ns <= INT64_MAX;
}

static void read_interface_options(struct view options, bool big, struct interface *interface)
{
	while (view_has(options, OPTION_HEADER_BYTES)) {
		uint16_t code = view_u16(options, 0, big), length = view_u16(options, 2, big);
		struct view value = view_after(options, OPTION_HEADER_BYTES);

		if (code == OPTION_END || !view_has(value, length))
			return;
		if (code == OPTION_RESOLUTION && length == sizeof(uint8_t))
			set_resolution(interface, view_u8(value, 0));
		if (code == OPTION_OFFSET && length == sizeof(int64_t))
			interface->offset_s = (int64_t)view_u64(value, 0, big);
		options = view_after(value, (length + PADDING - 1u) / PADDING * PADDING);
	}
}

/* Records an interface; false if there are too many, or without memory. */
static bool add_interface(struct pcapng *pcapng, struct view block)
{
	bool big = pcapng->big_endian;
	uint16_t link_type = view_u16(block, 8, big);
	struct interface *interface;

	if (pcapng->count == pcapng->capacity) {
		uint32_t capacity = pcapng->capacity ? 2 * pcapng->capacity : INTERFACES_FIRST;

		if (capacity > INTERFACES_MAX)
			return false;
		interface = realloc(pcapng->interfaces, capacity * sizeof(*interface));
		if (!interface)
			return false;
		pcapng->interfaces = interface;
		pcapng->capacity = capacity;
	}
	interface = &pcapng->interfaces[pcapng->count++];
	*interface = (struct interface){ .link_type = link_type };
	set_resolution(interface, DEFAULT_RESOLUTION);
	read_interface_options(view_after(block, INTERFACE_OPTIONS), big, interface);
	pcapng->link_types[link_type / LINK_TYPES_IN_WORD] |=
		UINT64_C(1) << link_type % LINK_TYPES_IN_WORD;
	return true;
}

/* Adds the frame of a packet block that starts at byte start of this call. */
static void take_frame(const struct pcapng *pcapng, struct view block, uint32_t number, size_t start,
		       struct rows *rows)
{
	bool big = pcapng->big_endian;
	uint64_t ticks = (uint64_t)view_u32(block, 12, big) << 32 | view_u32(block, 16, big);
	uint32_t captured = view_u32(block, 20, big), original = view_u32(block, 24, big);
	struct view kept = view_after(block, PACKET_FRAME);
	const struct interface *interface;
	struct frame frame;

	if (number >= pcapng->count || !view_has(kept, captured)) {
		rows_add_unread(rows, FATE_MALFORMED, start);
		return;
	}
	interface = &pcapng->interfaces[number];
	if (!time_of(interface, ticks, &frame.time_ns)) {
		rows_add_unread(rows, FATE_BEYOND_2262, start);
		return;
	}
	frame.captured = view_first(kept, captured);
	frame.bytes = original > captured ? original : captured;
	frame.link_type = interface->link_type;
	frame.fraction_beyond = false;
	frame.interface = (uint16_t)(number < UINT16_MAX ? number : UINT16_MAX);
	rows_add(rows, &frame, start);
}

/* Takes a packet block; false if the block is of another type. */
static bool take_packet(const struct pcapng *pcapng, struct view block, uint32_t type, size_t start,
			struct rows *rows)
{
	bool big = pcapng->big_endian;

	switch (type) {
	case BLOCK_ENHANCED_PACKET:
		take_frame(pcapng, block, view_u32(block, 8, big), start, rows);
		return true;
	case BLOCK_PACKET:
		take_frame(pcapng, block, view_u16(block, 8, big), start, rows);
		return true;
	case BLOCK_SIMPLE_PACKET:	/* always of interface 0 */
		rows_add_unread(rows, pcapng->count ? FATE_NO_TIMESTAMP : FATE_MALFORMED, start);
		return true;
	default:
		return false;
	}
}

/* Takes a block that is no packet, without its second length; false if reading must end. */
static bool take_block(struct pcapng *pcapng, struct view block, uint32_t type, struct rows *rows)
{
	switch (type) {
	case BLOCK_SECTION:
		pcapng->count = 0;
		return true;
	case BLOCK_INTERFACE:
		if (add_interface(pcapng, block))
			return true;
		rows_say(rows, "more than %" PRIu32 " interfaces in a section", pcapng->count);
		return false;
	default:
		rows->counts.other_blocks++;
		return true;
	}
}

static uint32_t least_bytes(uint32_t type)
{
	switch (type) {
	case BLOCK_SECTION:
		return SECTION_BYTES;
	case BLOCK_INTERFACE:
		return INTERFACE_BYTES;
	case BLOCK_SIMPLE_PACKET:
		return SIMPLE_PACKET_BYTES;
	case BLOCK_PACKET:
	case BLOCK_ENHANCED_PACKET:
		return PACKET_BYTES;
	default:
		return BLOCK_BYTES;
	}
}

/* Reads a section's byte order; false if it has none. */
static bool read_byte_order(struct view section, bool *big_endian)
{
	*big_endian = view_be32(section, 8) == BYTE_ORDER_MAGIC;
	return *big_endian || view_le32(section, 8) == BYTE_ORDER_MAGIC;
}

/* Reads the start of a file; false if it is not a pcapng file. */
bool pcapng_open(struct pcapng *pcapng, struct view start)
{
	bool opened = view_be32(start, 0) == PCAPNG_MAGIC &&
		      read_byte_order(start, &pcapng->big_endian);

	pcapng->began_big_endian = pcapng->big_endian;
	return opened;
}

void pcapng_close(struct pcapng *pcapng)
{
	free(pcapng->interfaces);
}

/* The length of the block at the front of data; 0 if it is not whole, or with rows->trouble. */
static uint32_t block_length(struct pcapng *pcapng, struct view data, uint32_t type, uint64_t offset,
			     struct rows *rows)
{
	uint32_t length, copy;

	if (type == BLOCK_SECTION && !read_byte_order(data, &pcapng->big_endian)) {
		rows_say(rows, "section at byte %" PRIu64 " has no byte order: %08" PRIx32, offset,
			 view_be32(data, 8));
		return 0;
	}
	length = view_u32(data, 4, pcapng->big_endian);
	if (length < least_bytes(type) || length % PADDING || length > BLOCK_BYTES_MAX) {
		rows_say(rows, "block at byte %" PRIu64 " claims %" PRIu32 " bytes", offset, length);
		return 0;
	}
	if (!view_has(data, length))
		return 0;
	copy = view_u32(data, length - LENGTH_BYTES, pcapng->big_endian);
	if (copy != length) {
		rows_say(rows, "block at byte %" PRIu64 " claims %" PRIu32 " bytes before and %"
			 PRIu32 " behind", offset, length, copy);
		return 0;
	}
	return length;
}

/* Takes whole blocks while there are rows for them; offset: place of data in the file. */
void pcapng_parse(struct pcapng *pcapng, struct view data, uint64_t offset, struct rows *rows)
{
	size_t at = 0;

	while (rows_room(rows, at) && view_has(data, BLOCK_BYTES)) {
		uint32_t type = view_u32(data, 0, pcapng->big_endian);
		uint32_t length = block_length(pcapng, data, type, offset + at, rows);
		struct view block = view_first(data, length - LENGTH_BYTES);

		if (!length)
			break;
		if (!take_packet(pcapng, block, type, at, rows)) {
			/* The block's effect comes after the frames that wait. */
			rows_settle(rows, at);
			if (rows->overflow || !take_block(pcapng, block, type, rows))
				break;
		}
		data = view_after(data, length);
		at += length;
	}
	rows_settle(rows, at);
}
