/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests for medium: its options, as pkt_medium.h describes them, for shared media. */
#ifndef MEDIUM_REQUESTS_H
#define MEDIUM_REQUESTS_H

#include <fcntl.h>

#include "../../include/uapi/linux/pkt_medium.h"
#include "answers.h"

#define MEDIA 3

static int own_net;

static const struct option medium_options[] = {
	{ TCA_MEDIUM_NUMBER, 4, ANY, 0, MEDIA - 1 },
	{ TCA_MEDIUM_GAP, 8, ANY, 0, TC_MEDIUM_MAX_GAP },
	{ TCA_MEDIUM_TURN, 4, ANY, 1, UINT32_MAX },
	{ TCA_MEDIUM_RATE, 8, ANY, 1, TC_MEDIUM_MAX_RATE },
	{ TCA_MEDIUM_OVERHEAD, 4, ANY, -64, 1024 },
	{ TCA_MEDIUM_LIMIT, 4, ANY, 1, UINT32_MAX },
};

static void choose_medium_options(struct request *r)
{
	bool is_change = !(r->header.nlmsg_flags & NLM_F_CREATE);

	if (!one_in(is_change ? 2 : 16))
		add_value(r, option_of(TCA_MEDIUM_NUMBER), below(MEDIA));
	if (!one_in(is_change ? 2 : 16))
		add_value(r, option_of(TCA_MEDIUM_RATE), within(1, TC_MEDIUM_MAX_RATE));
	/* Few values, so that two ends agree. */
	if (one_in(4))
		add_value(r, option_of(TCA_MEDIUM_GAP), 1000 * below(2));
	if (one_in(4))
		add_value(r, option_of(TCA_MEDIUM_TURN), 1 + below(2));
	add_value(r, option_of(TCA_MEDIUM_OVERHEAD), within(-64, 1024));
	if (one_in(2))
		add_value(r, option_of(TCA_MEDIUM_LIMIT), within(1, 2000));
	if (one_in(8))
		add(r, TCA_MEDIUM_NETNS_FD, &own_net, sizeof(own_net));
}

/* Any gap, turn or number: other than those of an existing medium. */
static void conflict(struct request *r)
{
	r->has_options = true;
	add_numbers(r, 1 + below(3));
}

static void in_another_namespace(struct request *r)
{
	uint64_t *value = &r->values[r->n_attributes];

	r->has_options = true;
	*value = one_in(2) ? below(4) : draw();
	add(r, one_in(2) ? TCA_MEDIUM_NETNS_FD : TCA_MEDIUM_NETNSID, value, 4);
}

static const struct mutation medium_mutations[] = {
	{ "conflict", conflict },
	{ "in another namespace", in_another_namespace },
};

static void open_medium(void)
{
	own_net = open("/proc/self/ns/net", O_RDONLY);
	if (own_net < 0)
		fail("/proc/self/ns/net: %s", strerror(errno));
}

static const struct fuzzed medium = {
	.kind		= "medium",
	.options	= medium_options,
	.n_options	= ARRAY_SIZE(medium_options),
	.last		= TCA_MEDIUM_MAX,
	.pad		= TCA_MEDIUM_PAD,
	.overhead	= TCA_MEDIUM_OVERHEAD,
	.choose		= choose_medium_options,
	.mutations	= medium_mutations,
	.n_mutations	= ARRAY_SIZE(medium_mutations),
	.begin		= open_medium,
};

#endif /* MEDIUM_REQUESTS_H */
