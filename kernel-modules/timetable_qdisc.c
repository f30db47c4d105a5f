// SPDX-License-Identifier: GPL-2.0-only
/*
 * sch_timetable: a link that changes by a table
 *
 *	enqueue --> departure computed by the table --> FIFO --> dequeue at that time
 *
 * The table is one of rates, of opportunities to send some bytes, or of delays; timetable.h
 * has the arithmetic. A packet leaves when its last bit has been sent; a rate that changes
 * meanwhile affects it pro rata. With opportunities it does what mahimahi's mm-link does with a
 * trace (Netravali et al., ATC 2015): a packet that does not fit waits for the next with what is
 * left.
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
	u64 start_real;				/* as given, ns of CLOCK_REALTIME */
	u64 digest;				/* of the steps */
};

static bool timetable_arrives(struct Qdisc *sch, struct sk_buff *skb, u64 now)
{
	struct timetable_sched_data *q = qdisc_priv(sch);

	departure(skb)->at = timetable_arrive(&q->table, now, departure(skb)->bytes);
	return departure(skb)->at != TIMETABLE_NEVER;
}

static void timetable_clears(struct Qdisc *sch, u64 now)
{
	struct timetable_sched_data *q = qdisc_priv(sch);

	timetable_clear(&q->table, now);
}

static int timetable_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct timetable_sched_data *q = qdisc_priv(sch);
	const struct timetable *tt = &q->table;

	return nla_put_u8(skb, TCA_TIMETABLE_KIND, tt->kind) ?:
	       departures_put(skb, sch, TCA_TIMETABLE_LIMIT, TCA_TIMETABLE_OVERHEAD) ?:
	       nla_put_u64_64bit(skb, TCA_TIMETABLE_START, q->start_real, TCA_TIMETABLE_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_TIMETABLE_PERIOD, tt->period, TCA_TIMETABLE_PAD) ?:
	       nla_put_u32(skb, TCA_TIMETABLE_N_STEPS, tt->n_steps) ?:
	       nla_put_u64_64bit(skb, TCA_TIMETABLE_DIGEST, q->digest, TCA_TIMETABLE_PAD);
}

static const struct departures_ops timetable_departures = {
	.arrive	= timetable_arrives,
	.clear	= timetable_clears,
	.dump	= timetable_dump,
};

static TWOWAY_RANGE timetable_time_range = { .max = TC_TIMETABLE_LONGEST };
static TWOWAY_RANGE timetable_start_range = { .max = TC_TIMETABLE_LATEST_START };
static TWOWAY_RANGE timetable_value_range = { .max = TC_TIMETABLE_MOST };

static const struct nla_policy timetable_step_policy[TCA_TIMETABLE_STEP_MAX + 1] = {
	[TCA_TIMETABLE_STEP_AT]		= NLA_POLICY_FULL_RANGE(NLA_U64, &timetable_time_range),
	[TCA_TIMETABLE_STEP_VALUE]	= NLA_POLICY_FULL_RANGE(NLA_U64, &timetable_value_range),
};

static const struct nla_policy timetable_policy[TCA_TIMETABLE_MAX + 1] = {
	[TCA_TIMETABLE_KIND]	= NLA_POLICY_MAX(NLA_U8, TC_TIMETABLE_KIND_MAX),
	[TCA_TIMETABLE_LIMIT]	= NLA_POLICY_MIN(NLA_U32, 1),
	[TCA_TIMETABLE_OVERHEAD] = DEPARTURES_OVERHEAD_POLICY,
	[TCA_TIMETABLE_START]	= NLA_POLICY_FULL_RANGE(NLA_U64, &timetable_start_range),
	[TCA_TIMETABLE_PERIOD]	= NLA_POLICY_FULL_RANGE(NLA_U64, &timetable_time_range),
	[TCA_TIMETABLE_STEPS]	= NLA_POLICY_NESTED_ARRAY(timetable_step_policy),
};

static int timetable_read_steps(struct timetable_step *step, const struct nlattr *list,
				struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_TIMETABLE_STEP_MAX + 1];
	const struct nlattr *entry;
	int err, rest;

	nla_for_each_nested(entry, list, rest) {
		err = nla_parse_nested(tb, TCA_TIMETABLE_STEP_MAX, entry, timetable_step_policy,
				       extack);
		if (err)
			return err;
		if (!tb[TCA_TIMETABLE_STEP_AT] || !tb[TCA_TIMETABLE_STEP_VALUE])
			return twoway_refuse_attr(extack, entry, "a step needs a time and a value");
		*step++ = (struct timetable_step) {
			.at_ns = nla_get_u64(tb[TCA_TIMETABLE_STEP_AT]),
			.value = nla_get_u64(tb[TCA_TIMETABLE_STEP_VALUE]),
		};
	}
	return 0;
}

