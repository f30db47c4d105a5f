// SPDX-License-Identifier: GPL-2.0-only
/*
 * sch_dtm: a channel of a DTM network
 *
 * Dynamic synchronous Transfer Mode (ETSI ES 201 803; Bohm et al., JSAC 1996) divides a link into
 * cycles of 125 us and those into slots of 64 bits. A channel holds n slots of every cycle, which
 * is n * 512 kbit/s, and n changes while it is in use. This queueing discipline is one channel:
 *
 *	 enqueue --> drop-tail queue --> transmission over n slots --> dequeue
 *		|	      |			    ^
 *		| bytes	      | backlog		    | n
 *		+----------> allocator ----------> slot pool of the link
 *
 * A packet leaves when its last bit has been sent, a change of n affects the packet in service
 * pro rata, and the times are exact, on any clock and below any parent: dtm_service.h has the
 * arithmetic. Who decides about n is an allocator: the rate estimator of Abrahamsson, Hagsand and
 * Marsh (2002; dtm_rate.h), thresholds or levels of the backlog, a list of times, or nobody.
 * Channels of several devices, also in several network namespaces, may share a link's slots.
 *
 *	this file	packets, timers, the qdisc's life
 *	dtm_options.c	options <--> netlink
 *	dtm_core.c	channel and pool
 *	dtm_alloc_*.c	a file for each allocator
 *	dtm_link.c	pools and their names
 *	dtm_netlink.c	generic netlink: pools, channels, events
 *
 * How this differs from DTM hardware: a packet is cut into slots without any encapsulation (give
 * the real one's size with `overhead`); only `framed` channels keep to slots and cycles; the
 * protocol by which nodes exchange slots is one number, the signalling delay.
 *
 * Locking: see dtm_link.h. A channel's configuration is replaced under its link's lock, never
 * modified. The watchdog is armed under that lock, too: what another channel does to this one's
 * slots, on another processor, then arms it after us, not before. Nothing is sent under these
 * locks: dtm_netlink.c says how reallocations get to user space.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "compat/compat.h"

#define CREATE_TRACE_POINTS
#include "dtm_trace.h"

#include "dtm_sched.h"

struct dtm_skb_cb {
	u64 tag;			/* see dtm_service.h */
	u32 bytes;			/* on the link */
};

static struct dtm_skb_cb *dtm_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct dtm_skb_cb));
	return (struct dtm_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* Under the link's lock. */
void dtm_channel_changed(struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
			 enum tc_dtm_cause cause)
{
	struct dtm_sched_data *q = container_of(ch, struct dtm_sched_data, channel);

	trace_dtm_reallocation(qdisc_dev(q->sch), q->sch->handle, ch, now, from, wanted, cause);
	dtm_netlink_record(q, now, from, wanted, cause);
	/* Sooner than its timer knows: the slots may come from a channel of another device. */
	if (cause == TC_DTM_CAUSE_GRANTED && ch->packets)
		qdisc_watchdog_schedule_ns(&q->watchdog, now);
}

/* Lock the link and let happen what is due; the time. Softirqs are off: packets come and go so. */
static u64 dtm_lock(struct dtm_sched_data *q)
	__acquires(&q->link->lock)
{
	u64 now;

	spin_lock(&q->link->lock);
	now = ktime_get_ns();
	dtm_pool_advance(&q->link->pool, now);
	return now;
}

static void dtm_unlock(struct dtm_sched_data *q)
	__releases(&q->link->lock)
{
	spin_unlock(&q->link->lock);
}

/* The same, from where softirqs may be on. */
static u64 dtm_lock_bh(struct dtm_sched_data *q)
	__acquires(&q->link->lock)
{
	local_bh_disable();
	return dtm_lock(q);
}

static void dtm_unlock_bh(struct dtm_sched_data *q)
	__releases(&q->link->lock)
{
	dtm_unlock(q);
	local_bh_enable();
}

/* Packets */

static u32 dtm_link_bytes(const struct sk_buff *skb, const struct dtm_config *config)
{
	return max_t(s64, (s64)qdisc_pkt_len(skb) + config->overhead, 1);
}

static int dtm_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	u32 bytes = dtm_link_bytes(skb, q->config);
	u64 now;

	/* The backlog and the configuration change under the qdisc's lock, too. */
	if (!dtm_has_room(&q->channel, bytes)) {
		if (dtm_notes_drops(&q->channel)) {
			now = dtm_lock(q);
			dtm_drop(&q->channel, now, bytes);
			dtm_unlock(q);
		}
		return qdisc_drop(skb, sch, to_free);
	}
	now = dtm_lock(q);
	*dtm_skb_cb(skb) = (struct dtm_skb_cb) {
		.tag	= dtm_arrive(&q->channel, now, bytes),
		.bytes	= bytes,
	};
	dtm_unlock(q);
	return qdisc_enqueue_tail(skb, sch);
}

