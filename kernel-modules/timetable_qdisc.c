// SPDX-License-Identifier: GPL-2.0-only
/*
 * sch_timetable: a link that changes by a table
 *
 *	enqueue --> departure computed by the table --> FIFO --> dequeue at that time
 *
 * The table is one of rates, of opportunities to send some bytes, or of delays; timetable.h
 * has the arithmetic. A packet leaves when its last bit has been sent; a rate that changes
 * meanwhile affects it pro rata. Of opportunities this is what mahimahi's mm-link does with a trace
 * (Netravali et al., ATC 2015): a packet that does not fit waits for the next with what is left.
 *
 * How this differs from a netem whose rate or delay is changed at some times: that fixes a packet's
 * departure by the rate at its arrival, changes when a program gets to it, and lets a packet with a
 * shorter delay overtake. Here packets keep their order.
 *
 * Locking: all is under the qdisc's root lock.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "compat/netlink.h"
#include "departures.h"
#include "timetable.h"

struct timetable_sched_data {
	struct departures departures;
	struct timetable table;
	struct tc_timetable_step *steps;	/* of the table */
	u64 start_real;				/* as given, ns of CLOCK_REALTIME */
	u64 digest;				/* of the steps */
};

static bool timetable_arrives(struct Qdisc *sch, struct sk_buff *skb, u64 now)
{
	struct timetable_sched_data *q = qdisc_priv(sch);

	departure(skb)->at = timetable_arrive(&q->table, now, departure(skb)->bytes);
	return departure(skb)->at != TIMETABLE_NEVER;
}

static u64 timetable_leaves(struct Qdisc *sch, const struct sk_buff *skb, u64 *look_at)
{
	return departure(skb)->at;
}

static void timetable_clears(struct Qdisc *sch, u64 now)
{
	struct timetable_sched_data *q = qdisc_priv(sch);

	timetable_clear(&q->table, now);
}

static const struct departures_ops timetable_departures = {
	.arrive	= timetable_arrives,
	.leaves	= timetable_leaves,
	.clear	= timetable_clears,
};

static TWOWAY_RANGE timetable_start_range = { .max = TC_TIMETABLE_LATEST_START };

static const struct nla_policy timetable_policy[TCA_TIMETABLE_MAX + 1] = {
	[TCA_TIMETABLE_KIND]	= NLA_POLICY_MAX(NLA_U8, TC_TIMETABLE_KIND_MAX),
	[TCA_TIMETABLE_LIMIT]	= NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_TIMETABLE_OVERHEAD] = DEPARTURES_OVERHEAD_POLICY,
	[TCA_TIMETABLE_START]	= NLA_POLICY_FULL_RANGE(NLA_U64, &timetable_start_range),
	[TCA_TIMETABLE_PERIOD]	= { .type = NLA_U64 },
	[TCA_TIMETABLE_STEPS]	= { .type = NLA_BINARY },
};

/*
 * The steps of a table after a request: those given if the first of them is at 0, for so a table
 * begins; else those that are there, and those given.
 */
static struct tc_timetable_step *timetable_steps(struct timetable *tt, const struct nlattr *given,
						 struct netlink_ext_ack *extack, bool *is_new)
{
	u32 bytes = given ? nla_len(given) : 0, n = bytes / sizeof(struct tc_timetable_step);
	u32 stay = tt->n_steps;
	struct tc_timetable_step *steps, first = { };

	if (n * sizeof(*steps) != bytes) {
		NL_SET_ERR_MSG(extack, "a part of a step");
		return ERR_PTR(-EINVAL);
	}
	*is_new = !stay || (n && nla_memcpy(&first, given, sizeof(first)) && !first.at_ns);
	if (*is_new)
		stay = 0;
	if (n > TC_TIMETABLE_MAX_STEPS - stay) {
		NL_SET_ERR_MSG(extack, "a table has at most 1048576 steps");
		return ERR_PTR(-ENOSPC);
	}
	steps = kvmalloc_array(max(stay + n, 1U), sizeof(*steps), GFP_KERNEL_ACCOUNT);
	if (!steps)
		return ERR_PTR(-ENOMEM);
	if (stay)
		memcpy(steps, tt->steps, stay * sizeof(*steps));
	if (n)
		memcpy(steps + stay, nla_data(given), bytes);
	tt->n_steps = stay + n;
	tt->steps = steps;
	return steps;
}