/*
 * Read the table that a request asks for; the caller frees its steps. Steps whose first is at 0 are
 * a new table; others are added to the present one.
 */
static int timetable_read(struct timetable *tt, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	const struct nlattr *given = tb[TCA_TIMETABLE_STEPS];
	u32 n = given ? departures_count(given) : 0, stay = tt->n_steps;
	struct timetable_step *steps;
	u8 kind = tt->kind;
	int err;

	steps = kvmalloc_array(max(stay + n, 1U), sizeof(*steps), GFP_KERNEL_ACCOUNT);
	if (!steps)
		return -ENOMEM;
	if (stay)
		memcpy(steps, tt->steps, stay * sizeof(*steps));
	tt->steps = steps;
	err = given ? timetable_read_steps(steps + stay, given, extack) : 0;
	if (err)
		return err;
	if (n && !steps[stay].at_ns) {
		memmove(steps, steps + stay, n * sizeof(*steps));
		stay = 0;
	}
	tt->n_steps = stay + n;
	if (tb[TCA_TIMETABLE_KIND])
		tt->kind = nla_get_u8(tb[TCA_TIMETABLE_KIND]);
	if (tb[TCA_TIMETABLE_PERIOD])
		tt->period = nla_get_u64(tb[TCA_TIMETABLE_PERIOD]);
	if (tt->n_steps > TC_TIMETABLE_MAX_STEPS)
		return twoway_refuse(extack, "a table has at most 1048576 steps");
	if (stay && tt->kind != kind)
		return twoway_refuse(extack, "a table of another kind begins with a step at 0");
	return timetable_check(tt, extack);
}

/* Under the root lock: go on with another table. Packets may have come since it was made. */
static int timetable_begin(struct timetable_sched_data *q, struct timetable *tt,
			   u64 start_real, struct netlink_ext_ack *extack)
{
	u64 now = ktime_get_ns(), now_real = ktime_get_real_ns();

	if (!start_real)
		start_real = now_real;
	if (start_real < now_real - now)
		return twoway_refuse(extack, "the start is before the kernel's");
	tt->free_at = q->table.free_at;
	tt->rest = tt->kind == q->table.kind ? q->table.rest : 0;
	timetable_start(tt, start_real - now_real + now, now);
	q->start_real = start_real;
	swap(q->table, *tt);
	return 0;
}

/* Change the options that are given; the others stay. */
static int timetable_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct timetable_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_TIMETABLE_MAX + 1] = { };
	struct timetable table = q->table;
	u64 start_real = q->start_real, digest;
	int err;

	err = opt ? nla_parse_nested(tb, TCA_TIMETABLE_MAX, opt, timetable_policy, extack) : 0;
	if (err)
		return err;
	if (tb[TCA_TIMETABLE_START])
		start_real = nla_get_u64(tb[TCA_TIMETABLE_START]);
	err = timetable_read(&table, tb, extack);
	if (err)
		goto free;
	digest = timetable_digest(&table);
	sch_tree_lock(sch);
	err = timetable_begin(q, &table, start_real, extack);
	if (!err) {
		q->digest = digest;
		departures_set(sch, tb[TCA_TIMETABLE_LIMIT], tb[TCA_TIMETABLE_OVERHEAD]);
		q->departures.ops = &timetable_departures;
	}
	sch_tree_unlock(sch);
free:
	if (table.steps != q->table.steps)
		kvfree(table.steps);
	return err;
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
	kvfree(q->table.steps);
}

static struct Qdisc_ops timetable_qdisc_ops __read_mostly = {
	DEPARTURES_QDISC_OPS("timetable", struct timetable_sched_data),
	.init		= timetable_init,
	.destroy	= timetable_destroy,
	.change		= timetable_change,
};
MODULE_ALIAS_NET_SCH("timetable");

module_driver(timetable_qdisc_ops, register_qdisc, unregister_qdisc);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("A link that changes by a table of rates, opportunities or delays");
MODULE_LICENSE("GPL");
