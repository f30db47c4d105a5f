/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests for dtm: its options, as pkt_dtm.h describes them, and mutations of only those. */
#ifndef DTM_REQUESTS_H
#define DTM_REQUESTS_H

#include <linux/genetlink.h>

#include "../../include/uapi/linux/pkt_dtm.h"
#include "requests.h"

static const struct option dtm_options[] = {
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
	{ TCA_DTM_SLOT_RATE, 4, ANY, 1000, TC_DTM_SLOT_RATE },
	{ TCA_DTM_GRAIN, 4, TC_DTM_RATE, 0, UINT32_MAX },
	{ TCA_DTM_PACE, 1, TC_DTM_RATE, 0, TC_DTM_PACE_MAX },
	{ TCA_DTM_HOLD, 1, TC_DTM_RATE, 0, TC_DTM_HOLD_MAX },
};

/* The pool that the fuzzer keeps: fuzzers that run at once have one each, by their seeds. */
static char pool_name[sizeof("bus0")] = "bus0";
#define POOL_SLOTS	100

struct level {
	uint32_t slots;
	uint32_t up;
	uint32_t down;
};

struct step {
	uint64_t after;
	uint32_t slots;
};

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
		/* Each level's `down` must be below its predecessor's `up`. */
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

static void choose_dtm_options(struct request *r)
{
	unsigned int n = any_size() % 8, allocator = below(TC_DTM_ALLOCATOR_MAX + 1), i;
	uint32_t *slots, *initial, *min, *max, *low, *high;
	bool pooled = r->tc.tcm_ifindex == (int)parent && !one_in(4);

	for (i = 0; i < n; i++) {
		const struct option *option = &dtm_options[below(ARRAY_SIZE(dtm_options))];

		if (option->type == TCA_DTM_SLOT_RATE && !one_in(4)) {
			/* Of any two of these rates one divides the other. */
			if (!pooled && !find(r, option->type))
				add_value(r, option, 1000 << below(10));
			continue;
		}
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

static void odd_list(struct request *r)
{
	unsigned int n = below(one_in(4) ? 1500 : 40);
	uint8_t *list = new_list(r);
	uint16_t type = any_list();

	r->has_options = true;
	if (!list)
		return;
	add_value(r, option_of(TCA_DTM_ALLOCATOR),
		  (type & NLA_TYPE_MASK) == TCA_DTM_LEVELS ? TC_DTM_HYSTERESIS : TC_DTM_TRACE);
	add(r, type, list, put_odd_entries(list, n) - list);
}

/* Entries with one valid member and no other. */
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

/* Two options: the first must not exceed the second. */
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

/* Ask for more than the pool has, or of a pool that does not exist. */
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
	const struct option *option = &dtm_options[below(ARRAY_SIZE(dtm_options))];

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

static const struct mutation dtm_mutations[] = {
	{ "empty list", empty_list },
	{ "long list", long_list },
	{ "odd list", odd_list },
	{ "half list", half_list },
	{ "contradiction", contradiction },
	{ "too much", too_much },
	{ "foreign", foreign },
	{ "disorder", disorder },
};

/* A request of the family "dtm": anything in it may be wrong; returns its end. */
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

	*genl = (struct genlmsghdr){ .cmd = below(DTM_CMD_POOL_GET + 2), .version = 1 };
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
