/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink requests for dtm: as tc would make them, and broken in one of many ways.
 *
 * A request is made from what pkt_dtm.h allows, then mutations spoil it (or none, or several), and
 * serialise() writes it down, wrong lengths and all. All chance comes from one seed.
 */
#ifndef DTM_REQUESTS_H
#define DTM_REQUESTS_H

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "../pkt_dtm.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LARGEST 60000		/* bytes of an attribute that is far too long */
#define MOST_ATTRIBUTES 64

/* An option as pkt_dtm.h describes it. */
struct option {
	uint16_t type;
	uint8_t size;
	int64_t min;
	int64_t max;
};

static const struct option options[] = {
	{ TCA_DTM_SLOTS, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_LIMIT, 4, 1, 1000000000 },
	{ TCA_DTM_LIMIT_BYTES, 4, 0, UINT32_MAX },
	{ TCA_DTM_OVERHEAD, 4, -64, 1024 },
	{ TCA_DTM_FRAMED, 1, 0, 1 },
	{ TCA_DTM_ALLOCATOR, 1, 0, DTM_ALLOCATOR_MAX },
	{ TCA_DTM_MIN_SLOTS, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_MAX_SLOTS, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_CHANGE, 8, 0, 3600000000000 },
	{ TCA_DTM_SIGNALLING, 8, 0, 60000000000 },
	{ TCA_DTM_SAMPLE, 8, 1000000, 60000000000 },
	{ TCA_DTM_SHIFT_UP, 1, 0, 16 },
	{ TCA_DTM_SHIFT_DOWN, 1, 0, 16 },
	{ TCA_DTM_MARGIN, 4, 0, 8192000 },
	{ TCA_DTM_CORRIDOR, 4, 0, 8192000 },
	{ TCA_DTM_ROUNDING, 1, 0, DTM_ROUND_MAX },
	{ TCA_DTM_COUNT, 1, 0, DTM_COUNT_MAX },
	{ TCA_DTM_HOLD_ON_LOSS, 8, 0, 60000000000 },
	{ TCA_DTM_ESTIMATE, 8, 0, 1LL << 40 },
	{ TCA_DTM_HIGH, 4, 1, UINT32_MAX },
	{ TCA_DTM_LOW, 4, 0, UINT32_MAX },
	{ TCA_DTM_RISE, 8, 0, 60000000000 },
	{ TCA_DTM_FALL, 8, 0, 60000000000 },
	{ TCA_DTM_STEP, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_POOL, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_OWNED, 4, 0, DTM_MAX_SLOTS },
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
	struct tc_sizespec stab;
	bool has_stab;
	unsigned int cut;	/* bytes missing at the end of the message */
	struct attribute attributes[MOST_ATTRIBUTES];
	unsigned int n_attributes;
	uint64_t values[MOST_ATTRIBUTES];
	struct nlattr inner[4];
	struct tc_dtm_level levels[DTM_MAX_LEVELS + 1];
	struct tc_dtm_step steps[DTM_MAX_STEPS + 1];
	uint32_t mutations;	/* which were made, as bits */
};

static uint8_t noise[LARGEST];
static uint64_t state;			/* of the random numbers */
static unsigned int lone, parent;	/* devices: see dtm_fuzz.c */

/* Chance */

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

/* Requests */

