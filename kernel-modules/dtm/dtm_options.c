// SPDX-License-Identifier: GPL-2.0-only
/* Options of the qdisc dtm, as attributes of netlink. */

#include <net/netlink.h>

#include "compat/netlink.h"
#include "dtm_sched.h"

static TWOWAY_RANGE dtm_slots_range = { .min = 1, .max = TC_DTM_MAX_SLOTS };
static TWOWAY_RANGE dtm_owned_range = { .max = TC_DTM_MAX_SLOTS };
static TWOWAY_RANGE dtm_limit_range = { .min = 1, .max = 1000000000 };
static TWOWAY_RANGE dtm_hour_range = { .max = 3600ULL * NSEC_PER_SEC };
static TWOWAY_RANGE dtm_minute_range = { .max = 60ULL * NSEC_PER_SEC };
static TWOWAY_RANGE dtm_sample_range = { .min = NSEC_PER_MSEC, .max = 60ULL * NSEC_PER_SEC };
static TWOWAY_RANGE dtm_millislots_range = { .max = 1000 * TC_DTM_MAX_SLOTS };
static TWOWAY_RANGE dtm_estimate_range = { .max = 1ULL << 40 };
static TWOWAY_RANGE dtm_slot_range = { .min = 1000, .max = TC_DTM_SLOT_RATE };
static TWOWAY_RANGE dtm_positive_range = { .min = 1, .max = U32_MAX };

#define DTM_SHIFT_MAX	10
/* More than a qdisc's dump takes without its steps. */
#define DTM_OTHER_BYTES	1024

static const struct nla_policy dtm_level_policy[TCA_DTM_LEVEL_MAX + 1] = {
	[TCA_DTM_LEVEL_SLOTS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
	[TCA_DTM_LEVEL_UP]	= { .type = NLA_U32 },
	[TCA_DTM_LEVEL_DOWN]	= { .type = NLA_U32 },
};

static const struct nla_policy dtm_step_policy[TCA_DTM_STEP_MAX + 1] = {
	[TCA_DTM_STEP_PAD]	= { .type = NLA_REJECT },
	[TCA_DTM_STEP_AFTER]	= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_hour_range),
	[TCA_DTM_STEP_SLOTS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
};

static const struct nla_policy dtm_policy[TCA_DTM_MAX + 1] = {
	[TCA_DTM_UNSPEC]	= { .type = NLA_REJECT },
	[TCA_DTM_PAD]		= { .type = NLA_REJECT },
	[TCA_DTM_SLOTS]		= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
	[TCA_DTM_RESTART]	= { .type = NLA_FLAG },
	[TCA_DTM_INITIAL]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
	[TCA_DTM_LIMIT]		= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_limit_range),
	[TCA_DTM_LIMIT_BYTES]	= { .type = NLA_U32 },
	[TCA_DTM_OVERHEAD]	= DEPARTURES_OVERHEAD_POLICY,
	[TCA_DTM_FRAMED]	= NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_DTM_ALLOCATOR]	= NLA_POLICY_MAX(NLA_U8, TC_DTM_ALLOCATOR_MAX),
	[TCA_DTM_MIN_SLOTS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
	[TCA_DTM_MAX_SLOTS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
	[TCA_DTM_CHANGE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_hour_range),
	[TCA_DTM_SIGNALLING]	= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_minute_range),
	[TCA_DTM_POOL]		= { .type = NLA_NUL_STRING, .len = TC_DTM_POOL_NAME - 1 },
	[TCA_DTM_OWNED]		= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_owned_range),
	[TCA_DTM_SAMPLE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_sample_range),
	[TCA_DTM_SHIFT_UP]	= NLA_POLICY_MAX(NLA_U8, DTM_SHIFT_MAX),
	[TCA_DTM_SHIFT_DOWN]	= NLA_POLICY_MAX(NLA_U8, DTM_SHIFT_MAX),
	[TCA_DTM_MARGIN]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_millislots_range),
	[TCA_DTM_CORRIDOR]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_millislots_range),
	[TCA_DTM_ROUNDING]	= NLA_POLICY_MAX(NLA_U8, TC_DTM_ROUND_MAX),
	[TCA_DTM_COUNT]		= NLA_POLICY_MAX(NLA_U8, TC_DTM_COUNT_MAX),
	[TCA_DTM_HOLD_ON_LOSS]	= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_minute_range),
	[TCA_DTM_ESTIMATE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_estimate_range),
	[TCA_DTM_HIGH]		= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_positive_range),
	[TCA_DTM_LOW]		= { .type = NLA_U32 },
	[TCA_DTM_RISE]		= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_minute_range),
	[TCA_DTM_FALL]		= NLA_POLICY_FULL_RANGE(NLA_U64, &dtm_minute_range),
	[TCA_DTM_STEP]		= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slots_range),
	[TCA_DTM_LEVELS]	= NLA_POLICY_NESTED_ARRAY(dtm_level_policy),
	[TCA_DTM_STEPS]		= NLA_POLICY_NESTED_ARRAY(dtm_step_policy),
	[TCA_DTM_N_STEPS]	= { .type = NLA_REJECT },
	[TCA_DTM_POOL_NETNS_FD]	= { .type = NLA_U32 },
	[TCA_DTM_POOL_NETNSID]	= { .type = NLA_S32 },
	[TCA_DTM_SLOT_RATE]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_slot_range),
	[TCA_DTM_GRAIN]		= { .type = NLA_U32 },
	[TCA_DTM_PACE]		= NLA_POLICY_MAX(NLA_U8, TC_DTM_PACE_MAX),
	[TCA_DTM_HOLD]		= NLA_POLICY_MAX(NLA_U8, TC_DTM_HOLD_MAX),
};

