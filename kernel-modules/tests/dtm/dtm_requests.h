/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Netlink requests for dtm: as tc would make them, and broken in one of many ways.
 *
 * A request is made from what pkt_dtm.h allows, then mutations spoil it (or none, or several), and
 * serialise() writes it down, wrong lengths and all. All chance comes from one seed.
 */
#ifndef DTM_REQUESTS_H
#define DTM_REQUESTS_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "../../include/uapi/linux/pkt_dtm.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LARGEST 60000		/* bytes of an attribute that is far too long */
#define MOST_ATTRIBUTES 64
#define MOST_LISTS 3
#define LIST_BYTES 40000

#define ANY -1

/* An option as pkt_dtm.h describes it. */
struct option {
	uint16_t type;
	uint8_t size;
	int8_t allocator;	/* the one that it belongs to, or ANY */
	int64_t min;
	int64_t max;
};

static const struct option options[] = {
	{ TCA_DTM_SLOTS, 4, ANY, 1, TC_DTM_MAX_SLOTS },
	{ TCA_DTM_INITIAL, 4, ANY, 1, TC_DTM_MAX_SLOTS },
	{ TCA_DTM_LIMIT, 4, ANY, 1, 1000000000 },
	{ TCA_DTM_LIMIT_BYTES, 4, ANY, 0, UINT32_MAX },
	{ TCA_DTM_OVERHEAD, 4, ANY, -64, 1024 },
	{ TCA_DTM_FRAMED, 1, ANY, 0, 1 },
	{ TCA_DTM_ALLOCATOR, 1, ANY, 0, TC_DTM_ALLOCATOR_MAX },
	{ TCA_DTM_MIN_SLOTS, 4, ANY, 1, TC_DTM_MAX_SLOTS },
	{ TCA_DTM_MAX_SLOTS, 4, ANY, 1, TC_DTM_MAX_SLOTS },
	{ TCA_DTM_CHANGE, 8, ANY, 0, 3600000000000 },
	{ TCA_DTM_SIGNALLING, 8, ANY, 0, 60000000000 },
	{ TCA_DTM_OWNED, 4, ANY, 0, TC_DTM_MAX_SLOTS },
	{ TCA_DTM_SAMPLE, 8, TC_DTM_RATE, 1000000, 60000000000 },
	{ TCA_DTM_SHIFT_UP, 1, TC_DTM_RATE, 0, 10 },
	{ TCA_DTM_SHIFT_DOWN, 1, TC_DTM_RATE, 0, 10 },
	{ TCA_DTM_MARGIN, 4, TC_DTM_RATE, 0, 65535000 },
	{ TCA_DTM_CORRIDOR, 4, TC_DTM_RATE, 0, 65535000 },
	{ TCA_DTM_ROUNDING, 1, TC_DTM_RATE, 0, TC_DTM_ROUND_MAX },
	{ TCA_DTM_COUNT, 1, TC_DTM_RATE, 0, TC_DTM_COUNT_MAX },
	{ TCA_DTM_HOLD_ON_LOSS, 8, TC_DTM_RATE, 0, 60000000000 },
	{ TCA_DTM_ESTIMATE, 8, TC_DTM_RATE, 0, 1LL << 40 },
	{ TCA_DTM_HIGH, 4, TC_DTM_BUFFER, 1, UINT32_MAX },
	{ TCA_DTM_LOW, 4, TC_DTM_BUFFER, 0, UINT32_MAX },
	{ TCA_DTM_RISE, 8, TC_DTM_BUFFER, 0, 60000000000 },
	{ TCA_DTM_FALL, 8, TC_DTM_BUFFER, 0, 60000000000 },
	{ TCA_DTM_STEP, 4, TC_DTM_BUFFER, 1, TC_DTM_MAX_SLOTS },
};

/* The pool that the fuzzer keeps: fuzzers that run at once have one each, by their seeds. */
static char pool_name[sizeof("bus0")] = "bus0";
#define POOL_SLOTS	100

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
	uint8_t lists[MOST_LISTS][LIST_BYTES];	/* levels and steps, as they are sent */
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
	const struct option *option = options;

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

struct level {
	uint32_t slots;
	uint32_t up;
	uint32_t down;
};

struct step {
	uint64_t after;
	uint32_t slots;
};

/* A place for a list; NULL if there is none left. */
static uint8_t *new_list(struct request *r)
{
	return r->n_lists < MOST_LISTS ? r->lists[r->n_lists++] : NULL;
}

