// SPDX-License-Identifier: GPL-2.0-only
/* A shaper, and the queue before it; see departures.h. */

#include <linux/netdevice.h>

#include "compat/compat.h"
#include "departures.h"

/* The minor number of the only class. */
#define DEPARTURES_CLASS	1

static u64 departures_begin(struct Qdisc *sch)
{
	const struct departures *d = qdisc_priv(sch);

	return d->ops->begin ? d->ops->begin(sch) : ktime_get_ns();
}

static void departures_end(struct Qdisc *sch, u64 now)
{
	const struct departures *d = qdisc_priv(sch);

	if (d->ops->end)
		d->ops->end(sch, now);
}

/* Bytes of a packet on the link. */
static s64 departures_bytes(struct Qdisc *sch, const struct sk_buff *skb)
{
	const struct departures *d = qdisc_priv(sch);

	return max_t(s64, (s64)qdisc_pkt_len(skb) + d->overhead, 1);
}

u32 departures_backlog(struct Qdisc *sch, u64 *bytes)
{
	const struct departures *d = qdisc_priv(sch);
	u32 packets = sch->q.qlen, len = sch->qstats.backlog;
	const struct sk_buff *skb;

	/* What a parent has peeked at, or a device has sent back, has left. */
	skb_queue_walk(&sch->gso_skb, skb) {
		packets--;
		len -= qdisc_pkt_len(skb);
	}
	*bytes = max_t(s64, len + (s64)d->overhead * packets, packets);
	return packets;
}

static void departures_changed(struct Qdisc *sch, u64 now)
{
	const struct departures *d = qdisc_priv(sch);

	if (d->ops->changed)
		d->ops->changed(sch, now);
}

static void departures_arrived(struct Qdisc *sch, u32 bytes, bool queued, u64 now)
{
	const struct departures *d = qdisc_priv(sch);

	if (d->ops->arrived)
		d->ops->arrived(sch, bytes, queued, now);
	departures_changed(sch, now);
}

static bool departures_serve(struct Qdisc *sch, struct sk_buff *skb, u64 now)
{
	const struct departures *d = qdisc_priv(sch);

	departure(skb)->bytes = departures_bytes(sch, skb);
	return d->ops->serve(sch, skb, now);
}

static int departures_enqueue_list(struct sk_buff *skb, struct Qdisc *sch,
				   struct sk_buff **to_free)
{
	const struct departures *d = qdisc_priv(sch);
	u32 bytes = departures_bytes(sch, skb);
	bool stays;
	u64 now;

	if (sch->q.qlen >= sch->limit)
		return qdisc_drop(skb, sch, to_free);
	now = departures_begin(sch);
	stays = (!d->ops->has_room || d->ops->has_room(sch, bytes)) &&
		departures_serve(sch, skb, now);
	if (stays)
		qdisc_enqueue_tail(skb, sch);
	departures_arrived(sch, bytes, stays, now);
	departures_end(sch, now);
	return stays ? NET_XMIT_SUCCESS : qdisc_drop(skb, sch, to_free);
}

/* The child is called outside begin and end: it may have locks of the same kind. */
static int departures_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
				    struct sk_buff **to_free)
{
	struct departures *d = qdisc_priv(sch);
	u32 bytes = departures_bytes(sch, skb), len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, d->child, to_free);
	u64 now;

	if (ret == NET_XMIT_SUCCESS) {
		sch->q.qlen++;
		sch->qstats.backlog += len;
	} else if (net_xmit_drop_count(ret)) {
		qdisc_qstats_drop(sch);
	}
	now = departures_begin(sch);
	if (ret == NET_XMIT_SUCCESS && d->waits_since == DEPARTURES_NEVER)
		d->waits_since = now;
	departures_arrived(sch, bytes, ret == NET_XMIT_SUCCESS, now);
	departures_end(sch, now);
	return ret;
}

static int departures_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	const struct departures *d = qdisc_priv(sch);

	if (departures_bytes(sch, skb) > DEPARTURES_LARGEST)
		return qdisc_drop(skb, sch, to_free);
	return d->child ? departures_enqueue_child(skb, sch, to_free) :
			  departures_enqueue_list(skb, sch, to_free);
}

static int departures_enqueue_segments(struct sk_buff *skb, struct Qdisc *sch,
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
		if (departures_enqueue_packet(segment, sch, to_free) == NET_XMIT_SUCCESS) {
			after += size;
			queued++;
		}
	}
	if (!queued) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	consume_skb(skb);
	/* Parents have counted one packet, the buffer: correct them. */
	qdisc_tree_reduce_backlog(sch, 1 - queued, before - after);
	return NET_XMIT_SUCCESS;
}

int departures_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	if (skb_is_gso(skb))
		return departures_enqueue_segments(skb, sch, to_free);
	return departures_enqueue_packet(skb, sch, to_free);
}

/* A packet of the child, which has been counted, has no departure. */
static void departures_discard(struct sk_buff *skb, struct Qdisc *sch)
{
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qstats_drop(sch);
	qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
	kfree_skb(skb);
}

static bool departures_is_pipe(struct Qdisc *sch)
{
	const struct departures *d = qdisc_priv(sch);

	return d->ops->is_pipe && d->ops->is_pipe(sch);
}

/*
 * The child's next packet enters the list; false: the child gives none now. Among packets that wait
 * the link loses no time: what a step offers to one and the next, or a late timer.
 */
