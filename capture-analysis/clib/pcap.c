// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classic capture files: a header, then records of a small header and a frame (draft-ietf-opsawg-
 * pcap). There are three magic numbers, each in either byte order:
 *
 *	a1b2c3d4	microseconds
 *	a1b23c4d	nanoseconds
 *	a1b2cd34	microseconds, and records with eight more bytes of header (Kuznetzov's)
 */
#include "pcap.h"

#define MAGIC_MICROSECONDS 0xa1b2c3d4
#define MAGIC_NANOSECONDS 0xa1b23c4d
#define MAGIC_MODIFIED 0xa1b2cd34

#define LINK_TYPE_OFFSET 20
#define LINK_TYPE_BITS 0x03ffffff	/* the bits above: length of the frame check sequence */

#define RECORD_HEADER_BYTES 16
#define MODIFIED_HEADER_BYTES 24
#define NS_PER_SECOND INT64_C(1000000000)
#define NS_PER_MICROSECOND 1000

/* No frame is larger: a record that claims more is damage. Whole records are 64 MiB at most. */
#define CAPTURED_BYTES_MAX ((UINT32_C(64) << 20) - MODIFIED_HEADER_BYTES)

/* Reads a file's header; false if it is not that of a classic capture. */
bool pcap_open(struct pcap *pcap, struct view header)
{
	uint32_t magic = view_be32(header, 0);

	pcap->big_endian = magic >> 16 == MAGIC_MICROSECONDS >> 16;
	if (!pcap->big_endian)
		magic = view_le32(header, 0);
	pcap->link_type = view_u32(header, LINK_TYPE_OFFSET, pcap->big_endian) & LINK_TYPE_BITS;
	pcap->record_header_bytes = magic == MAGIC_MODIFIED ? MODIFIED_HEADER_BYTES :
							      RECORD_HEADER_BYTES;
	pcap->ns_per_unit = magic == MAGIC_NANOSECONDS ? 1 : NS_PER_MICROSECOND;
	return magic == MAGIC_MICROSECONDS || magic == MAGIC_NANOSECONDS ||
	       magic == MAGIC_MODIFIED;
}

/* The format in words. */
const char *pcap_format(const struct pcap *pcap)
{
	static const char *const names[2][3] = {
		{ "pcap, little-endian, us", "pcap, little-endian, ns",
		  "pcap modified, little-endian, us" },
		{ "pcap, big-endian, us", "pcap, big-endian, ns", "pcap modified, big-endian, us" },
	};

	if (pcap->record_header_bytes == MODIFIED_HEADER_BYTES)
		return names[pcap->big_endian][2];
	return names[pcap->big_endian][pcap->ns_per_unit == 1];
}

/* Takes whole records while there are rows for them; offset: place of data in the file. */
void pcap_parse(const struct pcap *pcap, struct view data, uint64_t offset, struct rows *rows)
{
	bool big = pcap->big_endian;
	size_t at = 0;

	while (rows_room(rows, at) && view_has(data, RECORD_HEADER_BYTES) &&
	       view_has(data, pcap->record_header_bytes)) {
		uint32_t captured = view_u32(data, 8, big), original = view_u32(data, 12, big);
		int64_t fraction_ns = (int64_t)view_u32(data, 4, big) * pcap->ns_per_unit;
		size_t record = (size_t)pcap->record_header_bytes + captured;

		if (captured > CAPTURED_BYTES_MAX) {
			rows_say(rows, "record %" PRIu64 " at byte %" PRIu64 " claims %" PRIu32
				 " bytes", rows_frame_number(rows), offset + at, captured);
			break;
		}
		if (!view_has(data, record))
			break;

		struct frame frame = {
			.captured = view_after(view_first(data, record), pcap->record_header_bytes),
			.time_ns = view_u32(data, 0, big) * NS_PER_SECOND + fraction_ns,
			.fraction_beyond = fraction_ns >= NS_PER_SECOND,
			.bytes = original > captured ? original : captured,
			.link_type = pcap->link_type,
		};

		rows_add(rows, &frame, at);
		data = view_after(data, record);
		at += record;
	}
	rows_settle(rows, at);
}
