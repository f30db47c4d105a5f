/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A captured frame on its way from the file to a row of the columns, and its fate. Each layer
 * either finds the next one or says why the frame is no packet.
 */
#ifndef CAPTURE_ANALYSIS_FRAME_H
#define CAPTURE_ANALYSIS_FRAME_H

#include "bytes.h"

/* The fields of Counts in parsing.py, without the first, in order. */
enum fate {
	FATE_PACKET,
	FATE_NOT_IP,
	FATE_NOT_TCP,
	FATE_LATER_FRAGMENT,
	FATE_TOO_SHORT,		/* the capture kept too little of the frame */
	FATE_MALFORMED,		/* the frame's headers contradict each other */
	FATE_UNKNOWN_LINK_TYPE,
	FATE_NO_TIMESTAMP,
	FATE_BEYOND_2262,	/* a time that 64 bits of ns cannot hold */
	FATE_ENCRYPTED,		/* on a wireless link */
	FATE_AGGREGATED,	/* several packets in a frame of a wireless link */
	FATE_NO_INTERFACE,	/* no block before the frame describes its interface */
	FATES,
};

struct frame {
	struct view captured;
	int64_t time_ns;	/* since the epoch */
	uint32_t bytes;		/* size on the wire; at least the bytes captured */
	uint32_t link_type;
	bool fraction_beyond;	/* the time has a fraction of a second or more */
	uint16_t interface;	/* number within a pcapng section, 0 in a classic file */
};

/* Values of Mark in columns.py. */
enum mark {
	MARK_TIMESTAMPS = 1,
	MARK_SACK = 2,
	MARK_MPTCP = 4,
	MARK_OPTIONS_CUT = 8,
	MARK_LENGTH_GUESSED = 16,
	MARK_FIRST_FRAGMENT = 32,
	MARK_LENGTH_BEYOND = 64,
	MARK_ECN_1 = 128,	/* ECT(1), and with the next one CE */
	MARK_ECN_0 = 256,
	MARK_UNFILLED = 512,	/* the TCP checksum */
	MARK_FIRST_TTL = 1024,
	MARK_ACCECN = 2048,
	MARK_CLIENT_HELLO = 4096,
	MARK_SERVER_HELLO = 8192,
	MARK_ENCRYPTED = 16384,		/* a record of TLS */
};

/* One end of a connection: its address in memory order, IPv4 as ::ffff:a.b.c.d. */
struct end {
	ca_u128 address;
	uint16_t port;
};

enum { SENDER, RECEIVER };

/* Protocols that are looked into; flow_table.py has them, too. */
enum protocol {
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
};

/* The fields of a packet's IP and TCP headers; for other protocols see datagram.c. */
struct segment {
	struct end ends[2];	/* SENDER, RECEIVER */
	uint32_t payload_bytes;
	uint32_t seq, ack;
	uint32_t ts_value, ts_echo;
	uint32_t sack_left, sack_right;
	uint16_t window;
	uint16_t ip_id;
	uint16_t flags;
	uint16_t mss;		/* 0: not announced */
	uint8_t window_scale;	/* NO_SCALE: not announced */
	uint8_t version;	/* IP's version */
	uint8_t protocol;	/* IP's protocol */
	uint16_t marks;
	uint8_t sender_is_higher;	/* the sender's end is the higher one (flows.c) */
	uint32_t vlans;		/* the frame's two innermost VLANs, 12 bits each; 0: none */
	uint32_t hash;
};

#define VLANS_MASK UINT32_C(0xffffff)

/* Values of columns.py and flow_table.py. */
#define NO_SCALE 255
#define SCALE_CUT 254		/* the options end too early to tell */
#define TCP_SYN 0x02
#define TCP_ACK 0x10

#endif
