// SPDX-License-Identifier: GPL-2.0-only
/*
 * sch_medium: a half-duplex medium that both directions of a link share
 *
 *	end 0:	enqueue --> queue --> dequeue --\
 *						 >-- one medium, by turns
 *	end 1:	enqueue --> queue --> dequeue --/
 *
 * A queue at each end of a link joins a medium by its number. One packet is sent at a time;
 * medium.h says whose. A packet leaves its queue when its last bit has been sent. A medium belongs
 * to a network namespace: that of the queue's device, or one that the queue names (named_net.h), as
 * the nodes of a link have a namespace each. It exists as long as a queue is on it.
 *
 * Who has the medium is decided when the clock has passed the start of a transmission, by whoever
 * looks first: either queue, or the medium's timer, which wakes the queue whose packet has been
 * sent. A queue that is not asked for packets, because its device or its parent holds it back,
 * does not hold up the other.
 *
 * Locking: the list of media and who is on them are protected by media_lock; turns, and what both
 * ends look at of the queues (packets, rate), by the medium's lock, which is taken inside
 * the root lock of any qdisc. The clock is read under the medium's lock: it never goes back.
 */

#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>

#include "compat/compat.h"
#include "compat/netlink.h"
#include "compat/timer.h"
#include "departures.h"
#include "medium.h"
#include "named_net.h"

struct medium_sched_data;

struct medium {
	struct list_head list;			/* of all media */
	struct net *net;			/* where others find it; NULL: that has ended */
	u32 number;
	struct list_head queues;		/* under media_lock */
	struct medium_sched_data *ends[2];	/* queues that had packets last; or NULL */
	spinlock_t lock;			/* protects what follows, and parts of the queues */
	struct medium_turns turns;
	struct hrtimer timer;			/* at the end of a transmission */
};

struct medium_sched_data {
	struct departures departures;
	struct Qdisc *sch;
	struct list_head list;		/* of the medium's queues */
	struct medium *medium;		/* NULL until it has joined */
	int end;			/* of the medium */
	struct sk_buff *waiting;	/* the first that has not had the medium; NULL: none */
	u64 rate;			/* bytes/s */
};

static DEFINE_MUTEX(media_lock);
static LIST_HEAD(media);

/* Under the medium's lock */

static u64 medium_bits_of_next(const struct medium_sched_data *q)
{
	return medium_bits(departure(q->waiting)->bytes, q->rate);
}

/* Book all transmissions that started before now. */
static u64 medium_advance(struct medium *m)
{
	u64 now = ktime_get_ns();

	for (;;) {
		int end = medium_next(&m->turns);
		struct medium_sched_data *q;

		if (end == MEDIUM_NO_END || m->turns.start_at >= now)
			return now;
		q = m->ends[end];
		departure(q->waiting)->at =
			medium_send(&m->turns, end, medium_bits_of_next(q));
		q->waiting = q->waiting->next;
	}
}

static bool medium_has_sent(const struct medium_sched_data *q, u64 now)
{
	const struct sk_buff *skb = qdisc_peek_head(q->sch);

	return skb && skb != q->waiting && departure(skb)->at <= now;
}

static void medium_wake(const struct medium_sched_data *q, u64 now)
{
	if (!q || !medium_has_sent(q, now))
		return;
	rcu_read_lock();
	__netif_schedule(qdisc_root(q->sch));
	rcu_read_unlock();
}