static void add(struct request *r, uint16_t type, const void *data, uint16_t bytes)
{
	if (r->n_attributes == MOST_ATTRIBUTES)
		return;
	r->attributes[r->n_attributes++] =
		(struct attribute){ type, NLA_HDRLEN + bytes, bytes, data };
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
		if (r->attributes[i].type == type)
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

static void add_levels(struct request *r)
{
	unsigned int n = 2 + below(DTM_MAX_LEVELS - 1), k;
	uint32_t slots = 1 + below(4), up = 100 + below(3000);

	for (k = 0; k < n; k++) {
		r->levels[k] = (struct tc_dtm_level){ slots, up, k ? up - 1 - below(99) : 0 };
		slots += 1 + below(200);
		up += below(3000);
	}
	/* Each must be left at less than what its predecessor is left for. */
	for (k = 1; k < n; k++)
		r->levels[k].down_bytes = below(r->levels[k - 1].up_bytes);
	add(r, TCA_DTM_LEVELS, r->levels, n * sizeof(r->levels[0]));
}

static void add_trace(struct request *r)
{
	unsigned int n = 1 + below(one_in(4) ? DTM_MAX_STEPS : 8), k;

	for (k = 0; k < n; k++)
		r->steps[k] = (struct tc_dtm_step){ 1 + any_size() % 10000000,
						    within(1, DTM_MAX_SLOTS) };
	add(r, TCA_DTM_TRACE, r->steps, n * sizeof(r->steps[0]));
}

/* The pool of PARENT's channels: mostly one number, so that they agree. */
static uint32_t pool_size(void)
{
	return one_in(10) ? within(1, DTM_MAX_SLOTS) : 100;
}

static void choose_options(struct request *r)
{
	unsigned int n = any_size() % 8, i;
	uint32_t *slots, *min, *max, *low, *high;
	bool pooled = r->tc.tcm_ifindex == (int)parent && !one_in(4);

	for (i = 0; i < n; i++) {
		const struct option *option = &options[below(ARRAY_SIZE(options))];

		if (find(r, option->type) || option->type == TCA_DTM_POOL ||
		    (option->type == TCA_DTM_OWNED && !pooled))
			continue;
		add_value(r, option, within(option->min, pooled && option->max == DTM_MAX_SLOTS ?
						60 : option->max));
	}
	if (pooled)
		add_value(r, &options[24], pool_size());
	slots = value_of(r, TCA_DTM_SLOTS);
	min = value_of(r, TCA_DTM_MIN_SLOTS);
	max = value_of(r, TCA_DTM_MAX_SLOTS);
	low = value_of(r, TCA_DTM_LOW);
	high = value_of(r, TCA_DTM_HIGH);
	order(min, max);
	order(min, slots);
	order(slots, max);
	order(low, high);
	if (one_in(8))
		add_levels(r);
	if (one_in(8))
		add_trace(r);
}

/* A request as tc would make it. */
static void make_request(struct request *r)
{
	static const uint16_t new_flags[] = {
		NLM_F_CREATE | NLM_F_EXCL, NLM_F_CREATE, NLM_F_REPLACE, 0, 0,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_REPLACE,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_REPLACE,
	};

	memset(r, 0, offsetof(struct request, levels));
	r->mutations = 0;
	r->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	r->tc.tcm_family = AF_UNSPEC;
	strcpy(r->kind, "dtm");
	r->kind_bytes = 4;
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
			choose_options(r);
	}
}

/* Mutations */

static struct attribute *any_attribute(struct request *r)
{
	if (!r->n_attributes) {
		r->has_options = true;
		add_value(r, &options[below(ARRAY_SIZE(options))], draw());
	}
	return &r->attributes[below(r->n_attributes)];
}

static void out_of_range(struct request *r)
{
	const struct option *option = &options[below(ARRAY_SIZE(options))];
	int64_t value = one_in(2) ? option->max + 1 + (int64_t)(any_size() >> 1)
				  : option->min - 1 - (int64_t)(any_size() >> 1);

	r->has_options = true;
	add_value(r, option, one_in(4) ? (int64_t)draw() : value);
}

static void wrong_length(struct request *r)
{
	struct attribute *a = any_attribute(r);

	a->data = noise + below(64);
	a->bytes = below(20);
	a->claims = NLA_HDRLEN + a->bytes;
}

static void wrong_claim(struct request *r)
{
	any_attribute(r)->claims = one_in(2) ? below(8) : draw();
}

static void wrong_flags(struct request *r)
{
	any_attribute(r)->type ^= one_in(2) ? NLA_F_NESTED : NLA_F_NET_BYTEORDER;
}

static void nested(struct request *r)
{
	struct attribute *a = any_attribute(r);

	r->inner[0] = (struct nlattr){ sizeof(r->inner), draw() };
	r->inner[1] = (struct nlattr){ below(16), draw() };
	a->data = r->inner;
	a->bytes = sizeof(r->inner);
	a->claims = NLA_HDRLEN + a->bytes;
	a->type |= NLA_F_NESTED;
}

static void twice(struct request *r)
{
	struct attribute *a = any_attribute(r);

	add(r, a->type, a->data, a->bytes);
}

static void unknown(struct request *r)
{
	r->has_options = true;
	add(r, TCA_DTM_MAX + 1 + below(100), noise, below(16));
}

static void reserved(struct request *r)
{
	r->has_options = true;
	add(r, one_in(2) ? TCA_DTM_UNSPEC : TCA_DTM_PAD, noise, below(9));
}

static void empty_array(struct request *r)
{
	r->has_options = true;
	add(r, one_in(2) ? TCA_DTM_LEVELS : TCA_DTM_TRACE, noise, 0);
}

static void huge_array(struct request *r)
{
	r->has_options = true;
	if (r->n_attributes < 4)
		add(r, one_in(2) ? TCA_DTM_LEVELS : TCA_DTM_TRACE, noise,
		    one_in(4) ? LARGEST - 4 * below(3000) : below(DTM_MAX_STEPS * 8 + 64));
}

static void random_array(struct request *r)
{
	r->has_options = true;
	if (one_in(2))
		add(r, TCA_DTM_LEVELS, noise + below(4096), 12 * below(DTM_MAX_LEVELS + 2));
	else
		add(r, TCA_DTM_TRACE, noise + below(4096), 8 * below(DTM_MAX_STEPS + 2));
}

