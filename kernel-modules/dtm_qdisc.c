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
 * pro rata, and the times are exact: dtm_service.h has the arithmetic. Who decides about n is an
 * allocator: the rate estimator of Abrahamsson, Hagsand and Marsh (2002; dtm_rate.h), thresholds
 * or levels of the backlog, a list of times, or nobody. Channels of one link may share its slots.
 * dtm_channel.h has allocators and pool, dtm_events.c tells user space what they do; this file ties
 * them to packets, netlink and timers.
 *
 * How this differs from DTM hardware: a packet is cut into slots without any encapsulation (give
 * the real one's size with `overhead`); the cycle is not common to the channels of a link, but
 * begins with a packet, and only `framed` channels wait for its end; the protocol by which nodes
 * exchange slots is one number, the signalling delay.
 *
 * Locking: a channel is protected by its link's lock, taken inside the qdisc's root lock. Links
 * are found and dropped under dtm_links_lock. A channel's configuration is replaced, never
 * modified. The clock is read under the link's lock, so that its time never goes back. Nothing is
 * sent under these locks: dtm_events.h says how reallocations get to user space.
 */

#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "compat/compat.h"
#include "pkt_dtm.h"

#define CREATE_TRACE_POINTS
#include "dtm_trace.h"

#include "dtm_channel.h"
#include "dtm_events.h"

/* A link: the slots that some channels share, or that one channel has to itself. */
struct dtm_link {
	struct list_head list;		/* of dtm_links, if shared */
	const struct net_device *dev;	/* what it is found by */
	unsigned int channels;		/* under dtm_links_lock */
	spinlock_t lock;		/* the pool, and the channels */
	struct dtm_pool pool;
	struct dtm_events events;	/* has a lock of its own */
};

struct dtm_sched_data {
	struct dtm_channel channel;
	struct dtm_config *config;	/* the channel's, owned here */
	struct dtm_link *link;
	struct Qdisc *sch;
	struct qdisc_watchdog watchdog;
};

struct dtm_skb_cb {
	u32 bytes;			/* on the link */
};

static LIST_HEAD(dtm_links);
static DEFINE_MUTEX(dtm_links_lock);

static struct dtm_skb_cb *dtm_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct dtm_skb_cb));
	return (struct dtm_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* A channel's slots have changed, or its allocator has started. Under the link's lock. */
static void dtm_channel_changed(const struct dtm_channel *ch, u64 now, u32 from, u32 wanted,
				enum tc_dtm_cause cause)
{
	const struct dtm_sched_data *q = container_of(ch, struct dtm_sched_data, channel);
	const struct dtm_event event = {
		.time_ns	= ktime_to_ns(ktime_mono_to_real(ns_to_ktime(now))),
		.estimate	= ch->rate.estimate,
		.handle		= q->sch->handle,
		.backlog	= ch->bytes,
		.from		= from,
		.to		= ch->slots,
		.wanted		= wanted,
		.cause		= cause,
	};

	trace_dtm_reallocation(qdisc_dev(q->sch), q->sch->handle, ch, now, from, wanted, cause);
	dtm_events_record(&q->link->events, &event);
}

/* Packets */

static u32 dtm_link_bytes(const struct sk_buff *skb, const struct dtm_config *config)
{
	return max_t(s64, (s64)qdisc_pkt_len(skb) + config->overhead, 1);
}

static int dtm_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_channel *ch = &q->channel;
	u32 bytes = dtm_link_bytes(skb, q->config);
	bool room;
	u64 now;

	spin_lock(&q->link->lock);
	now = ktime_get_ns();
	dtm_pool_advance(&q->link->pool, now);
	room = dtm_has_room(ch, bytes);
	if (room)
		dtm_arrive(ch, now, bytes);
	else
		dtm_drop(ch, now, bytes);
	spin_unlock(&q->link->lock);

	if (!room)
		return qdisc_drop(skb, sch, to_free);
	dtm_skb_cb(skb)->bytes = bytes;
	return qdisc_enqueue_tail(skb, sch);
}