/*
 * A GSO buffer is many packets: each takes its own time. A stab does not see them, as it would have
 * seen single packets (modules cannot ask it): give their size on the link with `overhead`.
 */
static int dtm_enqueue_segments(struct sk_buff *skb, struct Qdisc *sch,
				struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int before = qdisc_pkt_len(skb), after = 0;
	struct sk_buff *segments, *segment, *next;
	int queued = 0;

	segments = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segments))
		return qdisc_drop(skb, sch, to_free);

	skb_list_walk_safe(segments, segment, next) {
		unsigned int size = segment->len;

		skb_mark_not_on_list(segment);
		qdisc_skb_cb(segment)->pkt_len = size;
		twoway_one_segment(segment);
		if (dtm_enqueue_packet(segment, sch, to_free) == NET_XMIT_SUCCESS) {
			after += size;
			queued++;
		}
	}
	if (!queued) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	consume_skb(skb);
	/* The parents count the one packet that they passed on. */
	qdisc_tree_reduce_backlog(sch, 1 - queued, before - after);
	return NET_XMIT_SUCCESS;
}

static int dtm_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (skb_is_gso(skb))
		return dtm_enqueue_segments(skb, sch, to_free);
	return dtm_enqueue_packet(skb, sch, to_free);
}

static struct sk_buff *dtm_dequeue(struct Qdisc *sch)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_peek_head(sch);
	u64 now, sent_at;

	if (!skb)
		return NULL;
	now = dtm_lock(q);
	sent_at = dtm_sent_at(&q->channel, dtm_skb_cb(skb)->tag);
	if (sent_at > now) {
		/* Some events change the end of this transmission: look again at their time. */
		qdisc_watchdog_schedule_ns(&q->watchdog, min(sent_at, dtm_next(&q->channel)));
		qdisc_qstats_overlimit(sch);
		skb = NULL;
	} else {
		skb = qdisc_dequeue_head(sch);
		dtm_depart(&q->channel, now, dtm_skb_cb(skb)->bytes);
	}
	dtm_unlock(q);
	return skb;
}

static void dtm_reset(struct Qdisc *sch)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	u64 now;

	qdisc_reset_queue(sch);
	if (!q->link)
		return;
	qdisc_watchdog_cancel(&q->watchdog);
	now = dtm_lock_bh(q);
	dtm_clear(&q->channel, now);
	dtm_unlock_bh(q);
}

/* The qdisc's life */

/* Under the link's lock: the pool must have room for what a channel is guaranteed, and was not. */
static int dtm_check_room(const struct dtm_pool *pool, u32 before, u32 guaranteed,
			  struct netlink_ext_ack *extack)
{
	if (guaranteed > before && !dtm_pool_has_room(pool, guaranteed - before)) {
		NL_SET_ERR_MSG(extack, "the pool's other channels are guaranteed too many slots");
		return -ENOSPC;
	}
	return 0;
}

/* Under dtm_links_lock. */
static int dtm_join(struct Qdisc *sch, const struct dtm_options *options,
		    struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct net *net = dev_net(qdisc_dev(sch));
	struct dtm_config *config = options->config;
	struct dtm_link *link = dtm_link_get(net, config->pool, extack);
	u64 now;
	int err;

	if (IS_ERR(link))
		return PTR_ERR(link);
	if (!options->slots && config->min_slots <= link->pool.size)
		config->initial = min(config->initial, link->pool.size);
	err = dtm_options_check_pool(config, link->pool.size, extack);
	if (!err)
		err = dtm_netlink_add(net, q);
	if (err)
		goto put;
	q->link = link;
	q->config = config;
	now = dtm_lock_bh(q);
	err = dtm_check_room(&link->pool, 0, dtm_guaranteed(config), extack);
	if (!err)
		dtm_pool_join(&link->pool, &q->channel, config, now);
	dtm_unlock_bh(q);
	if (!err)
		return 0;
	q->link = NULL;
	q->config = NULL;
	dtm_netlink_remove(q);
put:
	dtm_link_put(link);
	return err;
}