/* Let the timer expire when the present transmission ends, or else the next one. */
static void medium_arm(struct medium *m, u64 now)
{
	u64 ends_at = m->turns.end_at;

	if (ends_at <= now) {
		int end = medium_next(&m->turns);

		if (end == MEDIUM_NO_END)
			return;
		ends_at = medium_leaves(&m->turns, end, medium_bits_of_next(m->ends[end]));
	}
	if (!hrtimer_is_queued(&m->timer) || ktime_to_ns(hrtimer_get_expires(&m->timer)) != ends_at)
		hrtimer_start(&m->timer, ns_to_ktime(ends_at), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart medium_expires(struct hrtimer *timer)
{
	struct medium *m = container_of(timer, struct medium, timer);
	u64 now;

	spin_lock(&m->lock);
	now = medium_advance(m);
	medium_wake(m->ends[0], now);
	medium_wake(m->ends[1], now);
	medium_arm(m, now);
	spin_unlock(&m->lock);
	return HRTIMER_NORESTART;
}

/* Packets: see departures.h */

static u64 medium_lock(struct Qdisc *sch)
	__acquires(&((struct medium_sched_data *)qdisc_priv(sch))->medium->lock)
{
	struct medium_sched_data *q = qdisc_priv(sch);

	spin_lock(&q->medium->lock);
	return medium_advance(q->medium);
}

static void medium_unlock(struct Qdisc *sch, u64 now)
	__releases(&((struct medium_sched_data *)qdisc_priv(sch))->medium->lock)
{
	struct medium_sched_data *q = qdisc_priv(sch);
	struct medium *m = q->medium;

	medium_wake(m->ends[!q->end], now);
	medium_arm(m, now);
	spin_unlock(&m->lock);
}

static bool medium_serves(struct Qdisc *sch, struct sk_buff *skb, u64 came)
{
	struct medium_sched_data *q = qdisc_priv(sch);

	/* A queue that it replaces has been emptied. */
	q->medium->ends[q->end] = q;
	medium_arrive(&q->medium->turns, q->end, came);
	if (!q->waiting)
		q->waiting = skb;
	return true;
}

/* While the packet waits for the medium, the medium's timer wakes its queue. */
static u64 medium_departs_at(struct Qdisc *sch, const struct sk_buff *skb, u64 *look_at)
{
	const struct medium_sched_data *q = qdisc_priv(sch);

	return skb == q->waiting ? DEPARTURES_NEVER : departure(skb)->at;
}

static void medium_clears(struct Qdisc *sch, u64 now)
{
	struct medium_sched_data *q = qdisc_priv(sch);

	q->waiting = NULL;
	if (q->medium->ends[q->end] == q)
		medium_clear(&q->medium->turns, q->end, now);
}

static int medium_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct medium_sched_data *q = qdisc_priv(sch);
	const struct medium *m = q->medium;
	int err;

	mutex_lock(&media_lock);
	err = named_net_dump(skb, sch, m->net, TCA_MEDIUM_NETNSID);
	mutex_unlock(&media_lock);
	return err ?:
	       nla_put_u32(skb, TCA_MEDIUM_NUMBER, m->number) ?:
	       nla_put_u64_64bit(skb, TCA_MEDIUM_GAP, m->turns.gap, TCA_MEDIUM_PAD) ?:
	       nla_put_u32(skb, TCA_MEDIUM_TURN, m->turns.turn_packets) ?:
	       nla_put_u64_64bit(skb, TCA_MEDIUM_RATE, q->rate, TCA_MEDIUM_PAD) ?:
	       departures_put(skb, sch, TCA_MEDIUM_LIMIT, TCA_MEDIUM_OVERHEAD);
}

static const struct departures_ops medium_departures = {
	.begin	= medium_lock,
	.end	= medium_unlock,
	.serve	= medium_serves,
	.leaves	= medium_departs_at,
	.clear	= medium_clears,
	.dump	= medium_dump,
};

/* Media */

static int medium_check(const struct medium *m, struct nlattr **tb,
			struct netlink_ext_ack *extack)
{
	const struct nlattr *gap = tb[TCA_MEDIUM_GAP], *turn = tb[TCA_MEDIUM_TURN];

	if (gap && nla_get_u64(gap) != m->turns.gap)
		return twoway_refuse_attr(extack, gap, "the medium has another gap");
	if (turn && nla_get_u32(turn) != m->turns.turn_packets)
		return twoway_refuse_attr(extack, turn, "the medium has turns of another length");
	return 0;
}

static struct medium *medium_find(const struct net *net, u32 number)
{
	struct medium *m;

	list_for_each_entry(m, &media, list)
		if (m->net == net && m->number == number)
			return m;
	return NULL;
}

static struct medium *medium_new(struct net *net, u32 number, struct nlattr **tb)
{
	struct medium *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	u64 gap = tb[TCA_MEDIUM_GAP] ? nla_get_u64(tb[TCA_MEDIUM_GAP]) : 0;
	u32 turn = tb[TCA_MEDIUM_TURN] ? nla_get_u32(tb[TCA_MEDIUM_TURN]) : 1;

	if (!m)
		return NULL;
	m->net = net;
	m->number = number;
	INIT_LIST_HEAD(&m->queues);
	spin_lock_init(&m->lock);
	medium_begin(&m->turns, gap, turn);
	hrtimer_setup(&m->timer, medium_expires, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	list_add(&m->list, &media);
	return m;
}

/* The end of the queue that one replaces, else the first end without a queue, else none. */
static int medium_free_end(const struct medium *m, const struct Qdisc *sch)
{
	const struct medium_sched_data *q;
	bool taken[2] = { };

	list_for_each_entry(q, &m->queues, list) {
		if (qdisc_dev(q->sch) == qdisc_dev(sch) && q->sch->parent == sch->parent)
			return q->end;
		taken[q->end] = true;
	}
	if (taken[0] && taken[1])
		return MEDIUM_NO_END;
	return taken[0];
}

static int medium_join(struct medium_sched_data *q, struct net *net, struct nlattr **tb,
		       struct netlink_ext_ack *extack)
{
	u32 number = nla_get_u32(tb[TCA_MEDIUM_NUMBER]);
	struct medium *m = medium_find(net, number);
	int err;

	if (!m)
		m = medium_new(net, number, tb);
	if (!m)
		return -ENOMEM;
	err = medium_check(m, tb, extack);
	q->end = medium_free_end(m, q->sch);
	if (!err && q->end == MEDIUM_NO_END)
		err = twoway_refuse(extack, "two queues are on this medium already");
	if (err)
		return err;
	q->medium = m;
	list_add(&q->list, &m->queues);
	return 0;
}

/* Its packets are gone: reset came before. */
static void medium_part(struct medium_sched_data *q)
{
	struct medium *m = q->medium;

	mutex_lock(&media_lock);
	spin_lock_bh(&m->lock);
	if (m->ends[q->end] == q)
		m->ends[q->end] = NULL;
	spin_unlock_bh(&m->lock);
	list_del(&q->list);
	if (list_empty(&m->queues)) {
		list_del(&m->list);
		hrtimer_cancel(&m->timer);
		kfree(m);
	}
	mutex_unlock(&media_lock);
}

/* A network namespace ends, and none joins its media any more. */
static void __net_exit media_forget(struct net *net)
{
	struct medium *m;

	mutex_lock(&media_lock);
	list_for_each_entry(m, &media, list)
		if (m->net == net)
			WRITE_ONCE(m->net, NULL);
	mutex_unlock(&media_lock);
}

static struct pernet_operations media_net_ops = {
	.exit	= media_forget,
};

/* Options */

static TWOWAY_RANGE medium_gap_range = { .max = TC_MEDIUM_MAX_GAP };
static TWOWAY_RANGE medium_rate_range = { .min = 1, .max = TC_MEDIUM_MAX_RATE };

static const struct nla_policy medium_policy[TCA_MEDIUM_MAX + 1] = {
	[TCA_MEDIUM_NUMBER]	= { .type = NLA_U32 },
	[TCA_MEDIUM_GAP]	= NLA_POLICY_FULL_RANGE(NLA_U64, &medium_gap_range),
	[TCA_MEDIUM_TURN]	= NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_MEDIUM_RATE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &medium_rate_range),
	[TCA_MEDIUM_OVERHEAD]	= DEPARTURES_OVERHEAD_POLICY,
	[TCA_MEDIUM_LIMIT]	= NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_MEDIUM_NETNS_FD]	= { .type = NLA_U32 },
	[TCA_MEDIUM_NETNSID]	= { .type = NLA_S32 },
};

