// SPDX-License-Identifier: GPL-2.0-only
/*
 * sch_dtm: a channel of a DTM network
 *
 * Dynamic synchronous Transfer Mode (ETSI ES 201 803; Bohm et al., JSAC 1996) divides a link into
 * cycles of 125 us and those into slots of 64 bits. A channel holds n slots of every cycle, which
 * is n * 512 kbit/s, and n changes while it is in use. This queueing discipline is one channel:
 *
 *	 enqueue -----> queue -----> transmission over n slots --> dequeue
 *		|	  |		    ^
 *		| bytes	  | backlog	    | n
 *		+----> allocator ----> slot pool of the link
 *
 * A packet leaves when its last bit has been sent, a change of n affects the packet in service
 * pro rata, and the times are exact, on any clock and below any parent: dtm_service.c has the
 * arithmetic. An allocator decides n: the rate estimator of Abrahamsson, Hagsand and Marsh (2002;
 * dtm_alloc_rate.c), thresholds or levels of the backlog, or a list of times. A static channel has
 * none. Channels of several devices, also in several network namespaces, may share a link's slots.
 *
 *	this file	packets, timers, the qdisc's life
 *	dtm_options.c	options <--> netlink
 *	dtm_core.c	channel and pool
 *	dtm_service.c	transmission
 *	dtm_alloc_*.c	a file for each allocator
 *	dtm_link.c	pools and their names
 *	dtm_netlink.c	generic netlink: pools
 *	dtm_trace.h	reallocations as they happen
 *
 * How this differs from DTM hardware: a packet is cut into slots without any encapsulation (give
 * the real one's size with `overhead`); only `framed` channels keep to slots and cycles; the
 * protocol by which nodes exchange slots is one number, the signalling delay.
 *
 * Locking: see dtm_link.h. A channel's configuration is replaced under its link's lock, never
 * modified. The watchdog is armed under that lock, too: what another channel does to this one's
 * slots, on another processor, then arms it after us, not before. Nothing is sent under these
 * locks: netlink allocates, wakes readers, and hands copies to nlmon devices, whose channels would
 * wait for what this processor holds. A trace event (dtm_trace.h) does none of that.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "compat/compat.h"

#define CREATE_TRACE_POINTS
#include "dtm_trace.h"

#include "compat/netlink.h"
#include "dtm_sched.h"
#include "named_net.h"

/* Under the link's lock. */
void dtm_channel_changed(struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
			 enum tc_dtm_cause cause)
{
	struct dtm_sched_data *q = container_of(ch, struct dtm_sched_data, channel);

	trace_dtm_reallocation(qdisc_dev(q->sch), q->sch->handle, ch, now, from, wanted, cause);
	/* The packet leaves before its timer: another device's channel may have given the slots. */
	if (cause == TC_DTM_CAUSE_GRANTED && ch->packets)
		qdisc_watchdog_schedule_ns(&q->departures.watchdog, now);
}

/* Packets: see departures.h */

static void dtm_changes(struct Qdisc *sch, u64 now)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	u64 bytes;
	u32 packets = departures_backlog(sch, &bytes);

	if (!q->link->pool.behind)
		dtm_backlog(&q->channel, now, packets, bytes,
			    q->departures.waits_since != DEPARTURES_NEVER);
}

/* What came while the pool was behind arrives now. */
static void dtm_catch_up(struct Qdisc *sch, u64 now)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;

	for (skb = q->untagged; skb; skb = skb->next)
		departure(skb)->at = dtm_serve(&q->channel, now, departure(skb)->bytes);
	q->untagged = NULL;
	dtm_arrive(&q->channel, q->uncounted);
	q->uncounted = 0;
	dtm_changes(sch, now);
}

static u64 dtm_begin(struct Qdisc *sch)
	__acquires(&((struct dtm_sched_data *)qdisc_priv(sch))->link->lock)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	u64 now = dtm_link_lock(q->link);

	if (!q->link->pool.behind && (q->untagged || q->uncounted))
		dtm_catch_up(sch, now);
	return now;
}

static void dtm_end(struct Qdisc *sch, u64 now)
	__releases(&((struct dtm_sched_data *)qdisc_priv(sch))->link->lock)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	spin_unlock(&q->link->lock);
}

static bool dtm_fits(struct Qdisc *sch, u32 bytes)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	return q->link->pool.behind ? sch->q.qlen < q->config->limit :
				      dtm_has_room(&q->channel, bytes);
}

static void dtm_arrived(struct Qdisc *sch, u32 bytes, bool queued, u64 now)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	if (q->link->pool.behind)
		q->uncounted += queued ? bytes : 0;
	else if (queued)
		dtm_arrive(&q->channel, bytes);
	else if (dtm_notes_drops(&q->channel))
		dtm_drop(&q->channel, now, bytes);
}