/* Plain options: where their values are, and which allocator they belong to. */

#define DTM_ANY		-1

#define DTM_OPTION(_attribute, _field, _allocator) {			\
	.attribute	= TCA_DTM_##_attribute,				\
	.offset		= offsetof(struct dtm_config, _field),		\
	.allocator	= _allocator,					\
}

static const struct dtm_option {
	u16 attribute;
	u16 offset;			/* in struct dtm_config */
	s8 allocator;			/* enum tc_dtm_allocator, or DTM_ANY */
} dtm_plain_options[] = {
	DTM_OPTION(INITIAL, initial, DTM_ANY),
	DTM_OPTION(LIMIT, limit, DTM_ANY),
	DTM_OPTION(LIMIT_BYTES, limit_bytes, DTM_ANY),
	DTM_OPTION(OVERHEAD, overhead, DTM_ANY),
	DTM_OPTION(FRAMED, framed, DTM_ANY),
	DTM_OPTION(ALLOCATOR, allocator, DTM_ANY),
	DTM_OPTION(MIN_SLOTS, min_slots, DTM_ANY),
	DTM_OPTION(MAX_SLOTS, max_slots, DTM_ANY),
	DTM_OPTION(CHANGE, change_ns, DTM_ANY),
	DTM_OPTION(SIGNALLING, signalling_ns, DTM_ANY),
	DTM_OPTION(OWNED, owned, DTM_ANY),
	DTM_OPTION(SLOT_RATE, slot_rate, DTM_ANY),
	DTM_OPTION(SAMPLE, sample_ns, TC_DTM_RATE),
	DTM_OPTION(SHIFT_UP, shift_up, TC_DTM_RATE),
	DTM_OPTION(SHIFT_DOWN, shift_down, TC_DTM_RATE),
	DTM_OPTION(MARGIN, margin, TC_DTM_RATE),
	DTM_OPTION(CORRIDOR, corridor, TC_DTM_RATE),
	DTM_OPTION(ROUNDING, rounding, TC_DTM_RATE),
	DTM_OPTION(COUNT, count, TC_DTM_RATE),
	DTM_OPTION(HOLD_ON_LOSS, hold_ns, TC_DTM_RATE),
	DTM_OPTION(ESTIMATE, estimate, TC_DTM_RATE),
	DTM_OPTION(GRAIN, grain, TC_DTM_RATE),
	DTM_OPTION(PACE, pace, TC_DTM_RATE),
	DTM_OPTION(HOLD, hold, TC_DTM_RATE),
	DTM_OPTION(HIGH, high, TC_DTM_BUFFER),
	DTM_OPTION(LOW, low, TC_DTM_BUFFER),
	DTM_OPTION(RISE, rise_ns, TC_DTM_BUFFER),
	DTM_OPTION(FALL, fall_ns, TC_DTM_BUFFER),
	DTM_OPTION(STEP, step, TC_DTM_BUFFER),
};

