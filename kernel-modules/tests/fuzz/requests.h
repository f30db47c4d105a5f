/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink requests for a qdisc: as tc would make them, and broken in one of many ways.
 *
 * A request is made from what the qdisc's header allows, then mutations spoil it (or none, or
 * several), and serialise() writes it down, wrong lengths and all. All random numbers come from one
 * seed.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LARGEST 60000		/* bytes of an attribute that is far too long */
#define MOST_ATTRIBUTES 64
#define MOST_LISTS 3
#define LIST_BYTES 60000
#define MOST_TYPES 64		/* of a qdisc's attributes */

#define ANY -1

/* A number among the options, as the qdisc's header describes it. */
struct option {
	uint16_t type;
	uint8_t size;
	int8_t allocator;	/* of dtm: the one that it belongs to, or ANY */
	int64_t min;
	int64_t max;
};

struct attribute {
	uint16_t type;
	uint16_t claims;	/* nla_len: differs from the truth in a broken one */
	uint16_t bytes;
	const void *data;
};

struct request {
	struct nlmsghdr header;
	struct tcmsg tc;
	char kind[32];
	uint16_t kind_bytes;
	bool has_options;
	bool flat;		/* the options are not marked as nested */
	struct tc_sizespec stab;
	bool has_stab;
	unsigned int cut;	/* bytes missing at the end of the message */
	struct attribute attributes[MOST_ATTRIBUTES];
	unsigned int n_attributes;
	uint64_t values[MOST_ATTRIBUTES];
	struct nlattr inner[4];
	uint32_t mutations;	/* which were made, as bits */
	unsigned int n_lists;
	uint8_t lists[MOST_LISTS][LIST_BYTES];	/* entries, as they are sent */
};

struct shown;

struct mutation {
	const char *name;
	void (*make)(struct request *r);
};

/**
 * struct fuzzed - a qdisc, as the fuzzer's table has it
 * @kind: its name
 * @options: its options that are numbers
 * @n_options: of @options
 * @last: the highest attribute
 * @pad: the attribute that aligns others
 * @entry_pad: the same in entries of a list
 * @dumped: attributes that no request may have; the fuzzer gives back a dump without them
 * @overhead: the attribute of a packet's overhead
 * @choose: add options as tc would
 * @mutations: ways to break a request that apply to this qdisc only
 * @n_mutations: of @mutations
 * @begin: called once; as with all below, NULL if there is nothing to do
 * @prepare: called before the requests of a round
 * @besides: send one request of another kind
 * @check: check what must always be true, given all that a dump has shown
 * @settle: called before a dump that is going to be given back
 * @compare: check what else must be as before, once a dump was given back
 * @end: called once, after the last request
 */
struct fuzzed {
	const char *kind;
	const struct option *options;
	unsigned int n_options;
	uint16_t last;
	uint16_t pad;
	uint16_t entry_pad;
	uint16_t dumped[4];
	uint16_t overhead;
	void (*choose)(struct request *r);
	const struct mutation *mutations;
	unsigned int n_mutations;
	void (*begin)(void);
	void (*prepare)(void);
	void (*besides)(void);
	void (*check)(const struct shown *shown, unsigned int n);
	void (*settle)(void);
	void (*compare)(const struct shown *before, const struct shown *after);
	void (*end)(void);
};

static const struct fuzzed *tested;
static uint8_t noise[LARGEST];
static uint64_t state;			/* of the random numbers */
static unsigned int lone, parent;	/* devices: see qdisc_fuzz.c */

/* Random numbers */

/* splitmix64: any seed will do. */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

static bool one_in(unsigned int n)
{
	return below(n) == 0;
}

/* Small numbers as likely as large ones. */
static uint64_t any_size(void)
{
	return draw() >> below(64);
}

static int64_t within(int64_t min, int64_t max)
{
	switch (below(8)) {
	case 0:
		return min;
	case 1:
		return max;
	default:
		return min + (int64_t)(any_size() % (uint64_t)(max - min + 1));
	}
}

/* Wire format of an attribute; returns its end */

static uint8_t *put(uint8_t *end, uint16_t type, const void *data, uint16_t bytes,
		    uint16_t claims)
{
	struct nlattr header = { claims, type };

	memcpy(end, &header, sizeof(header));
	memset(end + NLA_HDRLEN, 0, NLA_ALIGN(bytes));
	memcpy(end + NLA_HDRLEN, data, bytes);
	return end + NLA_HDRLEN + NLA_ALIGN(bytes);
}

/* Requests */

static void add(struct request *r, uint16_t type, const void *data, uint16_t bytes)
{
	if (r->n_attributes == MOST_ATTRIBUTES)
		return;
	r->attributes[r->n_attributes++] =
		(struct attribute){ type, NLA_HDRLEN + bytes, bytes, data };
}

static const struct option *option_of(uint16_t type)
{
	const struct option *option = tested->options;

	while (option->type != type)
		option++;
	return option;
}

static void add_value(struct request *r, const struct option *option, int64_t value)
{
	uint64_t *slot = &r->values[r->n_attributes];

	*slot = value;	/* little endian: the low bytes come first */
	add(r, option->type, slot, option->size);
}

static struct attribute *find(struct request *r, uint16_t type)
{
	unsigned int i;