/* A GSO buffer is many packets: each takes its own time. */
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
		if (dtm_enqueue_packet(segment, sch, to_free) == NET_XMIT_SUCCESS) {
			after += size;
			queued++;
		}
	}
	consume_skb(skb);
	if (!queued)
		return NET_XMIT_DROP;
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
	struct dtm_channel *ch = &q->channel;
	struct sk_buff *skb, *next;
	u64 now, sent_at;

	if (!qdisc_peek_head(sch))
		return NULL;
	spin_lock(&q->link->lock);
	now = ktime_get_ns();
	dtm_pool_advance(&q->link->pool, now);
	sent_at = dtm_sent_at(ch);
	if (sent_at > now) {
		/* Some events change the end of this transmission: be there in time. */
		u64 due = min(sent_at, dtm_next(ch));

		spin_unlock(&q->link->lock);
		qdisc_watchdog_schedule_ns(&q->watchdog, due);
		return NULL;
	}
	skb = qdisc_dequeue_head(sch);
	next = qdisc_peek_head(sch);
	dtm_depart(ch, now, dtm_skb_cb(skb)->bytes, next ? dtm_skb_cb(next)->bytes : 0);
	spin_unlock(&q->link->lock);
	return skb;
}

static void dtm_reset(struct Qdisc *sch)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_channel *ch = &q->channel;
	u64 now;

	qdisc_reset_queue(sch);
	if (!q->link)
		return;
	qdisc_watchdog_cancel(&q->watchdog);
	spin_lock_bh(&q->link->lock);
	now = ktime_get_ns();
	dtm_pool_advance(&q->link->pool, now);
	dtm_clear(ch, now);
	spin_unlock_bh(&q->link->lock);
}

/* Options: one row each for parsing, range and dump; what concerns several follows */

struct dtm_option {
	const char *refusal;
	s64 min;
	s64 max;
	u16 attribute;
	u16 offset;			/* in struct dtm_config */
	u8 type;
};

#define DTM_OPTION(_attribute, _type, _field, _name, _min, _max, _unit) {		\
	.refusal	= _name " must be " __stringify(_min) ".." __stringify(_max) _unit,	\
	.min		= _min,								\
	.max		= _max,								\
	.attribute	= TCA_DTM_##_attribute,						\
	.offset		= offsetof(struct dtm_config, _field),				\
	.type		= NLA_##_type,							\
}

static const struct dtm_option dtm_options[] = {
	DTM_OPTION(SLOTS, U32, slots, "slots", 1, 8192, ""),
	DTM_OPTION(LIMIT, U32, limit, "limit", 1, 1000000000, " packets"),
	DTM_OPTION(LIMIT_BYTES, U32, limit_bytes, "limit-bytes", 0, 4294967295, ""),
	DTM_OPTION(OVERHEAD, S32, overhead, "overhead", -64, 1024, " bytes"),
	DTM_OPTION(FRAMED, U8, framed, "framed", 0, 1, ""),
	DTM_OPTION(ALLOCATOR, U8, allocator, "allocator", 0, 4, ""),
	DTM_OPTION(MIN_SLOTS, U32, min_slots, "min", 1, 8192, " slots"),
	DTM_OPTION(MAX_SLOTS, U32, max_slots, "max", 1, 8192, " slots"),
	DTM_OPTION(CHANGE, U64, change_ns, "change", 0, 3600000000000, " ns"),
	DTM_OPTION(SIGNALLING, U64, signalling_ns, "signalling", 0, 60000000000, " ns"),
	DTM_OPTION(SAMPLE, U64, sample_ns, "sample", 1000000, 60000000000, " ns"),
	DTM_OPTION(SHIFT_UP, U8, shift_up, "shift-up", 0, 16, ""),
	DTM_OPTION(SHIFT_DOWN, U8, shift_down, "shift-down", 0, 16, ""),
	DTM_OPTION(MARGIN, U32, margin, "margin", 0, 8192000, " thousandths of a slot"),
	DTM_OPTION(CORRIDOR, U32, corridor, "corridor", 0, 8192000, " thousandths of a slot"),
	DTM_OPTION(ROUNDING, U8, rounding, "rounding", 0, 2, ""),
	DTM_OPTION(COUNT, U8, count, "count", 0, 1, ""),
	DTM_OPTION(HOLD_ON_LOSS, U64, hold_ns, "hold-on-loss", 0, 60000000000, " ns"),
	DTM_OPTION(ESTIMATE, U64, estimate, "estimate", 0, 1099511627776, " bit/s"),
	DTM_OPTION(HIGH, U32, high, "high", 1, 4294967295, " bytes"),
	DTM_OPTION(LOW, U32, low, "low", 0, 4294967295, " bytes"),
	DTM_OPTION(RISE, U64, rise_ns, "rise", 0, 60000000000, " ns"),
	DTM_OPTION(FALL, U64, fall_ns, "fall", 0, 60000000000, " ns"),
	DTM_OPTION(STEP, U32, step, "step", 1, 8192, " slots"),
	DTM_OPTION(POOL, U32, pool, "pool", 1, 8192, " slots"),
	DTM_OPTION(OWNED, U32, owned, "owned", 0, 8192, " slots"),
};