static uint8_t *put_level(uint8_t *end, const struct level *level)
{
	uint8_t *entry = end;

	end = put(end + NLA_HDRLEN, TCA_DTM_LEVEL_SLOTS, &level->slots, 4, NLA_HDRLEN + 4);
	if (level->up)
		end = put(end, TCA_DTM_LEVEL_UP, &level->up, 4, NLA_HDRLEN + 4);
	if (level->down)
		end = put(end, TCA_DTM_LEVEL_DOWN, &level->down, 4, NLA_HDRLEN + 4);
	put(entry, TCA_DTM_ENTRY | NLA_F_NESTED, NULL, 0, end - entry);
	return end;
}

static void add_levels(struct request *r, const struct level *levels, unsigned int n)
{
	uint8_t *list = new_list(r), *end = list;

	while (list && n--)
		end = put_level(end, levels++);
	if (list)
		add(r, TCA_DTM_LEVELS | NLA_F_NESTED, list, end - list);
}

static uint8_t *put_step(uint8_t *end, const struct step *step)
{
	uint8_t *entry = end;

	end = put(end + NLA_HDRLEN, TCA_DTM_STEP_AFTER, &step->after, 8, NLA_HDRLEN + 8);
	end = put(end, TCA_DTM_STEP_SLOTS, &step->slots, 4, NLA_HDRLEN + 4);
	put(entry, TCA_DTM_ENTRY | NLA_F_NESTED, NULL, 0, end - entry);
	return end;
}

static void add_steps(struct request *r, const struct step *steps, unsigned int n)
{
	uint8_t *list = new_list(r), *end = list;

	while (list && n--)
		end = put_step(end, steps++);
	if (list)
		add(r, TCA_DTM_STEPS | NLA_F_NESTED, list, end - list);
}

static void make_levels(struct level *levels, unsigned int n)
{
	uint32_t slots = 1 + below(4), up = 100 + below(3000);
	unsigned int k;

	for (k = 0; k < n; k++) {
		/* Each must be left at less than what its predecessor is left for. */
		levels[k] = (struct level){ slots, up, k ? below(levels[k - 1].up) : 0 };
		slots += 1 + below(200);
		up += below(3000);
	}
}

static void make_steps(struct step *steps, unsigned int n)
{
	unsigned int k;

	for (k = 0; k < n; k++)
		steps[k] = (struct step){ 1 + any_size() % 10000000000,
					  within(1, TC_DTM_MAX_SLOTS) };
}

static void add_pool(struct request *r)
{
	add(r, TCA_DTM_POOL, pool_name, sizeof(pool_name));
}

static void add_lists(struct request *r, unsigned int allocator)
{
	struct level levels[TC_DTM_MAX_LEVELS];
	static struct step steps[TC_DTM_MAX_STEPS];
	unsigned int n_levels = 2 + below(TC_DTM_MAX_LEVELS - 1);
	unsigned int n_steps = 1 + below(one_in(4) ? TC_DTM_MAX_STEPS : 8);

	if (allocator == TC_DTM_HYSTERESIS && !one_in(8)) {
		make_levels(levels, n_levels);
		add_levels(r, levels, n_levels);
	} else if (allocator == TC_DTM_TRACE && !one_in(8)) {
		make_steps(steps, n_steps);
		add_steps(r, steps, n_steps);
	}
}

static void choose_options(struct request *r)
{
	unsigned int n = any_size() % 8, allocator = below(TC_DTM_ALLOCATOR_MAX + 1), i;
	uint32_t *slots, *initial, *min, *max, *low, *high;
	bool pooled = r->tc.tcm_ifindex == (int)parent && !one_in(4);

	for (i = 0; i < n; i++) {
		const struct option *option = &options[below(ARRAY_SIZE(options))];

		if (find(r, option->type) || option->type == TCA_DTM_ALLOCATOR ||
		    (option->type == TCA_DTM_OWNED && !pooled) ||
		    (option->type == TCA_DTM_INITIAL && find(r, TCA_DTM_SLOTS)) ||
		    (option->type == TCA_DTM_SLOTS && find(r, TCA_DTM_INITIAL)) ||
		    (option->allocator != ANY && option->allocator != (int)allocator))
			continue;
		add_value(r, option, within(option->min, pooled && option->max == TC_DTM_MAX_SLOTS ?
						60 : option->max));
	}
	if (!one_in(4)) {
		add_value(r, option_of(TCA_DTM_ALLOCATOR), allocator);
		add_lists(r, allocator);
	}
	if (one_in(16))
		add(r, TCA_DTM_RESTART, NULL, 0);
	if (pooled)
		add_pool(r);
	slots = value_of(r, TCA_DTM_SLOTS);
	initial = value_of(r, TCA_DTM_INITIAL);
	min = value_of(r, TCA_DTM_MIN_SLOTS);
	max = value_of(r, TCA_DTM_MAX_SLOTS);
	low = value_of(r, TCA_DTM_LOW);
	high = value_of(r, TCA_DTM_HIGH);
	order(min, max);
	order(min, slots ? slots : initial);
	order(slots ? slots : initial, max);
	order(low, high);
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
	if (one_in(8)) {
		r->flat = true;
		return;
	}
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
	static const uint16_t types[] = { TCA_DTM_UNSPEC, TCA_DTM_PAD, TCA_DTM_N_STEPS };

	r->has_options = true;
	add(r, types[below(ARRAY_SIZE(types))], noise, below(9));
}

