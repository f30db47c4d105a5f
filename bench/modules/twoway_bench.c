// SPDX-License-Identifier: GPL-2.0-only
/*
 * twoway_bench - what a packet costs in qdiscs, and an acknowledgment in a congestion control
 *
 *	insmod twoway_bench.ko dev=dummy0 phase=pass count=1000000	packets, dummy0's qdiscs
 *	insmod twoway_bench.ko control=vegas count=1000000		acknowledgments to vegas
 *
 * Measures once, at load time, says "twoway_bench: N ps, W waits, D drops" on the kernel's log, per
 * packet or per acknowledgment, and refuses to stay loaded. Run it on a real clock: in virtual time
 * all of this takes none.
 *
 * The qdiscs are those of the device's transmit queues, of which it may have a thousand. They are
 * driven directly, one after the other and under their locks, without the device below and the
 * stack above; packets are made before. The phases:
 *
 *	pass	a packet enters each qdisc, then each is asked for its packet, and gives it
 *	drop	the qdiscs are full: a packet is offered to each, and dropped
 *	wait	a packet enters each and is asked for in vain, which sets a timer; when due, it
 *		is asked for again. The time in between and the timer's interrupt do not count.
 */

#include <linux/if_ether.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/sch_generic.h>
#include <net/sock.h>
#include <net/tcp.h>

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

static char *dev;
module_param(dev, charp, 0);
MODULE_PARM_DESC(dev, "device whose qdiscs to drive");
static char *phase = "pass";
module_param(phase, charp, 0);
MODULE_PARM_DESC(phase, "pass, drop or wait");
static unsigned int wait_us;
module_param(wait_us, uint, 0);
MODULE_PARM_DESC(wait_us, "phase wait: time after which a packet is due");
static char *control;
module_param(control, charp, 0);
MODULE_PARM_DESC(control, "congestion control to hand acknowledgments to");
static unsigned int count = 1000000;
module_param(count, uint, 0);
MODULE_PARM_DESC(count, "how many packets or acknowledgments");

/* Packets between two looks at the clock, and rescheduling points: some ms. */
#define BENCH_BATCH	4096
#define BENCH_FRAME	60
/* Packets that fill a qdisc: more than its limit. */
#define BENCH_FULL	64
/* A packet that is not there by then will not come. */
#define BENCH_MOST_NS	NSEC_PER_SEC
#define BENCH_RTT_US	20000
#define BENCH_WINDOW	100

struct bench_queue {
	struct Qdisc *qdisc;
	struct sk_buff *skb;		/* while it is not in the qdisc */
};

struct bench {
	struct bench_queue *queues;
	unsigned int n;
	u64 ns;
	u64 waits;			/* a qdisc had a packet, and did not give it */
	u64 drops;
};

static struct sk_buff *bench_packet(struct net_device *device)
{
	struct sk_buff *skb = alloc_skb(BENCH_FRAME + LL_MAX_HEADER, GFP_ATOMIC);

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_put_zero(skb, BENCH_FRAME);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = device;
	/* A flow's hash, as TCP sets it: no qdisc needs to read the packet. */
	skb_set_hash(skb, 1, PKT_HASH_TYPE_L4);
	return skb;
}

/* Returns: whether the qdisc has taken the queue's packet. */
static bool bench_enqueue(struct bench_queue *queue)
{
	struct sk_buff *skb = queue->skb, *to_free = NULL;
	struct Qdisc *q = queue->qdisc;

	qdisc_skb_cb(skb)->pkt_len = skb->len;
	spin_lock(qdisc_lock(q));
	q->enqueue(skb, q, &to_free);
	spin_unlock(qdisc_lock(q));
	if (to_free) {
		skb_mark_not_on_list(to_free);
		return false;
	}
	queue->skb = NULL;
	return true;
}

/* Returns: whether the qdisc has given the queue's packet back. */
static bool bench_dequeue(struct bench_queue *queue)
{
	struct Qdisc *q = queue->qdisc;

	spin_lock(qdisc_lock(q));
	queue->skb = q->dequeue(q);
	spin_unlock(qdisc_lock(q));
	return queue->skb;
}