/* The netlink type of an option says how large its field is. */
static size_t dtm_field_size(const struct dtm_option *option)
{
	switch (dtm_policy[option->attribute].type) {
	case NLA_U8:
		return sizeof(u8);
	case NLA_U64:
		return sizeof(u64);
	default:
		return sizeof(u32);
	}
}

static bool dtm_applies(const struct dtm_option *option, const struct dtm_config *config)
{
	if (option->attribute == TCA_DTM_OWNED)
		return config->pool[0];
	return option->allocator == DTM_ANY || option->allocator == config->allocator;
}

static int dtm_refuse(const struct dtm_option *option, const struct nlattr *attr,
		      struct netlink_ext_ack *extack)
{
	if (option->allocator == TC_DTM_RATE)
		return twoway_refuse_attr(extack, attr, "this option is for the allocator rate");
	if (option->allocator == TC_DTM_BUFFER)
		return twoway_refuse_attr(extack, attr, "this option is for the allocator buffer");
	return twoway_refuse_attr(extack, attr, "owned needs a pool");
}

static int dtm_parse_plain(struct nlattr **tb, struct dtm_config *config,
			   struct netlink_ext_ack *extack)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(dtm_plain_options); i++) {
		const struct dtm_option *option = &dtm_plain_options[i];
		const struct nlattr *attr = tb[option->attribute];
		void *field = (void *)config + option->offset;
		size_t size = dtm_field_size(option);

		if (!dtm_applies(option, config)) {
			if (attr)
				return dtm_refuse(option, attr, extack);
			/* Options of another allocator, which no dump shows, do not stay set. */
			memcpy(field, (void *)&dtm_defaults + option->offset, size);
		} else if (attr) {
			memcpy(field, nla_data(attr), size);
		}
	}
	return 0;
}

/* Levels and steps */

static int dtm_parse_levels(const struct nlattr *list, struct dtm_config *config,
			    struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_DTM_LEVEL_MAX + 1];
	struct dtm_level *level = config->levels;
	const struct nlattr *entry;
	int err, rest;

	config->n_levels = departures_count(list);
	if (config->n_levels < 2 || config->n_levels > TC_DTM_MAX_LEVELS)
		return twoway_refuse_attr(extack, list, "levels must be 2..32");
	nla_for_each_nested(entry, list, rest) {
		err = nla_parse_nested(tb, TCA_DTM_LEVEL_MAX, entry, dtm_level_policy, extack);
		if (err)
			return err;
		if (!tb[TCA_DTM_LEVEL_SLOTS])
			return twoway_refuse_attr(extack, entry, "a level needs slots");
		*level++ = (struct dtm_level) {
			.slots = nla_get_u32(tb[TCA_DTM_LEVEL_SLOTS]),
			.up_bytes = tb[TCA_DTM_LEVEL_UP] ? nla_get_u32(tb[TCA_DTM_LEVEL_UP]) : 0,
			.down_bytes = tb[TCA_DTM_LEVEL_DOWN] ?
				      nla_get_u32(tb[TCA_DTM_LEVEL_DOWN]) : 0,
		};
	}
	return 0;
}