static uint16_t any_list(void)
{
	return (one_in(2) ? TCA_DTM_LEVELS : TCA_DTM_STEPS) | (one_in(8) ? 0 : NLA_F_NESTED);
}

static void empty_list(struct request *r)
{
	uint16_t list = any_list();

	r->has_options = true;
	add_value(r, option_of(TCA_DTM_ALLOCATOR),
		  (list & NLA_TYPE_MASK) == TCA_DTM_LEVELS ? TC_DTM_HYSTERESIS : TC_DTM_TRACE);
	add(r, list, noise, 0);
}

static void long_list(struct request *r)
{
	static struct step steps[TC_DTM_MAX_STEPS + 6];
	struct level levels[TC_DTM_MAX_LEVELS + 6];
	unsigned int n = below(6);
	bool hysteresis = one_in(4);

	r->has_options = true;
	r->n_attributes = 0;
	r->n_lists = 0;
	add_value(r, option_of(TCA_DTM_ALLOCATOR),
		  hysteresis ? TC_DTM_HYSTERESIS : TC_DTM_TRACE);
	if (hysteresis) {
		make_levels(levels, TC_DTM_MAX_LEVELS + n);
		add_levels(r, levels, TC_DTM_MAX_LEVELS + n);
	} else {
		make_steps(steps, TC_DTM_MAX_STEPS + n);
		add_steps(r, steps, TC_DTM_MAX_STEPS + n);
	}
}

/* Entries with members that are missing, unknown, too long or of any value. */
static void odd_list(struct request *r)
{
	unsigned int n = below(one_in(4) ? 1500 : 40);
	uint8_t *list = new_list(r), *end = list;
	uint16_t type = any_list();

	r->has_options = true;
	if (!list)
		return;
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
	add_value(r, option_of(TCA_DTM_ALLOCATOR),
		  (type & NLA_TYPE_MASK) == TCA_DTM_LEVELS ? TC_DTM_HYSTERESIS : TC_DTM_TRACE);
	add(r, type, list, end - list);
}

/* Entries that have nothing but one good member. */
static void half_list(struct request *r)
{
	static const uint16_t members[] = {
		TCA_DTM_LEVEL_UP, TCA_DTM_STEP_AFTER, TCA_DTM_STEP_SLOTS,
	};
	uint8_t *list = new_list(r), *end = list, *entry;
	unsigned int which = below(ARRAY_SIZE(members)), n = 2 + below(4);
	uint16_t bytes = which == 1 ? 8 : 4;
	uint64_t value = 1 + below(1000);

	r->has_options = true;
	r->n_attributes = 0;
	while (list && n--) {
		entry = end;
		end = put(end + NLA_HDRLEN, members[which], &value, bytes, NLA_HDRLEN + bytes);
		put(entry, TCA_DTM_ENTRY | NLA_F_NESTED, NULL, 0, end - entry);
	}
	add_value(r, option_of(TCA_DTM_ALLOCATOR), which ? TC_DTM_TRACE : TC_DTM_HYSTERESIS);
	if (list)
		add(r, (which ? TCA_DTM_STEPS : TCA_DTM_LEVELS) | NLA_F_NESTED, list, end - list);
}

/* Two options of which the first must not exceed the second. */
static void contradiction(struct request *r)
{
	static const uint16_t pairs[][2] = {
		{ TCA_DTM_MIN_SLOTS, TCA_DTM_MAX_SLOTS }, { TCA_DTM_SLOTS, TCA_DTM_MAX_SLOTS },
		{ TCA_DTM_MIN_SLOTS, TCA_DTM_SLOTS }, { TCA_DTM_LOW, TCA_DTM_HIGH },
		{ TCA_DTM_SLOTS, TCA_DTM_INITIAL }, { TCA_DTM_MIN_SLOTS, TCA_DTM_INITIAL },
	};
	const uint16_t *pair = pairs[below(ARRAY_SIZE(pairs))];
	int64_t most = within(1, TC_DTM_MAX_SLOTS - 1);

	r->has_options = true;
	if (one_in(8))
		r->n_attributes = 0;
	if (pair[0] == TCA_DTM_LOW)
		add_value(r, option_of(TCA_DTM_ALLOCATOR), TC_DTM_BUFFER);
	add_value(r, option_of(pair[0]), most + 1);
	if (!one_in(8))
		add_value(r, option_of(pair[1]), most);
}