/* Set the options that a change gives; the others stay. */
static void medium_set(struct Qdisc *sch, struct nlattr **tb)
{
	struct medium_sched_data *q = qdisc_priv(sch);
	struct medium *m = q->medium;
	u64 now;

	sch_tree_lock(sch);
	departures_set(sch, tb[TCA_MEDIUM_LIMIT], tb[TCA_MEDIUM_OVERHEAD]);
	spin_lock(&m->lock);
	now = medium_advance(m);
	if (tb[TCA_MEDIUM_RATE])
		q->rate = nla_get_u64(tb[TCA_MEDIUM_RATE]);
	medium_arm(m, now);
	spin_unlock(&m->lock);
	sch_tree_unlock(sch);
}

static int medium_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct medium_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_MEDIUM_MAX + 1];
	const struct nlattr *number;
	int err, same;

	err = nla_parse_nested(tb, TCA_MEDIUM_MAX, opt, medium_policy, extack);
	if (err)
		return err;
	same = named_net_is(sch, tb[TCA_MEDIUM_NETNS_FD], tb[TCA_MEDIUM_NETNSID],
			    READ_ONCE(q->medium->net), extack);
	if (same < 0)
		return same;
	number = tb[TCA_MEDIUM_NUMBER];
	if (!same || (number && nla_get_u32(number) != q->medium->number))
		return twoway_refuse(extack, "a queue stays on its medium");
	err = medium_check(q->medium, tb, extack);
	if (!err)
		medium_set(sch, tb);
	return err;
}

