// SPDX-License-Identifier: GPL-2.0-only
/*
 * twoway_interventions - another fate for the packets that a run names
 *
 *	insmod twoway_interventions.ko rules=RULE,RULE,...
 *
 * A rule is ACTION/INTERFACE/LIMITED/PORT/PORT/SEQUENCE/FROM/UNTIL/N/VALUE. It takes the N-th
 * packet that comes to the interface's root qdisc, in whatever network namespace, and that fits; or
 * with UNTIL each that fits from then on:
 *
 *	PORT PORT	of the flow between two ports, TCP or UDP; 0 0: of any
 *	SEQUENCE	its payload begins at this number, from the first port on, where the
 *			first byte is 1, as the SYN that came by says; 0: any
 *	FROM UNTIL	it comes at FROM or later, and before UNTIL unless that is 0; ns of
 *			CLOCK_REALTIME
 *
 *	drop		it is dropped
 *	keep		a full drop-tail queue takes it, beyond its limit; a manager marks it
 *			instead of dropping it, and it leaves with the bits of ECN as they came
 *	mark		it gets CE before the queue, if its sender knows ECN
 *	unmark		it leaves with the bits of ECN that it came with
 *	delay		it comes to the qdisc VALUE ns later
 *	duplicate	it comes twice
 *	reorder		VALUE packets that come later are before it
 *
 * A manager marks what its sender lets it mark, so the packet has ECT inside, and the manager must
 * be one that marks; the law by which it drops goes on as if it had dropped.
 *
 * Three actions are on no packet, but hold from FROM on:
 *
 *	limit		the qdisc takes as many packets as VALUE
 *	control		the flow has the congestion control VALUE, after its first packet from
 *			then on
 *	window		its congestion window is VALUE segments after that packet, and its control
 *			goes on from there
 *
 * Two are of the programs at the ends of a flow, whose data go from the first port to the second:
 *
 *	resume		the process that sends it sleeps between FROM, when it sends a packet, and
 *			UNTIL: its sleep ends at once
 *	read		as if the receiver read all that waits for it when the first segment comes
 *			from FROM on: the receive buffer is larger by that, until the receiver
 *			reads it
 *
 * LIMITED is 1 if the qdisc drops what comes when it has sch->limit packets, and only then. The
 * parameter reads as a line for each rule: packets that fitted, packets that had another fate, and
 * the time of the first of the latter.
 *
 * The functions of the qdisc itself are replaced, so that no packet is handled at another time, or
 * by another qdisc. The module stays until the guest ends.
 */

#include <linux/bitfield.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/net_namespace.h>
#include <net/pkt_sched.h>

#include "seen.h"

#define MOST_RULES 100
/* In skb->mark, which nothing else sets here: a rule's number, and the bits of ECN as they came. */
#define INSIDE	0x77000000
#define RULE	GENMASK(15, 2)
#define CAME	GENMASK(1, 0)
/* The same of a packet that comes for the second time, after its delay. */
#define DELAYED	0x78000000

static const char * const actions[] = {
	"drop", "keep", "mark", "unmark", "delay", "duplicate", "reorder", "limit", "control",
	"window", "resume", "read"
};

enum action { DROP, KEEP, MARK, UNMARK, DELAY, DUPLICATE, REORDER, LIMIT, CONTROL, WINDOW, RESUME,
	      READ_ALL };

static struct rule {
	char interface[IFNAMSIZ];
	u32 action, limited;
	u32 from_port, to_port;
	u32 sequence;
	u64 from_ns, until_ns;
	u64 number;		/* of the packet among those that fit, from 1 */

	u32 base;		/* sequence number of the SYN */
	u64 fitted, acted;
	u64 first_ns;		/* when it first acted */
	char value[TCP_CA_NAME_MAX];	/* of the last actions, from delay on */
	u64 amount;			/* the same as a number */
	struct sk_buff *behind;		/* of reorder, until amount packets are before it */
	struct sock *sk;		/* of control, window or read */
	struct work_struct work;
	const struct task_struct *task;	/* of resume: the sender, */
	struct hrtimer *asleep;		/* the timer that ends its sleep, */
	bool due;			/* and whether it is to end now */
	u32 read_from, read_to, more;	/* of read: what waits, and the larger buffer, bytes */
	int buffer;		/* with what was added; Linux may choose another */
} rules[MOST_RULES];
static int count;

static struct hook {
	struct Qdisc *sch;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	const char *interface;
} hooks[MOST_RULES];
static int hooked;

static struct hook *hook_of(const struct Qdisc *sch)
{
	struct hook *hook = hooks;

	while (hook->sch != sch)
		hook++;
	return hook;
}