static bool dtm_serves(struct Qdisc *sch, struct sk_buff *skb, u64 came)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	if (q->link->pool.behind)
		q->untagged = q->untagged ?: skb;
	else
		departure(skb)->at = dtm_serve(&q->channel, came, departure(skb)->bytes);
	return true;
}

static u64 dtm_leaves(struct Qdisc *sch, const struct sk_buff *skb, u64 *look_at)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	if (q->link->pool.behind) {
		*look_at = q->link->pool.now;	/* at once, but let others run */
		return DEPARTURES_NEVER;
	}
	/* Some events change the end of this transmission. */
	*look_at = dtm_next(&q->channel);
	return dtm_sent_at(&q->channel, departure(skb)->at);
}

static void dtm_clears(struct Qdisc *sch, u64 now)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	q->untagged = NULL;
	q->uncounted = 0;
	dtm_clear(&q->channel, now);
}

static int dtm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct dtm_sched_data *q = qdisc_priv(sch);
	int err;

	/* The pool's namespace must not end meanwhile. */
	mutex_lock(&dtm_links_lock);
	/* A change, which replaces the configuration, must wait. */
	spin_lock_bh(&q->link->lock);
	err = dtm_options_dump(skb, q->config);
	spin_unlock_bh(&q->link->lock);
	if (!err && q->config->pool[0])
		err = named_net_dump(skb, sch, q->link->net, TCA_DTM_POOL_NETNSID);
	mutex_unlock(&dtm_links_lock);
	return err;
}

static const struct departures_ops dtm_departures = {
	.begin	= dtm_begin,
	.end	= dtm_end,
	.has_room = dtm_fits,
	.serve	= dtm_serves,
	.leaves	= dtm_leaves,
	.arrived = dtm_arrived,
	.changed = dtm_changes,
	.clear	= dtm_clears,
	.dump	= dtm_dump,
};

/* The qdisc's life */

/* Under the link's lock: the pool must have room for what a guarantee grows by. */
static int dtm_check_room(const struct dtm_pool *pool, u32 before, u32 guaranteed,
			  struct netlink_ext_ack *extack)
{
	if (guaranteed <= before || dtm_pool_has_room(pool, guaranteed - before))
		return 0;
	return twoway_refuse_as(-ENOSPC, extack, NULL,
				"the pool's other channels are guaranteed too many slots");
}

/* Join a named pool of a namespace, or one of its own; under dtm_links_lock. */
static int dtm_join(struct Qdisc *sch, struct net *net, const struct dtm_options *options,
		    struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_config *config = options->config;
	struct dtm_link *link = dtm_link_get(net, config->pool, extack);
	u64 now;
	int err;

	if (IS_ERR(link))
		return PTR_ERR(link);
	if (!options->sized && config->min_slots <= link->pool.size)
		config->initial = min(config->initial, link->pool.size);
	err = dtm_options_check_pool(config, link->pool.size, extack);
	if (err)
		goto put;
	q->link = link;
	q->config = config;
	q->departures.overhead = config->overhead;
	now = dtm_link_lock_bh(q->link);
	err = dtm_check_room(&link->pool, 0, dtm_guaranteed(config), extack);
	if (!err)
		dtm_pool_join(&link->pool, &q->channel, config, now);
	spin_unlock_bh(&q->link->lock);
	if (!err) {
		q->departures.ops = &dtm_departures;
		return 0;
	}
	q->link = NULL;
	q->config = NULL;
put:
	dtm_link_put(link);
	return err;
}

static int dtm_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_options options;
	struct net *net;
	int err;

	q->sch = sch;
	/*
	 * No limit here: dtm_fits() checks the configuration's, and dtm_arrived() tells the
	 * allocator of drops.
	 */
	departures_init(sch, U32_MAX);
	err = dtm_options_parse(&options, &dtm_defaults, opt, extack);
	if (err)
		return err;
	if (options.config->overhead && rcu_access_pointer(sch->stab)) {
		NL_SET_ERR_MSG(extack, "overhead and a stab would count twice: give one of them");
		err = -EINVAL;
	}
	if (!err) {
		net = named_net_get(sch, options.netns_fd, options.netnsid, extack);
		err = PTR_ERR_OR_ZERO(net);
	}
	if (!err) {
		mutex_lock(&dtm_links_lock);
		err = dtm_join(sch, net, &options, extack);
		mutex_unlock(&dtm_links_lock);
		put_net(net);
	}
	if (err)
		kvfree(options.config);
	return err;
}