static int medium_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct medium_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_MEDIUM_MAX + 1] = { };
	struct net *net;
	int err;

	departures_init(sch, 1000);
	err = opt ? nla_parse_nested(tb, TCA_MEDIUM_MAX, opt, medium_policy, extack) : 0;
	if (err)
		return err;
	if (!tb[TCA_MEDIUM_NUMBER] || !tb[TCA_MEDIUM_RATE])
		return twoway_refuse(extack, "a queue needs the number of its medium and a rate");
	q->sch = sch;
	net = named_net_get(sch, tb[TCA_MEDIUM_NETNS_FD], tb[TCA_MEDIUM_NETNSID], extack);
	if (IS_ERR(net))
		return PTR_ERR(net);
	mutex_lock(&media_lock);
	err = medium_join(q, net, tb, extack);
	mutex_unlock(&media_lock);
	put_net(net);
	if (err)
		return err;
	medium_set(sch, tb);
	q->departures.ops = &medium_departures;
	return 0;
}

/* Also after an init that failed. */
static void medium_destroy(struct Qdisc *sch)
{
	struct medium_sched_data *q = qdisc_priv(sch);

	if (q->medium)
		medium_part(q);
	departures_destroy(sch);
}

static struct Qdisc_ops medium_qdisc_ops __read_mostly = {
	DEPARTURES_QDISC_OPS("medium", struct medium_sched_data),
	.init		= medium_init,
	.destroy	= medium_destroy,
	.change		= medium_change,
};
MODULE_ALIAS_NET_SCH("medium");

static int __init medium_module_init(void)
{
	int err = register_pernet_subsys(&media_net_ops);

	if (err)
		return err;
	err = register_qdisc(&medium_qdisc_ops);
	if (err)
		unregister_pernet_subsys(&media_net_ops);
	return err;
}

static void __exit medium_module_exit(void)
{
	unregister_qdisc(&medium_qdisc_ops);
	unregister_pernet_subsys(&media_net_ops);
}

module_init(medium_module_init);
module_exit(medium_module_exit);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("A half-duplex medium that both directions of a link share");
MODULE_LICENSE("GPL");
