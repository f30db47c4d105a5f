// SPDX-License-Identifier: GPL-2.0-only
/*
 * twoway_bench - what a packet costs in a qdisc, and an acknowledgment in a congestion control
 *
 *	insmod twoway_bench.ko dev=dummy0 count=1000000	packets through dummy0's qdisc
 *	insmod twoway_bench.ko control=vegas count=1000000	acknowledgments to vegas
 *
 * Measures once, at load time, says "twoway_bench: N ps" on the kernel's log, per packet or per
 * acknowledgment, and refuses to stay loaded. Run it on a real clock: in virtual time all of
 * this takes none.
 */

#include <linux/if_ether.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/sock.h>
#include <net/tcp.h>

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

static char *dev;
module_param(dev, charp, 0);
MODULE_PARM_DESC(dev, "device through whose qdisc to send");
static char *control;
module_param(control, charp, 0);
MODULE_PARM_DESC(control, "congestion control to hand acknowledgments to");
static unsigned int count = 1000000;
module_param(count, uint, 0);
MODULE_PARM_DESC(count, "how many packets or acknowledgments");

/* Between rescheduling points: some 10 ms. */
#define BENCH_BATCH	4096
#define BENCH_FRAME	60
#define BENCH_RTT_US	20000
#define BENCH_WINDOW	100

static int bench_send(struct net_device *device)
{
	struct sk_buff *skb = alloc_skb(BENCH_FRAME + LL_MAX_HEADER, GFP_KERNEL);

	if (!skb)
		return -ENOMEM;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_put_zero(skb, BENCH_FRAME);
	skb_reset_mac_header(skb);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = device;
	/* Congestion is counted by the qdisc; the caller looks there. */
	return dev_queue_xmit(skb) < 0 ? -EIO : 0;
}

static int bench_qdisc(u64 *ns)
{
	struct net_device *device = dev_get_by_name(&init_net, dev);
	unsigned int i;
	int err = 0;
	u64 start;

	if (!device) {
		pr_err("dev: no device \"%s\"\n", dev);
		return -ENODEV;
	}
	start = ktime_get_ns();
	for (i = 0; i < count && !err; i++) {
		err = bench_send(device);
		if (i % BENCH_BATCH == 0)
			cond_resched();
	}
	*ns = ktime_get_ns() - start;
	dev_put(device);
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
	u64 ns = 0;
	int err;

	if (!dev == !control || !count) {
		pr_err("give dev or control, and a count\n");
		return -EINVAL;
	}
	err = dev ? bench_qdisc(&ns) : bench_control(&ns);
	if (err)
		return err;
	pr_info("%llu ps\n", div_u64(ns * 1000, count));
	/* There is nothing left to stay for. */
	return -ECANCELED;
}

module_init(bench_init);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("Cost of a packet in a qdisc, of an acknowledgment in a congestion control");
MODULE_LICENSE("GPL");