static struct nla_policy dtm_policy[TCA_DTM_MAX + 1] __ro_after_init = {
	[TCA_DTM_UNSPEC]	= { .type = NLA_REJECT },
	[TCA_DTM_PAD]		= { .type = NLA_REJECT },
	[TCA_DTM_LEVELS]	= { .type = NLA_BINARY },
	[TCA_DTM_TRACE]		= { .type = NLA_BINARY },
	/* dtm_module_init() adds dtm_options[] */
};

static s64 dtm_get_option(const struct nlattr *attr, u8 type)
{
	switch (type) {
	case NLA_U8:
		return nla_get_u8(attr);
	case NLA_U32:
		return nla_get_u32(attr);
	case NLA_S32:
		return nla_get_s32(attr);
	default:
		/* Beyond the sign bit is beyond every range, too. */
		return min_t(u64, nla_get_u64(attr), S64_MAX);
	}
}

static int dtm_parse_option(const struct dtm_option *option, const struct nlattr *attr,
			    struct dtm_config *config, struct netlink_ext_ack *extack)
{
	s64 value = dtm_get_option(attr, option->type);
	void *field = (void *)config + option->offset;

	if (value < option->min || value > option->max) {
		if (extack)
			extack->_msg = option->refusal;
		NL_SET_BAD_ATTR(extack, attr);
		return -ERANGE;
	}
	if (option->type == NLA_U8)
		*(u8 *)field = value;
	else if (option->type == NLA_U64)
		*(u64 *)field = value;
	else
		*(u32 *)field = value;
	return 0;
}

static int dtm_put_option(struct sk_buff *skb, const struct dtm_option *option,
			  const struct dtm_config *config)
{
	const void *field = (const void *)config + option->offset;

	if (option->type == NLA_U8)
		return nla_put_u8(skb, option->attribute, *(const u8 *)field);
	if (option->type == NLA_U64)
		return nla_put_u64_64bit(skb, option->attribute, *(const u64 *)field,
					 TCA_DTM_PAD);
	return nla_put_u32(skb, option->attribute, *(const u32 *)field);
}

static int dtm_parse_levels(const struct nlattr *attr, struct dtm_config *config,
			    struct netlink_ext_ack *extack)
{
	const size_t size = sizeof(config->levels[0]);
	u32 n = nla_len(attr) / size;

	if (nla_len(attr) % size || n < 2 || n > DTM_MAX_LEVELS) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "levels must be 2..32, each of 12 bytes");
		return -EINVAL;
	}
	memcpy(config->levels, nla_data(attr), n * size);
	config->n_levels = n;
	return 0;
}

static int dtm_parse_trace(const struct nlattr *attr, struct dtm_config *config,
			   struct netlink_ext_ack *extack)
{
	const size_t size = sizeof(config->steps[0]);
	u32 n = nla_len(attr) / size;

	if (nla_len(attr) % size || n < 1 || n > DTM_MAX_STEPS) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "trace must have 1..256 steps, each of 8 bytes");
		return -EINVAL;
	}
	memcpy(config->steps, nla_data(attr), n * size);
	config->n_steps = n;
	return 0;
}