static bool departures_pull(struct Qdisc *sch)
{
	struct departures *d = qdisc_priv(sch);
	struct sk_buff *skb = d->child->dequeue(d->child);
	u64 now = departures_begin(sch);
	bool stays = false;

	if (d->waits_since == DEPARTURES_NEVER || departures_is_pipe(sch))
		d->waits_since = now;
	/* The child's stab, or an overhead that has grown, may have made it too large. */
	if (skb)
		stays = departures_bytes(sch, skb) <= DEPARTURES_LARGEST &&
			departures_serve(sch, skb, d->waits_since);
	if (stays) {
		sch->q.qlen--;	/* it was counted when it arrived */
		__qdisc_enqueue_tail(skb, &sch->q);
	}
	if (!skb || !d->child->q.qlen)
		d->waits_since = DEPARTURES_NEVER;
	departures_changed(sch, now);
	departures_end(sch, now);
	if (skb && !stays)
		departures_discard(skb, sch);
	return skb;
}

/* Whether the link takes a packet of the child. */
static bool departures_takes(struct Qdisc *sch)
{
	const struct departures *d = qdisc_priv(sch);

	return d->child && (!sch->q.head || departures_is_pipe(sch));
}

struct sk_buff *departures_dequeue(struct Qdisc *sch)
{
	struct departures *d = qdisc_priv(sch);
	u64 now, leaves_at, look_at = DEPARTURES_NEVER;
	struct sk_buff *skb;

	while (departures_takes(sch) && departures_pull(sch))
		;
	skb = qdisc_peek_head(sch);
	if (!skb)
		return NULL;
	now = departures_begin(sch);
	leaves_at = d->ops->leaves ? d->ops->leaves(sch, skb, &look_at) : departure(skb)->at;
	if (leaves_at > now) {
		look_at = min(look_at, leaves_at);
		if (look_at != DEPARTURES_NEVER)
			qdisc_watchdog_schedule_ns(&d->watchdog, look_at);
		qdisc_qstats_overlimit(sch);
		skb = NULL;
	} else {
		skb = qdisc_dequeue_head(sch);
		departures_changed(sch, now);
	}
	departures_end(sch, now);
	return skb;
}

void departures_reset(struct Qdisc *sch)
{
	struct departures *d = qdisc_priv(sch);
	u64 now;

	qdisc_watchdog_cancel(&d->watchdog);
	if (!d->ops)
		return;
	if (d->child)
		qdisc_reset(d->child);
	d->waits_since = DEPARTURES_NEVER;
	local_bh_disable();
	now = departures_begin(sch);
	qdisc_reset_queue(sch);
	d->ops->clear(sch, now);
	departures_end(sch, now);
	local_bh_enable();
}

int departures_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct departures *d = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);
	int err = nest ? d->ops->dump(sch, skb) : -EMSGSIZE;

	if (!err)
		return nla_nest_end(skb, nest);
	nla_nest_cancel(skb, nest);
	return err;
}

/* Classes: one, whose leaf is the child */

/* The packets of the child that goes are dropped; those of the list are on their way. */
static int departures_graft(struct Qdisc *sch, unsigned long class, struct Qdisc *new,
			    struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct departures *d = qdisc_priv(sch);
	u64 now;

	*old = qdisc_replace(sch, new, &d->child);
	sch_tree_lock(sch);
	d->waits_since = DEPARTURES_NEVER;
	now = departures_begin(sch);
	departures_changed(sch, now);
	departures_end(sch, now);
	sch_tree_unlock(sch);
	return 0;
}

static struct Qdisc *departures_leaf(struct Qdisc *sch, unsigned long class)
{
	const struct departures *d = qdisc_priv(sch);

	return d->child;
}

static unsigned long departures_find(struct Qdisc *sch, u32 id)
{
	return TC_H_MIN(id) == DEPARTURES_CLASS ? DEPARTURES_CLASS : 0;
}

static void departures_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, DEPARTURES_CLASS, walker);
}

static int departures_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb,
				 struct tcmsg *tcm)
{
	const struct departures *d = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(class);
	tcm->tcm_info = d->child ? d->child->handle : 0;
	return 0;
}

const struct Qdisc_class_ops departures_class_ops = {
	.graft	= departures_graft,
	.leaf	= departures_leaf,
	.find	= departures_find,
	.walk	= departures_walk,
	.dump	= departures_dump_class,
};

u32 departures_count(const struct nlattr *list)
{
	const struct nlattr *entry;
	u32 n = 0;
	int rest;

	nla_for_each_nested(entry, list, rest)
		n++;
	return n;
}

void departures_init(struct Qdisc *sch, u32 limit)
{
	struct departures *d = qdisc_priv(sch);

	BUILD_BUG_ON(sizeof(struct departure) > QDISC_CB_PRIV_LEN);
	qdisc_watchdog_init(&d->watchdog, sch);
	d->waits_since = DEPARTURES_NEVER;
	sch->limit = limit;
}

void departures_destroy(struct Qdisc *sch)
{
	struct departures *d = qdisc_priv(sch);

	qdisc_watchdog_cancel(&d->watchdog);
	if (d->child)
		qdisc_put(d->child);
}

void departures_set(struct Qdisc *sch, const struct nlattr *limit, const struct nlattr *overhead)
{
	struct departures *d = qdisc_priv(sch);

	if (limit)
		sch->limit = nla_get_u32(limit);
	if (overhead)
		d->overhead = nla_get_s32(overhead);
}

int departures_put(struct sk_buff *skb, struct Qdisc *sch, int limit, int overhead)
{
	const struct departures *d = qdisc_priv(sch);

	return nla_put_u32(skb, limit, sch->limit) ?: nla_put_s32(skb, overhead, d->overhead);
}