/* Of a change: what is not given stays. */
static int timetable_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct timetable_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_TIMETABLE_MAX + 1];
	struct timetable table = q->table;
	struct tc_timetable_step *steps;
	u64 start_real = q->start_real;
	u64 now, now_real, digest;
	const char *problem;
	bool is_new;
	int err;

	if (!opt) {
		NL_SET_ERR_MSG(extack, "a timetable needs steps");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, TCA_TIMETABLE_MAX, opt, timetable_policy, extack);
	if (err)
		return err;
	if (tb[TCA_TIMETABLE_KIND])
		table.kind = nla_get_u8(tb[TCA_TIMETABLE_KIND]);
	if (tb[TCA_TIMETABLE_PERIOD])
		table.period = nla_get_u64(tb[TCA_TIMETABLE_PERIOD]);
	if (tb[TCA_TIMETABLE_START])
		start_real = nla_get_u64(tb[TCA_TIMETABLE_START]);
	steps = timetable_steps(&table, tb[TCA_TIMETABLE_STEPS], extack, &is_new);
	if (IS_ERR(steps))
		return PTR_ERR(steps);
	problem = timetable_problem(&table);
	if (table.kind != q->table.kind && !is_new)
		problem = "a table of another kind begins with a step at 0";
	digest = timetable_digest(&table);
	if (problem) {
		twoway_refuse(extack, problem);
		kvfree(steps);
		return -EINVAL;
	}

	sch_tree_lock(sch);
	now = ktime_get_ns();
	now_real = ktime_get_real_ns();
	if (!start_real)
		start_real = now_real;
	/* Packets may have come since. */
	table.free_at = q->table.free_at;
	table.rest = table.kind == q->table.kind ? q->table.rest : 0;
	if (start_real < now_real - now) {
		sch_tree_unlock(sch);
		NL_SET_ERR_MSG(extack, "the start is before the kernel's");
		kvfree(steps);
		return -EINVAL;
	}
	timetable_start(&table, start_real - now_real + now, now);
	q->table = table;
	q->start_real = start_real;
	q->digest = digest;
	swap(q->steps, steps);
	departures_set(sch, tb[TCA_TIMETABLE_LIMIT], tb[TCA_TIMETABLE_OVERHEAD]);
	q->departures.ops = &timetable_departures;
	sch_tree_unlock(sch);
	kvfree(steps);
	return 0;
}

static int timetable_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	departures_init(sch, 1000);
	return timetable_change(sch, opt, extack);
}

static void timetable_destroy(struct Qdisc *sch)
{
	struct timetable_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->departures.watchdog);
	kvfree(q->steps);
}

static int timetable_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct timetable_sched_data *q = qdisc_priv(sch);
	const struct timetable *tt = &q->table;
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u8(skb, TCA_TIMETABLE_KIND, tt->kind) ||
	    departures_put(skb, sch, TCA_TIMETABLE_LIMIT, TCA_TIMETABLE_OVERHEAD) ||
	    nla_put_u64_64bit(skb, TCA_TIMETABLE_START, q->start_real, TCA_TIMETABLE_PAD) ||
	    nla_put_u64_64bit(skb, TCA_TIMETABLE_PERIOD, tt->period, TCA_TIMETABLE_PAD) ||
	    nla_put_u32(skb, TCA_TIMETABLE_N_STEPS, tt->n_steps) ||
	    nla_put_u64_64bit(skb, TCA_TIMETABLE_DIGEST, q->digest, TCA_TIMETABLE_PAD)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static struct Qdisc_ops timetable_qdisc_ops __read_mostly = {
	.id		= "timetable",
	.priv_size	= sizeof(struct timetable_sched_data),
	.enqueue	= departures_enqueue,
	.dequeue	= departures_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= timetable_init,
	.reset		= departures_reset,
	.destroy	= timetable_destroy,
	.change		= timetable_change,
	.dump		= timetable_dump,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("timetable");

static int __init timetable_module_init(void)
{
	return register_qdisc(&timetable_qdisc_ops);
}

static void __exit timetable_module_exit(void)
{
	unregister_qdisc(&timetable_qdisc_ops);
}

module_init(timetable_module_init);
module_exit(timetable_module_exit);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("A link that changes by a table of rates, opportunities or delays");
MODULE_LICENSE("GPL");