/* The configuration has room for them all. */
static int dtm_parse_steps(const struct nlattr *list, struct dtm_config *config,
			   struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_DTM_STEP_MAX + 1];
	struct dtm_step *step = config->steps;
	const struct nlattr *entry;
	int err, rest;

	config->n_steps = departures_count(list);
	nla_for_each_nested(entry, list, rest) {
		err = nla_parse_nested(tb, TCA_DTM_STEP_MAX, entry, dtm_step_policy, extack);
		if (err)
			return err;
		if (!tb[TCA_DTM_STEP_AFTER] || !tb[TCA_DTM_STEP_SLOTS])
			return twoway_refuse_attr(extack, entry, "a step needs a time and slots");
		/* Field by field: padding stays 0, for the comparison in dtm_starts_afresh(). */
		step->after_ns = nla_get_u64(tb[TCA_DTM_STEP_AFTER]);
		step->slots = nla_get_u32(tb[TCA_DTM_STEP_SLOTS]);
		step++;
	}
	return 0;
}

static int dtm_parse_lists(struct nlattr **tb, struct dtm_config *config,
			   struct netlink_ext_ack *extack)
{
	const struct nlattr *levels = tb[TCA_DTM_LEVELS], *steps = tb[TCA_DTM_STEPS];

	if (config->allocator != TC_DTM_HYSTERESIS) {
		config->n_levels = 0;
		if (levels)
			return twoway_refuse_attr(extack, levels,
						  "levels are for the allocator hysteresis");
	}
	if (config->allocator != TC_DTM_TRACE) {
		config->n_steps = 0;
		if (steps)
			return twoway_refuse_attr(extack, steps,
						  "steps are for the allocator trace");
	}
	if (levels)
		return dtm_parse_levels(levels, config, extack);
	return steps ? dtm_parse_steps(steps, config, extack) : 0;
}

/* Checks of several options together */

static int dtm_check_levels(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	const struct dtm_level *level = c->levels;
	u32 k;

	if (!c->n_levels)
		return twoway_refuse(extack, "allocator hysteresis needs levels");
	if (level[0].slots < c->min_slots || level[c->n_levels - 1].slots > c->max_slots)
		return twoway_refuse(extack, "slots of levels must lie within min and max");
	for (k = 0; k + 1 < c->n_levels; k++) {
		if (level[k + 1].slots <= level[k].slots)
			return twoway_refuse(extack, "slots of levels must rise");
		if (level[k].up_bytes <= level[k + 1].down_bytes)
			return twoway_refuse(extack,
					     "up of a level must be above down of the next");
	}
	return 0;
}

static int dtm_check_trace(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	u32 k;

	if (!c->n_steps)
		return twoway_refuse(extack, "allocator trace needs steps");
	for (k = 0; k < c->n_steps; k++) {
		if (c->steps[k].slots < c->min_slots || c->steps[k].slots > c->max_slots)
			return twoway_refuse(extack, "slots of steps must lie within min and max");
		if (k && !c->steps[k].after_ns)
			return twoway_refuse(extack, "a step must come after the one before it");
	}
	return 0;
}

static int dtm_check_slot(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	u32 bit_rest;

	if (c->slot_rate == TC_DTM_SLOT_RATE)
		return 0;
	div_u64_rem(8ULL * NSEC_PER_SEC, c->slot_rate, &bit_rest);
	if (bit_rest || c->slot_rate % 1000)
		return twoway_refuse(extack, "slot must be whole kbit/s that divide 8 Gbit/s");
	if (c->framed || c->pool[0])
		return twoway_refuse(extack,
				     "a slot of less than 512 kbit/s takes neither framed nor pool");
	return 0;
}