	for (i = 0; i < r->n_attributes; i++)
		if ((r->attributes[i].type & NLA_TYPE_MASK) == type)
			return &r->attributes[i];
	return NULL;
}

static uint32_t *value_of(struct request *r, uint16_t type)
{
	struct attribute *attribute = find(r, type);

	return attribute ? (uint32_t *)attribute->data : NULL;
}

static void order(uint32_t *low, uint32_t *high)
{
	if (low && high && *low > *high) {
		uint32_t swapped = *low;

		*low = *high;
		*high = swapped;
	}
}

/* A place for a list; NULL if there is none left. */
static uint8_t *new_list(struct request *r)
{
	return r->n_lists < MOST_LISTS ? r->lists[r->n_lists++] : NULL;
}

/* Write a list's entries, members missing, unknown, too long or random; returns their end. */
static uint8_t *put_odd_entries(uint8_t *list, unsigned int n)
{
	uint8_t *end = list;

	while (n-- && end - list < LIST_BYTES - 200) {
		uint8_t *entry = end;
		unsigned int members = below(4);

		end += NLA_HDRLEN;
		while (members--) {
			unsigned int bytes = one_in(8) ? below(20) : one_in(2) ? 4 : 8;
			uint64_t value = any_size();

			end = put(end, below(5), one_in(2) ? (void *)&value : noise + below(64),
				  bytes > 8 ? 8 : bytes, NLA_HDRLEN + bytes);
		}
		put(entry, below(3) | (one_in(16) ? 0 : NLA_F_NESTED), NULL, 0, end - entry);
	}
	return end;
}

/* Add some of the numbers, each once. */
static void add_numbers(struct request *r, unsigned int n)
{
	while (n--) {
		const struct option *option = &tested->options[below(tested->n_options)];

		if (!find(r, option->type))
			add_value(r, option, within(option->min, option->max));
	}
}

/* A request as tc would make it. */
static void make_request(struct request *r)
{
	static const uint16_t new_flags[] = {
		NLM_F_CREATE | NLM_F_EXCL, NLM_F_CREATE, NLM_F_REPLACE, 0, 0,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_REPLACE,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_REPLACE,
	};

	memset(r, 0, offsetof(struct request, lists));
	r->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	r->tc.tcm_family = AF_UNSPEC;
	strcpy(r->kind, tested->kind);
	r->kind_bytes = strlen(r->kind) + 1;
	if (one_in(2)) {
		r->tc.tcm_ifindex = lone;
		r->tc.tcm_parent = TC_H_ROOT;
		r->tc.tcm_handle = one_in(4) ? (0x10 + below(2)) << 16 : 0;
	} else {
		unsigned int band = 1 + below(3);

		r->tc.tcm_ifindex = parent;
		r->tc.tcm_parent = TC_H_MAKE(1 << 16, band);
		r->tc.tcm_handle = one_in(4) ? (0x20 + band) << 16 : 0;
	}
	switch (below(16)) {
	case 0:
		r->header.nlmsg_type = RTM_DELQDISC;
		break;
	case 1:
		r->header.nlmsg_type = RTM_GETQDISC;
		break;
	default:
		r->header.nlmsg_type = RTM_NEWQDISC;
		r->header.nlmsg_flags |= new_flags[below(ARRAY_SIZE(new_flags))];
		r->has_options = !one_in(16);
		if (r->has_options)
			tested->choose(r);
	}
}

/* Messages */

/* Returns: the end of the message, aligned for the next one. */
static uint8_t *serialise(uint8_t *start, struct request *r, uint32_t sequence)
{
	uint8_t *end = start + NLMSG_HDRLEN, *nest;
	unsigned int i, length;

	memcpy(end, &r->tc, sizeof(r->tc));
	end += NLMSG_ALIGN(sizeof(r->tc));
	if (r->kind_bytes)
		end = put(end, TCA_KIND, r->kind, r->kind_bytes, NLA_HDRLEN + r->kind_bytes);
	if (r->has_stab) {
		nest = end;
		end = put(nest + NLA_HDRLEN, TCA_STAB_BASE, &r->stab, sizeof(r->stab),
			  NLA_HDRLEN + sizeof(r->stab));
		put(nest, TCA_STAB, NULL, 0, end - nest);
	}
	if (r->has_options) {
		nest = end;
		end += NLA_HDRLEN;
		for (i = 0; i < r->n_attributes; i++) {
			const struct attribute *a = &r->attributes[i];

			if (end - nest + NLA_HDRLEN + NLA_ALIGN(a->bytes) > UINT16_MAX)
				break;
			end = put(end, a->type, a->data, a->bytes, a->claims);
		}
		put(nest, r->flat ? TCA_OPTIONS : TCA_OPTIONS | NLA_F_NESTED, NULL, 0, end - nest);
	}
	length = end - start;
	/* A message cut before a tcmsg's family ends is no request, and never answered. */
	length -= r->cut < length - 20 ? r->cut : length - 20;
	r->header.nlmsg_len = length;
	r->header.nlmsg_seq = sequence;
	memcpy(start, &r->header, sizeof(r->header));
	return start + NLMSG_ALIGN(length);
}

#endif /* REQUESTS_H */