static bool fits(struct rule *rule, const struct seen *seen, u64 now)
{
	bool forth = rule->from_port == seen->source && rule->to_port == seen->dest;
	bool back = rule->from_port == seen->dest && rule->to_port == seen->source;

	if (rule->from_port && !forth && !back)
		return false;
	if (forth && seen->flags & TCPHDR_SYN)
		rule->base = seen->seq;
	if (rule->sequence &&
	    !(forth && seen->payload && seen->seq - rule->base == rule->sequence))
		return false;
	return now >= rule->from_ns && (!rule->until_ns || now < rule->until_ns);
}

/* The rule for a packet, if there is one. Every rule counts it. */
static struct rule *rule_for(struct hook *hook, const struct sk_buff *skb, u64 now)
{
	struct seen seen = look(skb);
	struct rule *rule, *found = NULL;

	for (rule = rules; rule < rules + count; rule++) {
		if (rule->action >= LIMIT || strcmp(rule->interface, hook->interface) ||
		    !fits(rule, &seen, now))
			continue;
		rule->fitted++;
		if (!found && (rule->until_ns || rule->fitted == rule->number))
			found = rule;
	}
	return found;
}

static void acts(struct rule *rule, u64 now)
{
	if (!rule->acted++)
		rule->first_ns = now;
}

static u8 ecn_of(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP))
		return ipv4_get_dsfield(ip_hdr(skb)) & INET_ECN_MASK;
	if (skb->protocol == htons(ETH_P_IPV6))
		return ipv6_get_dsfield(ipv6_hdr(skb)) & INET_ECN_MASK;
	return INET_ECN_NOT_ECT;
}

static void set_ecn(struct sk_buff *skb, u8 ecn)
{
	if (skb->protocol == htons(ETH_P_IP))
		ipv4_change_dsfield(ip_hdr(skb), (u8)~INET_ECN_MASK, ecn);
	else if (skb->protocol == htons(ETH_P_IPV6))
		ipv6_change_dsfield(ipv6_hdr(skb), (u8)~INET_ECN_MASK, ecn);
}

/* The limit in force; its rule acts when a packet comes that only one of both limits admits. */
static u32 limit_of(const struct hook *hook, const struct Qdisc *sch, u64 now)
{
	u32 limit = sch->limit, length = sch->q.qlen;
	struct rule *rule;

	for (rule = rules; rule < rules + count; rule++) {
		if (rule->action != LIMIT || strcmp(rule->interface, hook->interface) ||
		    now < rule->from_ns)
			continue;
		rule->fitted++;
		if (length >= min_t(u64, limit, rule->amount) &&
		    length < max_t(u64, limit, rule->amount))
			acts(rule, now);
		limit = rule->amount;
	}
	return limit;
}

/* A packet that waits outside its qdisc. */
struct held {
	struct work_struct work;
	struct sk_buff *skb;
	ktime_t until;
};

static void release(struct work_struct *work)
{
	struct held *held = container_of(work, struct held, work);

	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&held->until, HRTIMER_MODE_ABS);
	held->skb->mark = DELAYED;
	dev_queue_xmit(held->skb);
	kfree(held);
}

static bool hold(struct sk_buff *skb, u64 ns)
{
	struct held *held = kmalloc(sizeof(*held), GFP_ATOMIC);

	if (!held)
		return false;
	INIT_WORK(&held->work, release);
	held->skb = skb;
	held->until = ktime_add_ns(ktime_get(), ns);
	schedule_work(&held->work);
	return true;
}

/* Let a packet come after the last of those that are before it. */
static void come_after(struct hook *hook, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct rule *rule;

	for (rule = rules; rule < rules + count; rule++) {
		if (!rule->behind || strcmp(rule->interface, hook->interface) || --rule->amount)
			continue;
		hook->enqueue(rule->behind, sch, to_free);
		rule->behind = NULL;
		rule->acted++;
	}
}

static int enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct hook *hook = hook_of(sch);
	u64 now = ktime_get_real_ns();
	struct rule *rule = skb->mark == DELAYED ? NULL : rule_for(hook, skb, now);
	struct sk_buff *twin = NULL;
	u32 own = sch->limit;
	bool full;
	int ret;

	if (skb->mark == DELAYED)
		skb->mark = 0;
	if (rule && rule->action == DELAY && hold(skb, rule->amount)) {
		acts(rule, now);
		return NET_XMIT_SUCCESS;
	}
	if (rule && rule->action == REORDER) {
		rule->behind = skb;
		rule->first_ns = now;
		return NET_XMIT_SUCCESS;
	}
	if (rule && rule->action == DUPLICATE)
		twin = skb_copy(skb, GFP_ATOMIC);
	if (twin)
		acts(rule, now);
	sch->limit = limit_of(hook, sch, now);
	full = rule && rule->limited && sch->q.qlen >= sch->limit;
	if (rule && rule->action == DROP && !full) {
		acts(rule, now);
		sch->limit = own;
		return qdisc_drop(skb, sch, to_free);
	}
	if (rule && rule->action == MARK && ecn_of(skb) != INET_ECN_CE && !full &&
	    INET_ECN_set_ce(skb))
		acts(rule, now);
	if (rule && (rule->action == UNMARK || (rule->action == KEEP && !rule->limited))) {
		skb->mark = INSIDE | FIELD_PREP(RULE, rule - rules) | ecn_of(skb);
		if (rule->action == KEEP && ecn_of(skb) == INET_ECN_NOT_ECT)
			set_ecn(skb, INET_ECN_ECT_0);
	}
	if (rule && rule->action == KEEP && full) {
		acts(rule, now);
		sch->limit = U32_MAX;
	}
	ret = hook->enqueue(skb, sch, to_free);
	if (twin)
		hook->enqueue(twin, sch, to_free);
	come_after(hook, sch, to_free);
	sch->limit = own;
	return ret;
}