static int dtm_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_options options;
	int err;

	q->sch = sch;
	qdisc_watchdog_init(&q->watchdog, sch);
	err = dtm_options_parse(&options, &dtm_defaults, opt, extack);
	if (err)
		return err;
	if (options.config->overhead && rcu_access_pointer(sch->stab)) {
		NL_SET_ERR_MSG(extack, "overhead and a stab would count twice: give one of them");
		err = -EINVAL;
	}
	if (!err) {
		mutex_lock(&dtm_links_lock);
		err = dtm_join(sch, &options, extack);
		mutex_unlock(&dtm_links_lock);
	}
	if (err)
		kvfree(options.config);
	else
		dtm_netlink_flush(dev_net(qdisc_dev(sch)));
	return err;
}

/* Also called when init failed. */
static void dtm_destroy(struct Qdisc *sch)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	u64 now;

	if (q->link) {
		mutex_lock(&dtm_links_lock);
		now = dtm_lock_bh(q);
		dtm_pool_leave(&q->channel, now);
		dtm_unlock_bh(q);
		dtm_netlink_remove(q);
		dtm_link_put(q->link);
		mutex_unlock(&dtm_links_lock);
		dtm_netlink_flush(dev_net(qdisc_dev(sch)));
		kvfree(q->config);
	}
	/* Last: until it had left, other channels might have armed it. */
	qdisc_watchdog_cancel(&q->watchdog);
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
	if (strcmp(options.config->pool, q->config->pool)) {
		NL_SET_ERR_MSG(extack, "a channel joins its pool when it is added");
		err = -EBUSY;
	} else {
		err = dtm_options_check_pool(options.config, q->link->pool.size, extack);
	}
	if (err)
		goto free;
	sch_tree_lock(sch);
	now = dtm_lock_bh(q);
	err = dtm_check_room(&q->link->pool, dtm_guaranteed(q->config),
			     dtm_guaranteed(options.config), extack);
	if (!err) {
		dtm_reconfigure(&q->channel, options.config, now, options.restart, options.slots);
		swap(q->config, options.config);
		qdisc_watchdog_schedule_ns(&q->watchdog, now);
	}
	dtm_unlock_bh(q);
	sch_tree_unlock(sch);
	dtm_netlink_flush(dev_net(qdisc_dev(sch)));
free:
	kvfree(options.config);
	return err;
}

static int dtm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	int err;

	/* Against a change, which replaces it. */
	spin_lock_bh(&q->link->lock);
	err = dtm_options_dump(skb, q->config);
	spin_unlock_bh(&q->link->lock);
	return err;
}

static int dtm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_channel *ch = &q->channel;
	struct tc_dtm_xstats st;
	u64 now;

	now = dtm_lock_bh(q);
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
	dtm_unlock_bh(q);
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops dtm_qdisc_ops __read_mostly = {
	.id		= "dtm",
	.priv_size	= sizeof(struct dtm_sched_data),
	.enqueue	= dtm_enqueue,
	.dequeue	= dtm_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= dtm_init,
	.reset		= dtm_reset,
	.destroy	= dtm_destroy,
	.change		= dtm_change,
	.dump		= dtm_dump,
	.dump_stats	= dtm_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("dtm");

static int __init dtm_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct dtm_skb_cb) > QDISC_CB_PRIV_LEN);

	err = dtm_netlink_register();
	if (err)
		return err;
	err = register_qdisc(&dtm_qdisc_ops);
	if (err)
		dtm_netlink_unregister();
	return err;
}

static void __exit dtm_module_exit(void)
{
	unregister_qdisc(&dtm_qdisc_ops);
	dtm_netlink_unregister();
}

module_init(dtm_module_init);
module_exit(dtm_module_exit);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("A channel of a DTM network: slots of 512 kbit/s, reallocated while in use");
MODULE_LICENSE("GPL");