static int dtm_check(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	int err = dtm_check_slot(c, extack);

	if (err)
		return err;
	if (c->min_slots > c->max_slots)
		return twoway_refuse(extack, "min must not exceed max");
	if (c->initial < c->min_slots || c->initial > c->max_slots)
		return twoway_refuse(extack, "slots must lie within min and max");
	if (c->low >= c->high)
		return twoway_refuse(extack, "low must be below high");
	if (c->allocator == TC_DTM_HYSTERESIS)
		return dtm_check_levels(c, extack);
	if (c->allocator == TC_DTM_TRACE)
		return dtm_check_trace(c, extack);
	return 0;
}

int dtm_options_check_pool(const struct dtm_config *config, u32 size,
			   struct netlink_ext_ack *extack)
{
	if (dtm_guaranteed(config) > size)
		return twoway_refuse(extack, "min and owned must not exceed the pool's slots");
	if (config->initial > size)
		return twoway_refuse(extack, "slots must not exceed the pool's");
	return 0;
}

/* Requests */

static bool dtm_starts_afresh(const struct dtm_config *a, const struct dtm_config *b)
{
	return a->allocator != b->allocator || a->estimate != b->estimate ||
	       a->n_levels != b->n_levels || a->n_steps != b->n_steps ||
	       memcmp(a->levels, b->levels, a->n_levels * sizeof(*a->levels)) ||
	       memcmp(a->steps, b->steps, a->n_steps * sizeof(*a->steps));
}

static int dtm_parse_config(struct dtm_options *options, const struct dtm_config *before,
			    struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct dtm_config *config = options->config;
	int err;

	if (tb[TCA_DTM_ALLOCATOR])
		config->allocator = nla_get_u8(tb[TCA_DTM_ALLOCATOR]);
	config->calls = dtm_find_allocator(config->allocator);
	if (tb[TCA_DTM_POOL])
		nla_strscpy(config->pool, tb[TCA_DTM_POOL], sizeof(config->pool));
	err = dtm_parse_plain(tb, config, extack);
	if (!err)
		err = dtm_parse_lists(tb, config, extack);
	if (err)
		return err;
	options->sized = tb[TCA_DTM_SLOTS] || tb[TCA_DTM_INITIAL];
	if (tb[TCA_DTM_SLOTS]) {
		options->slots = nla_get_u32(tb[TCA_DTM_SLOTS]);
		config->initial = options->slots;
	} else if (!options->sized) {
		config->initial = clamp(config->initial, config->min_slots, config->max_slots);
	}
	options->netns_fd = tb[TCA_DTM_POOL_NETNS_FD];
	options->netnsid = tb[TCA_DTM_POOL_NETNSID];
	if ((options->netns_fd || options->netnsid) && !config->pool[0])
		return twoway_refuse(extack, "netns needs a pool");
	options->restart = tb[TCA_DTM_RESTART] || dtm_starts_afresh(before, config);
	return dtm_check(config, extack);
}

int dtm_options_parse(struct dtm_options *options, const struct dtm_config *before,
		      struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_DTM_MAX + 1] = {};
	u32 n_steps = before->n_steps;
	int err;

	if (opt) {
		err = nla_parse_nested(tb, TCA_DTM_MAX, opt, dtm_policy, extack);
		if (err)
			return err;
	}
	if (tb[TCA_DTM_SLOTS] && tb[TCA_DTM_INITIAL])
		return twoway_refuse(extack, "slots sets initial, too: give one of them");
	if (tb[TCA_DTM_STEPS]) {
		n_steps = departures_count(tb[TCA_DTM_STEPS]);
		if (!n_steps || n_steps > TC_DTM_MAX_STEPS)
			return twoway_refuse_attr(extack, tb[TCA_DTM_STEPS],
						  "steps must be 1..1024");
	}
	*options = (struct dtm_options) {
		.config = kvzalloc(struct_size(options->config, steps, n_steps),
				   GFP_KERNEL_ACCOUNT),
	};
	if (!options->config)
		return -ENOMEM;
	/* Steps that are given replace all of those before, of which there may be more. */
	memcpy(options->config, before,
	       struct_size(before, steps, min(n_steps, before->n_steps)));
	err = dtm_parse_config(options, before, tb, extack);
	if (err)
		kvfree(options->config);
	return err;
}