static int dtm_check_levels(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	const struct tc_dtm_level *level = c->levels;
	u32 k;

	if (!c->n_levels) {
		NL_SET_ERR_MSG(extack, "allocator hysteresis needs levels");
		return -EINVAL;
	}
	if (level[0].slots < c->min_slots || level[c->n_levels - 1].slots > c->max_slots) {
		NL_SET_ERR_MSG(extack, "slots of levels must lie within min and max");
		return -EINVAL;
	}
	for (k = 0; k + 1 < c->n_levels; k++) {
		if (level[k + 1].slots <= level[k].slots) {
			NL_SET_ERR_MSG(extack, "slots of levels must rise");
			return -EINVAL;
		}
		if (level[k].up_bytes <= level[k + 1].down_bytes) {
			NL_SET_ERR_MSG(extack, "up of a level must be above down of the next");
			return -EINVAL;
		}
	}
	return 0;
}

static int dtm_check_trace(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	u32 k;

	if (!c->n_steps) {
		NL_SET_ERR_MSG(extack, "allocator trace needs steps");
		return -EINVAL;
	}
	for (k = 0; k < c->n_steps; k++) {
		if (c->steps[k].slots < c->min_slots || c->steps[k].slots > c->max_slots) {
			NL_SET_ERR_MSG(extack, "slots of steps must lie within min and max");
			return -EINVAL;
		}
		if (k && !c->steps[k].after_us) {
			NL_SET_ERR_MSG(extack, "a step must come after the one before it");
			return -EINVAL;
		}
	}
	return 0;
}

static int dtm_check(const struct dtm_config *c, struct netlink_ext_ack *extack)
{
	if (c->min_slots > c->max_slots) {
		NL_SET_ERR_MSG(extack, "min must not exceed max");
		return -EINVAL;
	}
	if (c->slots < c->min_slots || c->slots > c->max_slots) {
		NL_SET_ERR_MSG(extack, "slots must lie within min and max");
		return -EINVAL;
	}
	if (c->low >= c->high) {
		NL_SET_ERR_MSG(extack, "low must be below high");
		return -EINVAL;
	}
	if (c->owned && !c->pool) {
		NL_SET_ERR_MSG(extack, "owned needs a pool");
		return -EINVAL;
	}
	if (c->pool && (c->slots > c->pool || dtm_guaranteed(c) > c->pool)) {
		NL_SET_ERR_MSG(extack, "slots, min and owned must not exceed the pool");
		return -EINVAL;
	}
	if (c->allocator == DTM_HYSTERESIS)
		return dtm_check_levels(c, extack);
	if (c->allocator == DTM_TRACE)
		return dtm_check_trace(c, extack);
	return 0;
}

/* Read options into a configuration that has the previous ones. */
static int dtm_parse(struct nlattr *opt, struct dtm_config *config, struct nlattr **tb,
		     struct netlink_ext_ack *extack)
{
	int err, i;

	/* Strict, but for the nested flag of TCA_OPTIONS, which tc does not set. */
	err = __nla_parse(tb, TCA_DTM_MAX, nla_data(opt), nla_len(opt), dtm_policy,
			  NL_VALIDATE_STRICT, extack);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(dtm_options); i++) {
		const struct nlattr *attr = tb[dtm_options[i].attribute];

		err = attr ? dtm_parse_option(&dtm_options[i], attr, config, extack) : 0;
		if (err)
			return err;
	}
	err = tb[TCA_DTM_LEVELS] ? dtm_parse_levels(tb[TCA_DTM_LEVELS], config, extack) : 0;
	if (err)
		return err;
	return tb[TCA_DTM_TRACE] ? dtm_parse_trace(tb[TCA_DTM_TRACE], config, extack) : 0;
}

/* Links */

static struct dtm_link *dtm_find_link(const struct net_device *dev)
{
	struct dtm_link *link;

	list_for_each_entry(link, &dtm_links, list)
		if (link->dev == dev)
			return link;
	return NULL;
}

/* The link of a channel to be: the device's shared one, or one of its own. */
static struct dtm_link *dtm_get_link(const struct net_device *dev,
				     const struct dtm_config *config,
				     struct netlink_ext_ack *extack)
{
	struct dtm_link *link = config->pool ? dtm_find_link(dev) : NULL;