static void contradiction(struct request *r)
{
	static const uint8_t pairs[][2] = {
		{ 6, 7 }, { 0, 7 }, { 6, 0 }, { 20, 19 }, { 0, 24 }, { 25, 24 }, { 6, 24 },
	};
	const uint8_t *pair = pairs[below(ARRAY_SIZE(pairs))];
	int64_t most = within(1, DTM_MAX_SLOTS - 1);

	r->has_options = true;
	if (one_in(8))
		r->n_attributes = 0;
	add_value(r, &options[pair[0]], most + 1);
	if (!one_in(8))
		add_value(r, &options[pair[1]], most);
}

/* Levels and steps that are in range, but do not go together. */
static void disorder(struct request *r)
{
	r->has_options = true;
	if (one_in(2)) {
		add_value(r, &options[5], DTM_HYSTERESIS);
		add_levels(r);
		if (one_in(2))
			r->levels[1].slots = r->levels[0].slots;
		else
			r->levels[1].down_bytes = r->levels[0].up_bytes;
	} else {
		add_value(r, &options[5], DTM_TRACE);
		add_trace(r);
		add_trace(r);
		r->steps[1].after_us = 0;
	}
}

static void noise_as_options(struct request *r)
{
	r->has_options = true;
	r->n_attributes = 0;
	add(r, draw(), noise + below(4096), below(300));
	add(r, draw(), noise + below(4096), below(300));
}

static void cut_short(struct request *r)
{
	r->cut = 1 + below(40);
}

static void wrong_kind(struct request *r)
{
	switch (below(4)) {
	case 0:
		r->kind_bytes = 0;
		break;
	case 1:
		r->kind_bytes = 3;	/* unterminated */
		break;
	case 2:
		memset(r->kind, 'x', sizeof(r->kind));
		r->kind_bytes = sizeof(r->kind);
		break;
	default:
		strcpy(r->kind, "dtn");
	}
}

static void wrong_place(struct request *r)
{
	switch (below(4)) {
	case 0:
		r->tc.tcm_ifindex = draw();
		break;
	case 1:
		r->tc.tcm_parent = draw();
		break;
	case 2:
		r->tc.tcm_parent = one_in(2) ? TC_H_INGRESS : 0;
		break;
	default:
		r->tc.tcm_handle = draw();
	}
}

/* A size table makes of packets' lengths whatever it likes. */
static void size_table(struct request *r)
{
	r->has_stab = true;
	r->stab = (struct tc_sizespec){
		.cell_log = below(12), .size_log = below(12), .cell_align = below(3) - 1,
		.overhead = one_in(2) ? below(100) : draw(), .mpu = any_size(),
	};
}

static const struct {
	const char *name;
	void (*make)(struct request *r);
} mutations[] = {
	{ "out of range", out_of_range },
	{ "wrong length", wrong_length },
	{ "wrong claim", wrong_claim },
	{ "wrong flags", wrong_flags },
	{ "nested", nested },
	{ "twice", twice },
	{ "unknown", unknown },
	{ "reserved", reserved },
	{ "empty array", empty_array },
	{ "huge array", huge_array },
	{ "random array", random_array },
	{ "contradiction", contradiction },
	{ "disorder", disorder },
	{ "noise", noise_as_options },
	{ "cut", cut_short },
	{ "kind", wrong_kind },
	{ "place", wrong_place },
	{ "size table", size_table },
};

static void mutate(struct request *r)
{
	static const uint8_t how_many[] = { 0, 0, 0, 1, 1, 1, 1, 2, 2, 3 };
	unsigned int n = how_many[below(ARRAY_SIZE(how_many))];

	while (n--) {
		unsigned int which = below(ARRAY_SIZE(mutations));

		mutations[which].make(r);
		r->mutations |= 1u << which;
	}
}

/* Wire format */

static uint8_t *put(uint8_t *end, uint16_t type, const void *data, uint16_t bytes,
		    uint16_t claims)
{
	struct nlattr header = { claims, type };

	memcpy(end, &header, sizeof(header));
	memset(end + NLA_HDRLEN, 0, NLA_ALIGN(bytes));
	memcpy(end + NLA_HDRLEN, data, bytes);
	return end + NLA_HDRLEN + NLA_ALIGN(bytes);
}

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
		put(nest, TCA_OPTIONS, NULL, 0, end - nest);
	}
	length = end - start;
	/* Less than a tcmsg's family is not a request at all, and never answered. */
	length -= r->cut < length - 20 ? r->cut : length - 20;
	r->header.nlmsg_len = length;
	r->header.nlmsg_seq = sequence;
	memcpy(start, &r->header, sizeof(r->header));
	return start + NLMSG_ALIGN(length);
}

static const char *mutation_names(uint32_t made)
{
	static char names[160];
	unsigned int i;

	names[0] = '\0';
	for (i = 0; i < ARRAY_SIZE(mutations); i++)
		if (made & 1u << i) {
			strncat(names, mutations[i].name, sizeof(names) - strlen(names) - 1);
			strncat(names, ";", sizeof(names) - strlen(names) - 1);
		}
	return names;
}

#endif /* DTM_REQUESTS_H */
