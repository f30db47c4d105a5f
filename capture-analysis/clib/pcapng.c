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
 * Other blocks are skipped by their length.
 */
#include <stdlib.h>

#include "pcapng.h"

enum block {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 2,
	BLOCK_SIMPLE_PACKET = 3,
	BLOCK_NAMES = 4,
	BLOCK_STATISTICS = 5,
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
#define LIKELY_BYTES_MAX (UINT32_C(1) << 20)	/* behind damage, where a length proves little */
#define LENGTH_BYTES 4		/* the second copy of the length */
#define PADDING 4		/* sizes of blocks are multiples of this */

#define PACKET_FRAME 28		/* offset of the frame */

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

	if (number >= pcapng->interfaces.count || !view_has(kept, captured)) {
		rows_add_unread(rows, view_has(kept, captured) ? FATE_NO_INTERFACE : FATE_MALFORMED,
				start);
		return;
	}
	interface = &pcapng->interfaces.rows[number];
	if (!interface_time(interface, ticks, &frame.time_ns)) {
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
		rows_add_unread(rows, pcapng->interfaces.count ? FATE_NO_TIMESTAMP : FATE_NO_INTERFACE,
				start);
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
		pcapng->interfaces.count = 0;
		return true;
	case BLOCK_INTERFACE:
		if (interfaces_add(&pcapng->interfaces, block, pcapng->big_endian))
			return true;
		rows_say(rows, "more than %" PRIu32 " interfaces in a section", pcapng->interfaces.count);
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
	bool big = view_be32(section, 8) == BYTE_ORDER_MAGIC;

	if (!big && view_le32(section, 8) != BYTE_ORDER_MAGIC)
		return false;
	*big_endian = big;
	return true;
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
	free(pcapng->interfaces.rows);
}

/* The length of the block at the front of data; 0 if it is not whole, or with rows->trouble. */
static uint32_t block_length(struct pcapng *pcapng, struct view data, uint32_t type, uint64_t offset,
			     struct rows *rows)
{
	uint32_t length, copy;

	if (type == BLOCK_SECTION && !read_byte_order(data, &pcapng->big_endian)) {
		rows_damaged(rows, "section at byte %" PRIu64 " has no byte order: %08" PRIx32, offset,
			     view_be32(data, 8));
		return 0;
	}
	length = view_u32(data, 4, pcapng->big_endian);
	if (length < least_bytes(type) || length % PADDING || length > BLOCK_BYTES_MAX) {
		rows_damaged(rows, "block at byte %" PRIu64 " claims %" PRIu32 " bytes", offset, length);
		return 0;
	}
	if (!view_has(data, length))
		return 0;
	copy = view_u32(data, length - LENGTH_BYTES, pcapng->big_endian);
	if (copy != length) {
		rows_damaged(rows, "block at byte %" PRIu64 " claims %" PRIu32 " bytes before and %"
			     PRIu32 " behind", offset, length, copy);
		return 0;
	}
	return length;
}

/* Tells whether a type of block is looked for behind damage: the types that other readers know. */
static bool is_known(uint32_t type)
{
	return type == BLOCK_SECTION ||
	       (type >= BLOCK_INTERFACE && type <= BLOCK_ENHANCED_PACKET);
}

/*
 * Tells whether a block is likely to start here: of a known type, between two copies of a length.
 * last: the file ends with these bytes.
 */
enum likely pcapng_likely(const struct pcapng *pcapng, struct view data, bool last)
{
	bool big = pcapng->big_endian;
	uint32_t type = view_u32(data, 0, big), length;

	if (!view_has(data, BLOCK_BYTES))
		return last ? UNLIKELY : UNDECIDED;
	if (!is_known(type) || (type == BLOCK_SECTION && !read_byte_order(data, &big)))
		return UNLIKELY;
	length = view_u32(data, 4, big);
	if (length < least_bytes(type) || length % PADDING || length > LIKELY_BYTES_MAX)
		return UNLIKELY;
	if (!view_has(data, length))
		return last ? UNLIKELY : UNDECIDED;
	return view_u32(data, length - LENGTH_BYTES, big) == length ? LIKELY : UNLIKELY;
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
			/* The frames that wait come before the block's effect. */
			rows_settle(rows, at);
			if (rows->overflow || !take_block(pcapng, block, type, rows))
				break;
		}
		data = view_after(data, length);
		at += length;
	}
	rows_settle(rows, at);
}