	if (link && link->pool.size != config->pool) {
		NL_SET_ERR_MSG(extack, "the channels of one link must agree on its pool");
		return ERR_PTR(-EINVAL);
	}
	if (link && !dtm_pool_has_room(&link->pool, dtm_guaranteed(config))) {
		NL_SET_ERR_MSG(extack, "the link's other channels are guaranteed too many slots");
		return ERR_PTR(-ENOSPC);
	}
	if (!link) {
		link = kvzalloc(sizeof(*link), GFP_KERNEL);
		if (!link)
			return ERR_PTR(-ENOMEM);
		INIT_LIST_HEAD(&link->list);
		link->dev = dev;
		link->pool.size = config->pool ?: DTM_MAX_SLOTS;
		spin_lock_init(&link->lock);
		dtm_events_init(&link->events, dev_net(dev), dev->ifindex);
		if (config->pool)
			list_add(&link->list, &dtm_links);
	}
	link->channels++;
	return link;
}

static void dtm_put_link(struct dtm_link *link)
{
	if (!--link->channels) {
		list_del(&link->list);
		kvfree(link);
	}
}

/* The qdisc's life */

static int dtm_configure(struct Qdisc *sch, struct nlattr *opt, struct dtm_config *config,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_DTM_MAX + 1] = {};
	struct dtm_sched_data *q = qdisc_priv(sch);
	int err;

	*config = dtm_defaults;
	if (opt) {
		err = dtm_parse(opt, config, tb, extack);
		if (err)
			return err;
	}
	if (!tb[TCA_DTM_SLOTS]) {
		config->slots = clamp(config->slots, config->min_slots, config->max_slots);
		if (config->pool)
			config->slots = min(config->slots, config->pool);
	}
	err = dtm_check(config, extack);
	if (err)
		return err;

	mutex_lock(&dtm_links_lock);
	q->link = dtm_get_link(qdisc_dev(sch), config, extack);
	if (IS_ERR(q->link)) {
		err = PTR_ERR(q->link);
		q->link = NULL;
	} else {
		u64 now;

		spin_lock_bh(&q->link->lock);
		now = ktime_get_ns();
		dtm_pool_advance(&q->link->pool, now);
		dtm_pool_join(&q->link->pool, &q->channel, config, now);
		spin_unlock_bh(&q->link->lock);
	}
	mutex_unlock(&dtm_links_lock);
	if (!err)
		dtm_events_flush(&q->link->events);
	return err;
}

static int dtm_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_config *config;
	int err;

	q->sch = sch;
	qdisc_watchdog_init(&q->watchdog, sch);
	config = kmalloc(sizeof(*config), GFP_KERNEL);
	if (!config)
		return -ENOMEM;
	err = dtm_configure(sch, opt, config, extack);
	if (err)
		kfree(config);
	else
		q->config = config;
	return err;
}

/* Also called when init failed. */
static void dtm_destroy(struct Qdisc *sch)
{
	struct dtm_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	if (!q->link)
		return;
	spin_lock_bh(&q->link->lock);
	dtm_pool_advance(&q->link->pool, ktime_get_ns());
	dtm_pool_leave(&q->channel);
	spin_unlock_bh(&q->link->lock);
	/* A channel that has left records no more events; send those that it has recorded. */
	dtm_events_flush(&q->link->events);
	mutex_lock(&dtm_links_lock);
	dtm_put_link(q->link);
	mutex_unlock(&dtm_links_lock);
	kfree(q->config);
}

/* Under the link's lock: the pool must have room for what the new configuration guarantees. */
static bool dtm_may_reconfigure(const struct dtm_channel *ch, const struct dtm_config *config)
{
	u32 guaranteed = dtm_guaranteed(config), before = dtm_guaranteed(ch->config);

	return guaranteed <= before || dtm_pool_has_room(ch->pool, guaranteed - before);
}