static struct sk_buff *dequeue(struct Qdisc *sch)
{
	struct sk_buff *skb = hook_of(sch)->dequeue(sch);
	u8 came;

	if (!skb || (skb->mark & ~(RULE | CAME)) != INSIDE)
		return skb;
	came = skb->mark & CAME;
	if (ecn_of(skb) == INET_ECN_CE && came != INET_ECN_CE)
		acts(&rules[FIELD_GET(RULE, skb->mark)], ktime_get_real_ns());
	set_ecn(skb, came);
	skb->mark = 0;
	return skb;
}

/* As setsockopt() does, right after the packet: a process may wait for the socket's lock. */
static void change_socket(struct work_struct *work)
{
	struct rule *rule = container_of(work, struct rule, work);
	struct sock *sk = rule->sk;
	int err = 0;

	if (rule->action == WINDOW) {
		lock_sock(sk);
		tcp_snd_cwnd_set(tcp_sk(sk), rule->amount);
		release_sock(sk);
	} else {
		err = sk->sk_prot->setsockopt(sk, SOL_TCP, TCP_CONGESTION,
					      KERNEL_SOCKPTR(rule->value), strlen(rule->value));
	}
	if (!err)
		acts(rule, ktime_get_real_ns());
	sock_put(sk);
}

static void on_send(void *unused, struct sk_buff *skb)
{
	u64 now = ktime_get_real_ns();
	struct sock *sk = skb->sk;
	struct rule *rule;
	struct seen seen;

	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return;
	seen = look(skb);
	for (rule = rules; rule < rules + count; rule++) {
		if (rule->action < CONTROL || rule->action == READ_ALL || rule->sk ||
		    rule->from_port != seen.source)
			continue;
		if (rule->action == RESUME && !in_serving_softirq())
			rule->task = current;
		if (!fits(rule, &seen, now))
			continue;
		if (rule->action == RESUME) {
			rule->due = !rule->fitted++ || rule->due;
			schedule_work(&rule->work);
			continue;
		}
		rule->fitted++;
		sock_hold(sk);
		rule->sk = sk;
		schedule_work(&rule->work);
	}
}

static void end_sleep(struct work_struct *work)
{
	struct rule *rule = container_of(work, struct rule, work);
	u64 now = ktime_get_real_ns();

	if (!rule->due || !rule->asleep || now >= rule->until_ns)
		return;
	rule->due = false;
	acts(rule, now);
	hrtimer_start(rule->asleep, 0, HRTIMER_MODE_ABS);
}

static void on_sleep(void *unused, struct hrtimer *timer)
{
	static const void *wakeup;
	struct rule *rule;

	if (!wakeup && is_named(timer->function, "hrtimer_wakeup"))
		wakeup = timer->function;
	if (!wakeup || timer->function != wakeup)
		return;
	for (rule = rules; rule < rules + count; rule++) {
		if (rule->action != RESUME ||
		    rule->task != container_of(timer, struct hrtimer_sleeper, timer)->task)
			continue;
		rule->asleep = timer;
		schedule_work(&rule->work);
	}
}

static void on_sleep_end(void *unused, const struct hrtimer *timer)
{
	struct rule *rule;

	for (rule = rules; rule < rules + count; rule++)
		if (rule->asleep == timer)
			rule->asleep = NULL;
}

static void on_arrival(void *unused, struct sock *sk, const struct sk_buff *skb)
{
	const struct tcphdr *th = (const struct tcphdr *)skb->data;
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now = ktime_get_real_ns();
	struct rule *rule;

	for (rule = rules; rule < rules + count; rule++) {
		if (rule->action != READ_ALL || rule->sk || now < rule->from_ns ||
		    rule->from_port != ntohs(th->source) || rule->to_port != ntohs(th->dest))
			continue;
		rule->fitted++;
		rule->read_from = tp->copied_seq;
		rule->read_to = tp->rcv_nxt;
		if (rule->read_from == rule->read_to)
			continue;
		sock_hold(sk);
		rule->sk = sk;
		rule->more = atomic_read(&sk->sk_rmem_alloc);
		sk->sk_rcvbuf += rule->more;
		rule->buffer = sk->sk_rcvbuf;
		acts(rule, now);
	}
}

