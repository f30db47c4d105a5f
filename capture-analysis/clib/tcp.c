// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a TCP header (RFC 9293) and the options that this package uses: MSS, window scale and time
 * stamps (RFC 7323), the first SACK block (RFC 2018), and marks for Multipath TCP (RFC 8684)
 * and AccECN's counters of bytes (RFC 9768).
 *
 * Options count as far as they were captured. An option of a known kind but of another length than
 * that kind's is skipped. Established connections mostly send time stamps alone, padded to twelve
 * bytes by two NOPs in front: this layout is read in one step.
 */
#include "layers.h"

enum option {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_MSS = 2,
	OPTION_WINDOW_SCALE = 3,
	OPTION_SACK = 5,
	OPTION_TIMESTAMPS = 8,
	OPTION_MPTCP = 30,
	OPTION_ACCECN_0 = 172,
	OPTION_ACCECN_1 = 174,
};

#define TCP_BYTES 20
#define TCP_WORD 4		/* unit of the data offset */
#define TCP_FLAGS 0x1ff

#define OPTION_BYTES 2		/* kind and length */
#define MSS_BYTES 4
#define WINDOW_SCALE_BYTES 3
#define WINDOW_SCALE_MAX 14	/* RFC 7323, 2.3 */
#define SACK_BLOCK_BYTES 8
#define TIMESTAMPS_BYTES 10
#define TIMESTAMPS_ALONE 12	/* bytes of options: NOP, NOP, time stamps */
#define TIMESTAMPS_ALONE_START \
	(OPTION_NOP << 24 | OPTION_NOP << 16 | OPTION_TIMESTAMPS << 8 | TIMESTAMPS_BYTES)

#define TLS_RECORD_BYTES 5
#define TLS_MAJOR 3
#define TLS_MINOR_MAX 4
/* Kinds of records of TLS, and of messages of its handshake. */
enum tls {
	TLS_CLIENT_HELLO = 1,
	TLS_SERVER_HELLO = 2,
	TLS_CHANGE_CIPHER = 20,
	TLS_HANDSHAKE = 22,
	TLS_APPLICATION = 23,
};

static void read_timestamps(struct view option, struct segment *segment)
{
	segment->ts_value = view_be32(option, 2);
	segment->ts_echo = view_be32(option, 6);
	segment->marks |= MARK_TIMESTAMPS;
}

/* Reads one option, which is whole. */
static void read_option(struct view option, struct segment *segment)
{
	size_t length = option.length;
	uint8_t scale;

	switch (view_u8(option, 0)) {
	case OPTION_MSS:
		if (length == MSS_BYTES)
			segment->mss = view_be16(option, 2);
		break;
	case OPTION_WINDOW_SCALE:
		scale = view_u8(option, 2);
		if (length == WINDOW_SCALE_BYTES)
			segment->window_scale = scale < WINDOW_SCALE_MAX ? scale : WINDOW_SCALE_MAX;
		break;
	case OPTION_SACK:
		if (length > OPTION_BYTES && (length - OPTION_BYTES) % SACK_BLOCK_BYTES == 0) {
			segment->sack_left = view_be32(option, 2);
			segment->sack_right = view_be32(option, 6);
			segment->marks |= MARK_SACK;
		}
		break;
	case OPTION_TIMESTAMPS:
		if (length == TIMESTAMPS_BYTES)
			read_timestamps(option, segment);
		break;
	case OPTION_MPTCP:
		segment->marks |= MARK_MPTCP;
		break;
	case OPTION_ACCECN_0:
	case OPTION_ACCECN_1:
		segment->marks |= MARK_ACCECN;
		break;
	}
}

/* Reads the options of a header, which claims `bytes` bytes of them. */
static void read_options(struct view options, size_t bytes, struct segment *segment)
{
	while (bytes) {
		uint8_t kind = view_u8(options, 0);
		size_t length = kind == OPTION_NOP ? 1 : view_u8(options, 1);

		if (kind == OPTION_END && options.length)
			return;
		if ((kind != OPTION_NOP && length < OPTION_BYTES) || !view_has(options, length)) {
			segment->marks |= MARK_OPTIONS_CUT;
			return;
		}
		read_option(view_first(options, length), segment);
		options = view_after(options, length);
		bytes -= length;
	}
}

