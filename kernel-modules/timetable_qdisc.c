// SPDX-License-Identifier: GPL-2.0-only
/*
 * sch_timetable: a link that changes by a table
 *
 *	enqueue --> queue --> departure computed by the table --> dequeue at that time
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
	u64 start;				/* when the table started, ns */
};

/* Zero of CLOCK_REALTIME is this long before zero of the clock that never jumps, ns. */
static u64 timetable_epoch(void)
{
	return ktime_to_ns(ktime_mono_to_real(0));
}

static bool timetable_serves(struct Qdisc *sch, struct sk_buff *skb, u64 came)
{
	struct timetable_sched_data *q = qdisc_priv(sch);

	departure(skb)->at = timetable_arrive(&q->table, came, departure(skb)->bytes);
	return departure(skb)->at != TIMETABLE_NEVER;
}

static bool timetable_is_delay(struct Qdisc *sch)
{
	const struct timetable_sched_data *q = qdisc_priv(sch);

	return q->table.kind == TC_TIMETABLE_DELAY;
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
	       nla_put_u64_64bit(skb, TCA_TIMETABLE_START, q->start + timetable_epoch(),
				 TCA_TIMETABLE_PAD) ?:
	       nla_put_u64_64bit(skb, TCA_TIMETABLE_PERIOD, tt->period, TCA_TIMETABLE_PAD) ?:
	       nla_put_u32(skb, TCA_TIMETABLE_N_STEPS, tt->n_steps) ?:
	       nla_put_u64_64bit(skb, TCA_TIMETABLE_DIGEST, tt->digest, TCA_TIMETABLE_PAD);
}

static const struct departures_ops timetable_departures = {
	.serve	= timetable_serves,
	.is_pipe = timetable_is_delay,
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

static int timetable_read_step(struct timetable_step *step, const struct nlattr *entry,
			       struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_TIMETABLE_STEP_MAX + 1];
	int err;

	err = nla_parse_nested(tb, TCA_TIMETABLE_STEP_MAX, entry, timetable_step_policy, extack);
	if (err)
		return err;
	if (!tb[TCA_TIMETABLE_STEP_AT] || !tb[TCA_TIMETABLE_STEP_VALUE])
		return twoway_refuse_attr(extack, entry, "a step needs a time and a value");
	*step = (struct timetable_step) {
		.at_ns = nla_get_u64(tb[TCA_TIMETABLE_STEP_AT]),
		.value = nla_get_u64(tb[TCA_TIMETABLE_STEP_VALUE]),
	};
	return 0;
}

/*
 * Read steps into a table. If the first is at 0 they are a new one, and none of the present ones
 * stays. Others are added, in place if there is room: packets do not look behind the last step.
 */
static int timetable_read_steps(struct timetable *tt, u32 *stay, const struct nlattr *list,
				struct netlink_ext_ack *extack)
{
	struct timetable_step first, *steps = tt->steps;
	u32 n = departures_count(list);
	const struct nlattr *entry;
	int err, rest;

	if (!n)
		return 0;
	err = timetable_read_step(&first, nla_data(list), extack);
	if (err)
		return err;
	if (!first.at_ns)
		*stay = 0;
	if (*stay + n > TC_TIMETABLE_MAX_STEPS)
		return twoway_refuse(extack, "a table has at most 1048576 steps");
	if (!*stay || *stay + n > tt->room) {
		tt->room = *stay ? roundup_pow_of_two(*stay + n) : n;
		steps = kvmalloc_array(tt->room, sizeof(*steps), GFP_KERNEL_ACCOUNT);
		if (!steps)
			return -ENOMEM;
		if (*stay)
			memcpy(steps, tt->steps, *stay * sizeof(*steps));
		tt->steps = steps;
	}
	tt->n_steps = *stay;
	nla_for_each_nested(entry, list, rest) {
		err = timetable_read_step(steps + tt->n_steps, entry, extack);
		if (err)
			return err;
		tt->n_steps++;
	}
	return 0;
}

/* Read the table that a request asks for; the caller frees its steps if they are others. */
static int timetable_read(struct timetable *tt, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	u32 stay = tt->n_steps;
	u8 kind = tt->kind;
	int err;

	if (tb[TCA_TIMETABLE_STEPS]) {
		err = timetable_read_steps(tt, &stay, tb[TCA_TIMETABLE_STEPS], extack);
		if (err)
			return err;
	}
	if (tb[TCA_TIMETABLE_KIND])
		tt->kind = nla_get_u8(tb[TCA_TIMETABLE_KIND]);
	if (tb[TCA_TIMETABLE_PERIOD])
		tt->period = nla_get_u64(tb[TCA_TIMETABLE_PERIOD]);
	if (stay && tt->kind != kind)
		return twoway_refuse(extack, "a table of another kind begins with a step at 0");
	return timetable_check(tt, stay, extack);
}

/*
 * Under the root lock: go on with another table. Packets may have come since it was made. The start
 * is the present one unless another is given; 0: now.
 */
static int timetable_begin(struct timetable_sched_data *q, struct timetable *tt,
			   const struct nlattr *given, struct netlink_ext_ack *extack)
{
	u64 now = ktime_get_ns(), epoch = timetable_epoch();
	u64 start = q->table.steps ? q->start : now;
	u64 start_real = given ? nla_get_u64(given) : 0;

	if (start_real && start_real < epoch)
		return twoway_refuse_attr(extack, given, "the start is before the kernel's");
	if (given)
		start = start_real ? start_real - epoch : now;
	tt->free_at = q->table.free_at;
	tt->rest = tt->kind == q->table.kind ? q->table.rest : 0;
	timetable_start(tt, start, now);
	q->start = start;
	swap(q->table, *tt);
	return 0;
}

/* Change the options that are given; the others stay. */
static int timetable_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct timetable_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_TIMETABLE_MAX + 1] = { };
	struct timetable table = q->table;
	int err;

	err = opt ? nla_parse_nested(tb, TCA_TIMETABLE_MAX, opt, timetable_policy, extack) : 0;
	if (err)
		return err;
	err = timetable_read(&table, tb, extack);
	if (err)
		goto free;
	sch_tree_lock(sch);
	err = timetable_begin(q, &table, tb[TCA_TIMETABLE_START], extack);
	if (!err) {
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

	departures_destroy(sch);
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