/* A qdisc has a packet that is due: ask until it comes. */
static int bench_collect(struct bench *bench, struct bench_queue *queue)
{
	u64 end;

	if (likely(bench_dequeue(queue)))
		return 0;
	end = ktime_get_ns() + BENCH_MOST_NS;
	while (!bench_dequeue(queue)) {
		bench->waits++;
		if (ktime_get_ns() > end)
			return -ETIME;
	}
	return 0;
}

static int bench_pass(struct bench *bench)
{
	u64 start = ktime_get_ns();
	unsigned int i, done;
	int err = 0;

	for (done = 0; done < BENCH_BATCH && !err; done += bench->n) {
		for (i = 0; i < bench->n && !err; i++)
			if (!bench_enqueue(&bench->queues[i]))
				err = -ENOBUFS;
		for (i = 0; i < bench->n && !err; i++)
			err = bench_collect(bench, &bench->queues[i]);
	}
	bench->ns += ktime_get_ns() - start;
	return err ?: done;
}

static int bench_drop(struct bench *bench)
{
	u64 start = ktime_get_ns();
	unsigned int i, done;

	for (done = 0; done < BENCH_BATCH; done += bench->n)
		for (i = 0; i < bench->n; i++) {
			if (bench_enqueue(&bench->queues[i]))
				return -ENODATA;
			bench->drops++;
		}
	bench->ns += ktime_get_ns() - start;
	return done;
}

/* The time to read the clock twice, as bench_wait() does. */
static u64 bench_clock_ns(void)
{
	u64 start = ktime_get_ns();
	unsigned int i;

	for (i = 0; i < BENCH_BATCH; i++)
		ktime_get_ns();
	return 2 * div_u64(ktime_get_ns() - start, BENCH_BATCH);
}

static int bench_wait(struct bench *bench)
{
	u64 start = ktime_get_ns(), before = bench->waits, due;
	unsigned int i;
	int err = 0;

	for (i = 0; i < bench->n; i++) {
		if (!bench_enqueue(&bench->queues[i]))
			return -ENOBUFS;
		if (!bench_dequeue(&bench->queues[i]))
			bench->waits++;
	}
	bench->ns += ktime_get_ns() - start;
	/* A token bucket that is full at first must not fill up again. */
	if (bench->waits == before)
		return bench->n;
	/* Not udelay(): an emulated processor does not know how fast it is. */
	due = ktime_get_ns() + wait_us * NSEC_PER_USEC;
	do
		start = ktime_get_ns();
	while (start < due);
	for (i = 0; i < bench->n && !err; i++)
		if (!bench->queues[i].skb && !bench_dequeue(&bench->queues[i]))
			err = -ETIME;
	bench->ns += ktime_get_ns() - start;
	return err ?: bench->n;
}

static int bench_fill(struct bench *bench, struct net_device *device)
{
	unsigned int i, k;

	for (i = 0; i < bench->n; i++)
		for (k = 0; bench_enqueue(&bench->queues[i]); k++) {
			bench->queues[i].skb = bench_packet(device);
			if (!bench->queues[i].skb)
				return -ENOMEM;
			if (k == BENCH_FULL)
				return -ENOBUFS;
		}
	return 0;
}

/* Find the device's qdiscs, and make a packet for each. */
static int bench_setup(struct bench *bench, struct net_device *device)
{
	unsigned int i;

	bench->n = device->real_num_tx_queues;
	bench->queues = kvcalloc(bench->n, sizeof(*bench->queues), GFP_KERNEL);
	if (!bench->queues)
		return -ENOMEM;
	for (i = 0; i < bench->n; i++) {
		struct bench_queue *queue = &bench->queues[i];

		queue->qdisc = rtnl_dereference(netdev_get_tx_queue(device, i)->qdisc);
		if (!queue->qdisc->enqueue) {
			pr_err("queue %u of \"%s\" has no qdisc\n", i, dev);
			return -ENOENT;
		}
		queue->skb = bench_packet(device);
		if (!queue->skb)
			return -ENOMEM;
	}
	return 0;
}

static void bench_teardown(struct bench *bench)
{
	unsigned int i;

	for (i = 0; bench->queues && i < bench->n; i++) {
		struct bench_queue *queue = &bench->queues[i];

		if (!queue->qdisc)
			break;
		spin_lock_bh(qdisc_lock(queue->qdisc));
		qdisc_reset(queue->qdisc);
		spin_unlock_bh(qdisc_lock(queue->qdisc));
		kfree_skb(queue->skb);
	}
	kvfree(bench->queues);
}