static void on_read(void *unused, struct sock *sk)
{
	struct rule *rule;
	u32 waits, left;

	for (rule = rules; rule < rules + count; rule++) {
		if (rule->action != READ_ALL || rule->sk != sk || !rule->more)
			continue;
		waits = max_t(s32, rule->read_to - tcp_sk(sk)->copied_seq, 0);
		left = mul_u64_u32_div(rule->more, waits, rule->read_to - rule->read_from);
		if (sk->sk_rcvbuf != rule->buffer)
			sk->sk_rcvbuf += rule->more;
		sk->sk_rcvbuf -= rule->more - left;
		rule->buffer = sk->sk_rcvbuf;
		rule->more = left;
		rule->read_from = tcp_sk(sk)->copied_seq;
	}
}

static const struct {
	const char *name;
	void *function;
} probes[] = {
	{ "net_dev_queue", on_send },		{ "hrtimer_start", on_sleep },
	{ "hrtimer_cancel", on_sleep_end },	{ "hrtimer_expire_entry", on_sleep_end },
	{ "tcp_probe", on_arrival },		{ "tcp_rcv_space_adjust", on_read },
};

static void attach(struct tracepoint *point, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(point->name, probes[i].name))
			tracepoint_probe_register(point, probes[i].function, NULL);
}

/* Replace the functions of the root qdisc of an interface, once. */
static int hook_into(const char *interface)
{
	struct net_device *dev = NULL;
	struct Qdisc *sch;
	struct net *net;
	int i;

	down_read(&net_rwsem);
	for_each_net(net) {
		dev = __dev_get_by_name(net, interface);
		if (dev)
			break;
	}
	up_read(&net_rwsem);
	if (!dev)
		return -ENODEV;
	sch = rtnl_dereference(dev->qdisc);
	for (i = 0; i < hooked; i++)
		if (hooks[i].sch == sch)
			return 0;
	hooks[hooked++] = (struct hook){ sch, sch->enqueue, sch->dequeue, interface };
	sch_tree_lock(sch);
	sch->enqueue = enqueue;
	sch->dequeue = dequeue;
	sch_tree_unlock(sch);
	return 0;
}

static int rule_read(const char *text, struct rule *rule)
{
	char action[12];

	if (sscanf(text, "%11[^/]/%15[^/]/%u/%u/%u/%u/%llu/%llu/%llu/%15s", action, rule->interface,
		   &rule->limited, &rule->from_port, &rule->to_port, &rule->sequence,
		   &rule->from_ns, &rule->until_ns, &rule->number, rule->value) != 10)
		return -EINVAL;
	if (kstrtou64(rule->value, 10, &rule->amount))
		rule->amount = 0;
	while (rule->action < ARRAY_SIZE(actions) && strcmp(actions[rule->action], action))
		rule->action++;
	INIT_WORK(&rule->work, rule->action == RESUME ? end_sleep : change_socket);
	return rule->action < ARRAY_SIZE(actions) ? 0 : -EINVAL;
}

static int rules_set(const char *text, const struct kernel_param *parameter)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest = copy, *one;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (one = strsep(&rest, ",")))
		err = count < MOST_RULES ? rule_read(one, &rules[count++]) : -E2BIG;
	kfree(copy);
	return err;
}

static int rules_get(char *buffer, const struct kernel_param *parameter)
{
	int i, length = 0;

	for (i = 0; i < count; i++)
		length += scnprintf(buffer + length, PAGE_SIZE - length, "%llu %llu %llu\n",
				    rules[i].fitted, rules[i].acted, rules[i].first_ns);
	return length;
}

static const struct kernel_param_ops rules_ops = { .set = rules_set, .get = rules_get };
module_param_cb(rules, &rules_ops, NULL, 0400);
MODULE_PARM_DESC(rules, "the packets, and what happens to them");

static int __init interventions_init(void)
{
	int i, err = 0;

	rtnl_lock();
	for (i = 0; i < count && !err; i++)
		if (rules[i].action < CONTROL)
			err = hook_into(rules[i].interface);
	rtnl_unlock();
	for (i = 0; i < count && !err; i++)
		if (rules[i].action >= CONTROL) {
			for_each_kernel_tracepoint(attach, NULL);
			break;
		}
	return err;
}
module_init(interventions_init);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("Another fate for packets that a run names");
MODULE_LICENSE("GPL");