/* Also called when init failed. */
static void dtm_destroy(struct Qdisc *sch)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	u64 now;

	if (q->link) {
		mutex_lock(&dtm_links_lock);
		now = dtm_link_lock_bh(q->link);
		dtm_pool_leave(&q->channel, now);
		spin_unlock_bh(&q->link->lock);
		dtm_link_put(q->link);
		mutex_unlock(&dtm_links_lock);
		kvfree(q->config);
	}
	/* Last: until it had left, other channels might have armed its watchdog. */
	departures_destroy(sch);
}

/* A channel stays in its pool. */
static int dtm_check_same_pool(struct Qdisc *sch, const struct dtm_options *options,
			       struct netlink_ext_ack *extack)
{
	const struct dtm_sched_data *q = qdisc_priv(sch);
	int same = named_net_is(sch, options->netns_fd, options->netnsid,
				READ_ONCE(q->link->net), extack);

	if (same < 0 || (same && !strcmp(options->config->pool, q->config->pool)))
		return min(same, 0);
	return twoway_refuse_as(-EBUSY, extack, NULL, "a channel joins its pool when it is added");
}

static int dtm_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_options options;
	int err;
	u64 now;

	err = dtm_options_parse(&options, q->config, opt, extack);
	if (err)
		return err;
	err = dtm_check_same_pool(sch, &options, extack);
	if (!err && options.config->slot_rate != q->config->slot_rate)
		err = twoway_refuse(extack, "a channel's slot is chosen when it is added");
	if (!err)
		err = dtm_options_check_pool(options.config, q->link->pool.size, extack);
	if (err)
		goto free;
	/* Let a pool that is behind catch up while softirqs may run. */
	dtm_link_lock_bh(q->link);
	spin_unlock_bh(&q->link->lock);
	sch_tree_lock(sch);
	now = dtm_link_lock_bh(q->link);
	err = dtm_check_room(&q->link->pool, dtm_guaranteed(q->config),
			     dtm_guaranteed(options.config), extack);
	if (!err) {
		dtm_reconfigure(&q->channel, options.config, now, options.restart, options.slots);
		swap(q->config, options.config);
		q->departures.overhead = q->config->overhead;
		qdisc_watchdog_schedule_ns(&q->departures.watchdog, now);
	}
	spin_unlock_bh(&q->link->lock);
	sch_tree_unlock(sch);
free:
	kvfree(options.config);
	return err;
}

static int dtm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_channel *ch = &q->channel;
	struct tc_dtm_xstats st;
	u64 now;

	now = dtm_link_lock_bh(q->link);
	dtm_count_slots(ch, now);
	st = (struct tc_dtm_xstats) {
		.slots		= ch->slots,
		.target		= ch->target,
		.borrowed	= dtm_borrowed(ch),
		.pool_free	= ch->pool->size - ch->pool->used,
		.estimate	= ch->rate.estimate,
		.lower		= ch->rate.lower,
		.upper		= ch->rate.upper,
		.samples	= ch->samples,
		.grows		= ch->grows,
		.shrinks	= ch->shrinks,
		.denied		= ch->denied,
		.reclaimed	= ch->reclaimed,
		.slot_seconds	= ch->slot_seconds,
		.slot_ns	= ch->slot_ns,
		.age_ns		= ch->counted_ns - ch->created_ns,
		.last_change_ns	= ch->changed_ns - ch->created_ns,
		.peak_packets	= ch->peak_packets,
		.peak_bytes	= ch->peak_bytes,
	};
	spin_unlock_bh(&q->link->lock);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops dtm_qdisc_ops __read_mostly = {
	DEPARTURES_QDISC_OPS("dtm", struct dtm_sched_data),
	.init		= dtm_init,
	.destroy	= dtm_destroy,
	.change		= dtm_change,
	.dump_stats	= dtm_dump_stats,
};
MODULE_ALIAS_NET_SCH("dtm");

static int __init dtm_module_init(void)
{
	int err = dtm_links_register();

	if (err)
		return err;
	err = dtm_netlink_register();
	if (err)
		goto unregister_links;
	err = register_qdisc(&dtm_qdisc_ops);
	if (!err)
		return 0;
	dtm_netlink_unregister();
unregister_links:
	dtm_links_unregister();
	return err;
}

static void __exit dtm_module_exit(void)
{
	unregister_qdisc(&dtm_qdisc_ops);
	dtm_netlink_unregister();
	dtm_links_unregister();
}

module_init(dtm_module_init);
module_exit(dtm_module_exit);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("A channel of a DTM network: slots of 512 kbit/s, reallocated while in use");
MODULE_LICENSE("GPL");
