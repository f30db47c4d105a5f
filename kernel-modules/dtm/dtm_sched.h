/* SPDX-License-Identifier: GPL-2.0-only */
/* The qdisc's state and its options, for the files that make up sch_dtm. */
#ifndef DTM_SCHED_H
#define DTM_SCHED_H

#include "departures.h"
#include "dtm_link.h"

/* A qdisc. */
struct dtm_sched_data {
	/* what it has in common with others; an `at` there is a tag, see dtm_service.c */
	struct departures departures;
	struct dtm_channel channel;	/* its channel */
	/* options of @channel, owned here; replaced under the link's lock */
	struct dtm_config *config;
	struct dtm_link *link;		/* of @channel; NULL until init has succeeded */
	/* the first packet of the list without a tag: the link's pool was behind; NULL: none */
	struct sk_buff *untagged;
	u64 uncounted;			/* bytes that were queued meanwhile */
	struct Qdisc *sch;		/* the qdisc */
};

/* dtm_options.c */

/* What a request asks for. */
struct dtm_options {
	/* all options, given or not; the caller frees it with kvfree() */
	struct dtm_config *config;
	u32 slots;			/* from now on; 0: not given */
	bool sized;			/* slots at the start are given */
	bool restart;			/* the allocator starts afresh */
	/* the network namespace of the pool, by a descriptor; NULL: not given */
	const struct nlattr *netns_fd;
	const struct nlattr *netnsid;	/* the same, by its number */
};

/* Read attributes on top of `before`, or of the defaults for a new channel. */
int dtm_options_parse(struct dtm_options *options, const struct dtm_config *before,
		      struct nlattr *opt, struct netlink_ext_ack *extack);
/* Whether a channel with these options fits into a pool of `size` slots. */
int dtm_options_check_pool(const struct dtm_config *config, u32 size,
			   struct netlink_ext_ack *extack);
/* Put options into a nest; under the link's lock. */
int dtm_options_dump(struct sk_buff *skb, const struct dtm_config *config);

/* dtm_netlink.c */

int dtm_netlink_register(void);
void dtm_netlink_unregister(void);

#endif /* DTM_SCHED_H */
