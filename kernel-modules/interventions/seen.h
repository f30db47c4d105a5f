/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run's modules see of a packet (ports and numbers, IPv4 and IPv6) and of the kernel. */
#ifndef TWOWAY_SEEN_H
#define TWOWAY_SEEN_H

#include <linux/ipv6.h>
#include <linux/kallsyms.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/tcp.h>

struct seen {
	u32 source, dest;	/* 0 without ports */
	u32 seq, ack, payload;	/* of TCP */
	u8 flags;		/* of TCP: FIN, SYN, ...; 0 without */
};

static inline struct seen look(const struct sk_buff *skb)
{
	int offset = skb_network_offset(skb), protocol, end;
	struct seen seen = {};
	struct tcphdr buffer;
	const struct tcphdr *th;

	if (skb->protocol == htons(ETH_P_IP)) {
		protocol = ip_hdr(skb)->protocol;
		end = offset + ntohs(ip_hdr(skb)->tot_len);
		offset += ip_hdrlen(skb);
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		protocol = ipv6_hdr(skb)->nexthdr;
		offset += sizeof(struct ipv6hdr);
		end = offset + ntohs(ipv6_hdr(skb)->payload_len);
	} else {
		return seen;
	}
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return seen;
	/* Both begin with the ports. */
	th = skb_header_pointer(skb, offset, protocol == IPPROTO_TCP ? sizeof(*th) : 4, &buffer);
	if (!th)
		return seen;
	seen.source = ntohs(th->source);
	seen.dest = ntohs(th->dest);
	if (protocol == IPPROTO_TCP) {
		seen.seq = ntohl(th->seq);
		seen.ack = th->ack ? ntohl(th->ack_seq) : 0;
		seen.payload = end - offset - th->doff * 4;
		seen.flags = tcp_flag_byte(th);
	}
	return seen;
}

static inline bool is_named(const void *function, const char *name)
{
	char symbol[KSYM_NAME_LEN];

	snprintf(symbol, sizeof(symbol), "%ps", function);
	return !strcmp(symbol, name);
}

#endif