/* Dumps */

static int dtm_put_plain(struct sk_buff *skb, const struct dtm_config *config)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(dtm_plain_options); i++) {
		const struct dtm_option *option = &dtm_plain_options[i];
		const void *field = (const void *)config + option->offset;
		size_t size = dtm_field_size(option);
		int err;

		if (!dtm_applies(option, config))
			continue;
		if (size == sizeof(u64))
			err = nla_put_u64_64bit(skb, option->attribute, *(const u64 *)field,
						TCA_DTM_PAD);
		else
			err = nla_put(skb, option->attribute, size, field);
		if (err)
			return err;
	}
	return 0;
}

static int dtm_put_level(struct sk_buff *skb, const struct dtm_config *config, u32 i)
{
	const struct dtm_level *level = &config->levels[i];

	return nla_put_u32(skb, TCA_DTM_LEVEL_SLOTS, level->slots) ?:
	       nla_put_u32(skb, TCA_DTM_LEVEL_UP, level->up_bytes) ?:
	       nla_put_u32(skb, TCA_DTM_LEVEL_DOWN, level->down_bytes);
}

static int dtm_put_step(struct sk_buff *skb, const struct dtm_config *config, u32 i)
{
	const struct dtm_step *step = &config->steps[i];

	return nla_put_u64_64bit(skb, TCA_DTM_STEP_AFTER, step->after_ns, TCA_DTM_STEP_PAD) ?:
	       nla_put_u32(skb, TCA_DTM_STEP_SLOTS, step->slots);
}

static int dtm_put_list(struct sk_buff *skb, int attribute, const struct dtm_config *config, u32 n,
			int (*put)(struct sk_buff *skb, const struct dtm_config *config, u32 i))
{
	struct nlattr *list = nla_nest_start(skb, attribute), *entry = list;
	u32 i;

	for (i = 0; entry && i < n; i++) {
		entry = nla_nest_start(skb, TCA_DTM_ENTRY);
		if (!entry || put(skb, config, i))
			return -EMSGSIZE;
		nla_nest_end(skb, entry);
	}
	if (!entry)
		return -EMSGSIZE;
	nla_nest_end(skb, list);
	return 0;
}

/*
 * A notification, which belongs to no socket yet, has the old and the new qdisc in one message of a
 * page, and is lost if they do not fit. A dump that does not fit behind others is tried again in an
 * empty buffer; but a reader's first buffer may be a page, too.
 */
static bool dtm_has_room_for_steps(const struct sk_buff *skb, u32 n_steps)
{
	const u32 step = 2 * NLA_HDRLEN + nla_total_size_64bit(sizeof(u64)) + sizeof(u32);

	return skb->sk && n_steps * step + DTM_OTHER_BYTES <= skb_end_offset(skb);
}

int dtm_options_dump(struct sk_buff *skb, const struct dtm_config *config)
{
	int err;

	err = dtm_put_plain(skb, config);
	if (!err && config->pool[0])
		err = nla_put_string(skb, TCA_DTM_POOL, config->pool);
	if (!err && config->allocator == TC_DTM_HYSTERESIS)
		err = dtm_put_list(skb, TCA_DTM_LEVELS, config, config->n_levels, dtm_put_level);
	if (!err && config->allocator == TC_DTM_TRACE)
		err = dtm_has_room_for_steps(skb, config->n_steps) ?
		      dtm_put_list(skb, TCA_DTM_STEPS, config, config->n_steps, dtm_put_step) :
		      nla_put_u32(skb, TCA_DTM_N_STEPS, config->n_steps);
	return err;
}