static int bench_run(struct bench *bench, struct net_device *device,
		     int (*measure)(struct bench *bench))
{
	unsigned int done = 0;
	int err = 0;

	while (done < count && err >= 0) {
		/* No timer's softirq takes a packet out of a qdisc before we do. */
		local_bh_disable();
		if (measure == bench_drop && !done)
			err = bench_fill(bench, device);
		if (err >= 0)
			err = measure(bench);
		local_bh_enable();
		cond_resched();
		done += max(err, 0);
	}
	if (err < 0)
		return err;
	if (measure == bench_wait)
		bench->ns -= min(bench->ns, bench_clock_ns() * div_u64(done, bench->n));
	/* All that was done, which is a bit more than was asked for. */
	count = done;
	return 0;
}

static const struct {
	const char *name;
	int (*measure)(struct bench *bench);
} bench_phases[] = {
	{ "pass", bench_pass },
	{ "drop", bench_drop },
	{ "wait", bench_wait },
};

static int bench_qdiscs(struct bench *bench)
{
	struct net_device *device;
	int i, err = -EINVAL;

	rtnl_lock();
	device = __dev_get_by_name(&init_net, dev);
	if (!device) {
		pr_err("dev: no device \"%s\"\n", dev);
		err = -ENODEV;
		goto unlock;
	}
	err = bench_setup(bench, device);
	if (err)
		goto teardown;
	err = -EINVAL;
	for (i = 0; i < ARRAY_SIZE(bench_phases); i++)
		if (!strcmp(phase, bench_phases[i].name))
			err = bench_run(bench, device, bench_phases[i].measure);
	if (err)
		pr_err("phase %s: error %d\n", phase, err);
teardown:
	bench_teardown(bench);
unlock:
	rtnl_unlock();
	return err;
}

/* One segment per acknowledgment, a window of BENCH_WINDOW per round trip. */
static void bench_ack(struct sock *sk, unsigned int i)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	struct tcp_sock *tp = tcp_sk(sk);
	struct ack_sample sample = {
		.pkts_acked = 1,
		.rtt_us = BENCH_RTT_US + i % BENCH_WINDOW,
		.in_flight = BENCH_WINDOW,
	};

	tp->snd_una = i;
	tp->snd_nxt = i + BENCH_WINDOW;
	if (ops->pkts_acked)
		ops->pkts_acked(sk, &sample);
	ops->cong_avoid(sk, i, 1);
}

static int bench_control(u64 *ns)
{
	struct socket *sock;
	unsigned int i;
	struct sock *sk;
	u64 start;
	int err;

	err = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return err;
	sk = sock->sk;
	err = sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION, KERNEL_SOCKPTR(control),
				    strlen(control));
	if (err) {
		pr_err("control: no congestion control \"%s\"\n", control);
		goto release;
	}
	lock_sock(sk);
	if (!inet_csk(sk)->icsk_ca_ops->cong_avoid) {
		pr_err("control: \"%s\" has no cong_avoid\n", control);
		err = -EOPNOTSUPP;
		goto unlock;
	}
	if (inet_csk(sk)->icsk_ca_ops->init)
		inet_csk(sk)->icsk_ca_ops->init(sk);
	tcp_sk(sk)->is_cwnd_limited = 1;
	start = ktime_get_ns();
	for (i = 0; i < count; i++)
		bench_ack(sk, i);
	*ns = ktime_get_ns() - start;
unlock:
	release_sock(sk);
release:
	sock_release(sock);
	return err;
}

static int __init bench_init(void)
{
	struct bench bench = {};
	int err;

	if (!dev == !control || !count) {
		pr_err("give dev or control, and a count\n");
		return -EINVAL;
	}
	err = dev ? bench_qdiscs(&bench) : bench_control(&bench.ns);
	if (err)
		return err;
	pr_info("%llu ps, %llu waits, %llu drops\n", div_u64(bench.ns * 1000, count), bench.waits,
		bench.drops);
	/* Measured: the module need not stay. */
	return -ECANCELED;
}

module_init(bench_init);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("Cost of a packet in a qdisc, of an acknowledgment in a congestion control");
MODULE_LICENSE("GPL");