static int dtm_apply(struct Qdisc *sch, struct dtm_config *config, struct nlattr **tb,
		     struct netlink_ext_ack *extack)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	/* Naming the allocator, or giving it another beginning, starts it afresh. */
	bool restart = tb[TCA_DTM_ALLOCATOR] || tb[TCA_DTM_ESTIMATE] || tb[TCA_DTM_LEVELS] ||
		       tb[TCA_DTM_TRACE];
	int err = 0;
	u64 now;

	sch_tree_lock(sch);
	spin_lock(&q->link->lock);
	now = ktime_get_ns();
	dtm_pool_advance(&q->link->pool, now);
	if (dtm_may_reconfigure(&q->channel, config)) {
		dtm_reconfigure(&q->channel, config, now, restart,
				tb[TCA_DTM_SLOTS] ? config->slots : 0);
		swap(q->config, config);
	} else {
		NL_SET_ERR_MSG(extack, "the link's other channels are guaranteed too many slots");
		err = -ENOSPC;
	}
	spin_unlock(&q->link->lock);
	sch_tree_unlock(sch);
	if (!err)
		qdisc_watchdog_schedule_ns(&q->watchdog, now);
	dtm_events_flush(&q->link->events);
	kfree(config);
	return err;
}

static int dtm_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_DTM_MAX + 1] = {};
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_config *config;
	int err;

	if (!opt)
		return 0;
	config = kmemdup(q->config, sizeof(*config), GFP_KERNEL);
	if (!config)
		return -ENOMEM;
	err = dtm_parse(opt, config, tb, extack);
	if (!err && config->pool != q->config->pool) {
		NL_SET_ERR_MSG(extack, "a channel joins its link's pool when it is added");
		err = -EBUSY;
	}
	if (!err) {
		if (!tb[TCA_DTM_SLOTS])
			config->slots = clamp(config->slots, config->min_slots,
					      config->max_slots);
		err = dtm_check(config, extack);
	}
	if (err) {
		kfree(config);
		return err;
	}
	return dtm_apply(sch, config, tb, extack);
}

static bool dtm_is_shown(const struct dtm_option *option, const struct dtm_config *config)
{
	switch (option->attribute) {
	case TCA_DTM_SAMPLE ... TCA_DTM_ESTIMATE:
		return config->allocator == DTM_RATE;
	case TCA_DTM_HIGH ... TCA_DTM_STEP:
		return config->allocator == DTM_BUFFER;
	case TCA_DTM_POOL ... TCA_DTM_OWNED:
		return config->pool;
	default:
		return true;
	}
}

static int dtm_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct dtm_sched_data *q = qdisc_priv(sch);
	const struct dtm_config *config = q->config;
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < ARRAY_SIZE(dtm_options); i++)
		if (dtm_is_shown(&dtm_options[i], config) &&
		    dtm_put_option(skb, &dtm_options[i], config))
			goto full;
	if (config->allocator == DTM_HYSTERESIS &&
	    nla_put(skb, TCA_DTM_LEVELS, config->n_levels * sizeof(config->levels[0]),
		    config->levels))
		goto full;
	if (config->allocator == DTM_TRACE &&
	    nla_put(skb, TCA_DTM_TRACE, config->n_steps * sizeof(config->steps[0]),
		    config->steps))
		goto full;
	return nla_nest_end(skb, nest);
full:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

static int dtm_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct dtm_sched_data *q = qdisc_priv(sch);
	struct dtm_channel *ch = &q->channel;
	struct tc_dtm_xstats st;
	u64 now;

	spin_lock_bh(&q->link->lock);
	now = ktime_get_ns();
	dtm_pool_advance(&q->link->pool, now);
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
	int err, i;

	for (i = 0; i < ARRAY_SIZE(dtm_options); i++)
		dtm_policy[dtm_options[i].attribute].type = dtm_options[i].type;
	err = dtm_events_register();
	if (err)
		return err;
	err = register_qdisc(&dtm_qdisc_ops);
	if (err)
		dtm_events_unregister();
	return err;
}

static void __exit dtm_module_exit(void)
{
	unregister_qdisc(&dtm_qdisc_ops);
	dtm_events_unregister();
}

module_init(dtm_module_init);
module_exit(dtm_module_exit);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("A channel of a DTM network: slots of 512 kbit/s, reallocated while in use");
MODULE_LICENSE("GPL");