/*
 * Tells whether the checksum is missing: 0, or the sum of the pseudo-header (RFC 9293) alone, which
 * the host leaves for its network card to complete. Sums modulo 2^16 - 1 do not depend on the order
 * of bytes, and the words that map an IPv4 address add 0 to them.
 */
static bool is_unfilled(struct view tcp, int64_t bytes, const struct segment *segment)
{
	uint64_t sum = (uint64_t)(uint16_t)((bytes & 0xff) << 8 | (bytes >> 8 & 0xff)) +
		       (PROTOCOL_TCP << 8);

	for (unsigned int end = SENDER; end <= RECEIVER; end++) {
		ca_u128 address = segment->ends[end].address;

		sum += (uint32_t)address + (uint64_t)(uint32_t)(address >> 32) +
		       (uint32_t)(address >> 64) + (uint32_t)(address >> 96);
	}
	return !view_le16(tcp, 16) || (sum + 0xffff - view_le16(tcp, 16)) % 0xffff == 0;
}

/* The mark of the record of TLS (RFC 8446, 5.1) with which a payload begins, or 0. */
static uint16_t tls_mark(struct view payload)
{
	if (view_be32(payload, 0) >> 16 == (TLS_CHANGE_CIPHER << 8 | TLS_MAJOR) &&
	    view_be16(payload, 3) == 1)
		payload = view_after(payload, TLS_RECORD_BYTES + 1);
	if (!view_has(payload, TLS_RECORD_BYTES + 1) || view_u8(payload, 1) != TLS_MAJOR ||
	    view_u8(payload, 2) > TLS_MINOR_MAX)
		return 0;
	if (view_u8(payload, 0) == TLS_APPLICATION)
		return MARK_ENCRYPTED;
	if (view_u8(payload, 0) != TLS_HANDSHAKE)
		return 0;
	switch (view_u8(payload, TLS_RECORD_BYTES)) {
	case TLS_CLIENT_HELLO:
		return MARK_CLIENT_HELLO;
	case TLS_SERVER_HELLO:
		return MARK_SERVER_HELLO;
	default:
		return 0;
	}
}

/* Returns FATE_PACKET if the header was captured; bytes: size of header and payload by IP. */
enum fate tcp_read(struct view tcp, int64_t bytes, struct segment *segment)
{
	uint16_t offset_and_flags = view_be16(tcp, 12);
	size_t header = (size_t)(offset_and_flags >> 12) * TCP_WORD;

	if (!view_has(tcp, TCP_BYTES))
		return FATE_TOO_SHORT;
	if (header < TCP_BYTES || bytes < (int64_t)header)
		return FATE_MALFORMED;
	segment->ends[SENDER].port = view_be16(tcp, 0);
	segment->ends[RECEIVER].port = view_be16(tcp, 2);
	segment->seq = view_be32(tcp, 4);
	segment->ack = view_be32(tcp, 8);
	segment->flags = offset_and_flags & TCP_FLAGS;
	segment->window = view_be16(tcp, 14);
	segment->payload_bytes = (uint32_t)(bytes - (int64_t)header);
	if (is_unfilled(tcp, bytes, segment))
		segment->marks |= MARK_UNFILLED;
	segment->ts_value = 0;
	segment->ts_echo = 0;
	segment->sack_left = 0;
	segment->sack_right = 0;
	segment->mss = 0;
	segment->window_scale = NO_SCALE;

	struct view options = view_after(view_first(tcp, header), TCP_BYTES);

	segment->marks |= tls_mark(view_first(view_after(tcp, header), segment->payload_bytes));

	header -= TCP_BYTES;
	if (header == TIMESTAMPS_ALONE && view_has(options, TIMESTAMPS_ALONE) &&
	    view_be32(options, 0) == TIMESTAMPS_ALONE_START)
		read_timestamps(view_after(options, 2), segment);
	else
		read_options(options, header, segment);
	if (segment->marks & MARK_OPTIONS_CUT && segment->window_scale == NO_SCALE)
		segment->window_scale = SCALE_CUT;
	return FATE_PACKET;
}
