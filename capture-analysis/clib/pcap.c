// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classic capture files: a header, then records of a small header and a frame (draft-ietf-opsawg-
 * pcap). There are three magic numbers, each in either byte order:
 *
 *	a1b2c3d4	microseconds
 *	a1b23c4d	nanoseconds
 *	a1b2cd34	microseconds, and records with eight more bytes of header (Kuznetzov's)
 */
#include <stdlib.h>

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

/* libpcap writes and reads no longer frame (MAXIMUM_SNAPLEN): a record that claims more is damage. */
#define CAPTURED_BYTES_MAX UINT32_C(262144)

/*
 * Behind damage, records are likely to start where this many in a row have possible lengths and
 * fractions, and times within a day of the record before: one in 2^120 places in random bytes.
 */
#define LIKELY_RECORDS 3
#define LIKELY_APART_S 86400

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

/* Tells whether a record's header is zeros, as where a disk lost a block: no frame is without bytes. */
static bool is_zero(struct view header)
{
	return !view_le64(header, 0) && !view_le64(header, 8);
}

/* Tells whether a record's header is possible, at a time after another record's. */
static bool is_possible(const struct pcap *pcap, struct view header, const int64_t *before_s)
{
	bool big = pcap->big_endian;
	uint32_t seconds = view_u32(header, 0, big), fraction = view_u32(header, 4, big);
	uint32_t captured = view_u32(header, 8, big), original = view_u32(header, 12, big);

	if (before_s && llabs(seconds - *before_s) > LIKELY_APART_S)
		return false;
	return fraction < NS_PER_SECOND / pcap->ns_per_unit && captured && captured <= original &&
	       original <= CAPTURED_BYTES_MAX;
}

/*
 * Tells whether records are likely to start here. last_ns: time of the packet before, INT64_MIN if
 * there is none; last: the file ends with these bytes.
 */
enum likely pcap_likely(const struct pcap *pcap, struct view data, int64_t last_ns, bool last)
{
	int64_t seconds = last_ns / NS_PER_SECOND;
	const int64_t *before_s = last_ns == INT64_MIN ? NULL : &seconds;

	for (unsigned int passed = 0; passed < LIKELY_RECORDS; passed++) {
		size_t record = (size_t)pcap->record_header_bytes + view_u32(data, 8, pcap->big_endian);
		bool header = view_has(data, pcap->record_header_bytes);

		if (header && !is_possible(pcap, data, before_s))
			return UNLIKELY;
		/* The file's last record may be cut off, if there is a whole one before it. */
		if (!header || !view_has(data, record))
			return !last ? UNDECIDED : passed ? LIKELY : UNLIKELY;
		seconds = view_u32(data, 0, pcap->big_endian);
		before_s = &seconds;
		data = view_after(data, record);
	}
	return LIKELY;
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

		if (captured > CAPTURED_BYTES_MAX || (!captured && is_zero(data))) {
			rows_damaged(rows, "record %" PRIu64 " at byte %" PRIu64 " claims %" PRIu32
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