/* More than a pool has, or a pool that is not there. */
static void too_much(struct request *r)
{
	static const uint16_t types[] = { TCA_DTM_SLOTS, TCA_DTM_OWNED, TCA_DTM_MIN_SLOTS };
	static const char other[] = "other";

	r->has_options = true;
	r->n_attributes = 0;
	if (one_in(4))
		add(r, TCA_DTM_POOL, other, sizeof(other));
	else if (!one_in(4))
		add_pool(r);
	if (one_in(4))
		add(r, TCA_DTM_POOL_NETNSID, noise + below(4096), 4);
	add_value(r, option_of(types[below(ARRAY_SIZE(types))]), 30 + below(POOL_SLOTS));
}

/* An option of another allocator. */
static void foreign(struct request *r)
{
	const struct option *option = &options[below(ARRAY_SIZE(options))];

	r->has_options = true;
	r->n_attributes = 0;
	if (!one_in(4))
		add_value(r, option_of(TCA_DTM_ALLOCATOR), below(3));
	if (one_in(4))
		add_lists(r, one_in(2) ? TC_DTM_HYSTERESIS : TC_DTM_TRACE);
	else
		add_value(r, option, option->min);
}

/* Levels and steps that are in range, but do not go together. */
static void disorder(struct request *r)
{
	struct level levels[8];
	struct step steps[8];

	r->has_options = true;
	r->n_attributes = 0;
	if (one_in(4))
		add_value(r, option_of(one_in(2) ? TCA_DTM_MIN_SLOTS : TCA_DTM_MAX_SLOTS),
			  1 + below(400));
	if (one_in(2)) {
		make_levels(levels, ARRAY_SIZE(levels));
		if (one_in(2))
			levels[1].slots = levels[0].slots;
		else
			levels[1].down = levels[0].up;
		add_value(r, option_of(TCA_DTM_ALLOCATOR), TC_DTM_HYSTERESIS);
		add_levels(r, levels, ARRAY_SIZE(levels));
	} else {
		make_steps(steps, ARRAY_SIZE(steps));
		steps[1].after = 0;
		add_value(r, option_of(TCA_DTM_ALLOCATOR), TC_DTM_TRACE);
		add_steps(r, steps, ARRAY_SIZE(steps));
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
	if (r->has_options && one_in(4))
		add_value(r, option_of(TCA_DTM_OVERHEAD), within(-64, 1024));
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
	{ "empty list", empty_list },
	{ "long list", long_list },
	{ "odd list", odd_list },
	{ "half list", half_list },
	{ "contradiction", contradiction },
	{ "too much", too_much },
	{ "foreign", foreign },
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

/* A request of the family "dtm", of which anything may be wrong; returns its end. */
static uint8_t *make_genl_request(uint8_t *start, uint16_t family)
{
	static const char *const names[] = {
		pool_name, "a", "b", "a/b", "", "exactly15bytes.", "sixteen letters.", "a b",
	};
	struct nlmsghdr *header = (struct nlmsghdr *)start;
	struct genlmsghdr *genl = NLMSG_DATA(header);
	uint8_t *end = start + NLMSG_LENGTH(GENL_HDRLEN);
	unsigned int n = below(4);
	uint32_t slots = one_in(4) ? any_size() : POOL_SLOTS;
	const char *name = names[below(ARRAY_SIZE(names))];
	unsigned int bytes = strlen(name) + !one_in(16);

	*genl = (struct genlmsghdr){ .cmd = below(DTM_CMD_CHANNEL_GET + 2), .version = 1 };
	if (!one_in(4))
		end = put(end, DTM_A_POOL, name, bytes, NLA_HDRLEN + bytes);
	if (!one_in(4))
		end = put(end, DTM_A_POOL_SLOTS, &slots, 4, NLA_HDRLEN + 4);
	while (one_in(4) && n--) {
		bytes = below(40);
		end = put(end, below(DTM_A_MAX + 4) | (one_in(8) ? NLA_F_NESTED : 0),
			  noise + below(4096), bytes,
			  one_in(8) ? draw() : NLA_HDRLEN + bytes);
	}
	*header = (struct nlmsghdr){
		.nlmsg_len = end - start, .nlmsg_type = family,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (one_in(4) ? NLM_F_DUMP : 0),
	};
	return end;
}

#endif /* DTM_REQUESTS_H */
