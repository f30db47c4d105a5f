// SPDX-License-Identifier: GPL-2.0-only
/* A FIFO whose departures are computed; see departures.h. */

#include <linux/netdevice.h>

#include "compat/compat.h"
#include "departures.h"

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

static int departures_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	const struct departures *d = qdisc_priv(sch);
	s64 bytes = max_t(s64, (s64)qdisc_pkt_len(skb) + d->overhead, 1);
	bool stays;
	u64 now;

	if (sch->q.qlen >= sch->limit || bytes > DEPARTURES_LARGEST)
		return qdisc_drop(skb, sch, to_free);
	departure(skb)->bytes = bytes;
	now = departures_begin(sch);
	stays = d->ops->arrive(sch, skb, now);
	if (stays)
		qdisc_enqueue_tail(skb, sch);
	departures_end(sch, now);
	return stays ? NET_XMIT_SUCCESS : qdisc_drop(skb, sch, to_free);
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

struct sk_buff *departures_dequeue(struct Qdisc *sch)
{
	struct departures *d = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_peek_head(sch);
	u64 now, leaves_at, look_at = DEPARTURES_NEVER;

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
		if (d->ops->depart)
			d->ops->depart(sch, skb, now);
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
	sch->limit = limit;
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
