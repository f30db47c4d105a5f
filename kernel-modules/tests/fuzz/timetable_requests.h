/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests for timetable: options as pkt_timetable.h describes them, and tables of any kind. */
#ifndef TIMETABLE_REQUESTS_H
#define TIMETABLE_REQUESTS_H

#include "../../include/uapi/linux/pkt_timetable.h"
#include "requests.h"

#define NS_PER_S 1000000000

static const struct option timetable_options[] = {
	{ TCA_TIMETABLE_KIND, 1, ANY, 0, TC_TIMETABLE_KIND_MAX },
	{ TCA_TIMETABLE_LIMIT, 4, ANY, 1, UINT32_MAX },
	{ TCA_TIMETABLE_OVERHEAD, 4, ANY, -64, 1024 },
	{ TCA_TIMETABLE_START, 8, ANY, 0, TC_TIMETABLE_LATEST_START },
	{ TCA_TIMETABLE_PERIOD, 8, ANY, 0, 1LL << 60 },
};

/* A random value for a step, of a size that is usual for its kind. */
static uint64_t any_value(unsigned int kind)
{
	static const uint64_t most[] = {
		[TC_TIMETABLE_RATE] = NS_PER_S, [TC_TIMETABLE_OPPORTUNITY] = 6000,
		[TC_TIMETABLE_DELAY] = 20ULL * NS_PER_S,
	};

	return one_in(4) ? 0 : 1 + any_size() % most[kind];
}

static uint8_t *put_timetable_step(uint8_t *end, uint64_t at, uint64_t value)
{
	uint8_t *entry = end;

	end = put(end + NLA_HDRLEN, TCA_TIMETABLE_STEP_AT, &at, 8, NLA_HDRLEN + 8);
	end = put(end, TCA_TIMETABLE_STEP_VALUE, &value, 8, NLA_HDRLEN + 8);
	put(entry, TCA_TIMETABLE_ENTRY | NLA_F_NESTED, NULL, 0, end - entry);
	return end;
}

static void add_timetable(struct request *r, const uint8_t *list, const uint8_t *end)
{
	add(r, TCA_TIMETABLE_STEPS | NLA_F_NESTED, list, end - list);
}

/* Add steps from a time on; returns when the last of them begins. */
static uint64_t add_table(struct request *r, unsigned int kind, uint64_t at, unsigned int n)
{
	uint8_t *list = new_list(r), *end = list;

	while (list && n--) {
		end = put_timetable_step(end, at, any_value(kind) + !n * 1500);
		at += n ? 1 + any_size() % (60ULL * NS_PER_S) : 0;
	}
	if (list)
		add_timetable(r, list, end);
	return at;
}

static void choose_timetable_options(struct request *r)
{
	bool is_new = r->header.nlmsg_flags & NLM_F_CREATE;
	unsigned int kind = below(TC_TIMETABLE_KIND_MAX + 1);
	unsigned int n = 1 + below(one_in(16) ? TC_TIMETABLE_MESSAGE_STEPS : 8);
	uint64_t last = 0;

	if (is_new || one_in(2)) {
		add_value(r, option_of(TCA_TIMETABLE_KIND), kind);
		last = add_table(r, kind, one_in(16) ? any_size() : 0, n);
		if (kind == TC_TIMETABLE_OPPORTUNITY || one_in(2))
			add_value(r, option_of(TCA_TIMETABLE_PERIOD),
				  last + 1 + any_size() % NS_PER_S);
	} else if (one_in(4)) {
		add_table(r, kind, 1 + any_size(), 1 + below(8));
	}
	add_value(r, option_of(TCA_TIMETABLE_OVERHEAD), within(-64, 1024));
	if (one_in(2))
		add_value(r, option_of(TCA_TIMETABLE_LIMIT), within(1, 2000));
	/* Later than any boot, and in years. */
	if (one_in(8))
		add_value(r, option_of(TCA_TIMETABLE_START), within(1LL << 61, 1LL << 62));
}

static void no_steps(struct request *r)
{
	r->has_options = true;
	r->n_attributes = 0;
	add_timetable(r, noise, noise);
}

/* Entries with members that are missing, unknown, too long or of any value. */
static void odd_steps(struct request *r)
{
	uint8_t *list = new_list(r);

	r->has_options = true;
	add_value(r, option_of(TCA_TIMETABLE_KIND), below(3));
	if (list)
		add_timetable(r, list, put_odd_entries(list, below(one_in(4) ? 1500 : 40)));
}

/* A step at 0 that has only one of its members. */
static void half_step(struct request *r)
{
	uint8_t *list = new_list(r);
	uint64_t value = 0;

	r->has_options = true;
	if (!list)
		return;
	put(list + NLA_HDRLEN, one_in(2) ? TCA_TIMETABLE_STEP_AT : TCA_TIMETABLE_STEP_VALUE, &value,
	    8, NLA_HDRLEN + 8);
	put(list, TCA_TIMETABLE_ENTRY | NLA_F_NESTED, NULL, 0, 2 * NLA_HDRLEN + 8);
	add_timetable(r, list, list + 2 * NLA_HDRLEN + 8);
}

static void one_step(struct request *r, unsigned int kind, uint64_t at, uint64_t value)
{
	uint8_t *list = new_list(r);

	r->has_options = true;
	r->n_attributes = 0;
	if (!list)
		return;
	add_value(r, option_of(TCA_TIMETABLE_KIND), kind);
	add_timetable(r, list, put_timetable_step(list, at, value));
}

/* A table with exactly one mistake. */
static void bad_table(struct request *r)
{
	switch (below(6)) {
	case 0:		/* too much */
		one_step(r, below(3), 0, (1ULL << 53) + 1 + any_size());
		break;
	case 1:		/* never anything */
		one_step(r, TC_TIMETABLE_RATE, 0, 0);
		break;
	case 2:		/* once */
		one_step(r, TC_TIMETABLE_OPPORTUNITY, 0, 1500);
		break;
	case 3:		/* repeated before it ends */
		r->has_options = true;
		r->n_attributes = 0;
		add_table(r, TC_TIMETABLE_RATE, 0, 3);
		add_value(r, option_of(TCA_TIMETABLE_PERIOD), 1);
		break;
	case 4:		/* little */
		one_step(r, TC_TIMETABLE_OPPORTUNITY, 0, 1499);
		add_value(r, option_of(TCA_TIMETABLE_PERIOD), NS_PER_S);
		break;
	default:	/* before the kernel's start */
		one_step(r, TC_TIMETABLE_DELAY, 0, 1500);
		add_value(r, option_of(TCA_TIMETABLE_START), 1 + any_size() % NS_PER_S);
	}
}

static const struct mutation timetable_mutations[] = {
	{ "no steps", no_steps },
	{ "odd steps", odd_steps },
	{ "half step", half_step },
	{ "bad table", bad_table },
};

static const struct fuzzed timetable = {
	.kind		= "timetable",
	.options	= timetable_options,
	.n_options	= ARRAY_SIZE(timetable_options),
	.last		= TCA_TIMETABLE_MAX,
	.pad		= TCA_TIMETABLE_PAD,
	.dumped		= { TCA_TIMETABLE_N_STEPS, TCA_TIMETABLE_DIGEST },
	.overhead	= TCA_TIMETABLE_OVERHEAD,
	.choose		= choose_timetable_options,
	.mutations	= timetable_mutations,
	.n_mutations	= ARRAY_SIZE(timetable_mutations),
};

#endif /* TIMETABLE_REQUESTS_H */
