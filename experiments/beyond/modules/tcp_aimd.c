// SPDX-License-Identifier: GPL-2.0
/* A toy control: keeps a share of the window after a loss, else grows by a segment each RTT. */

#include <linux/module.h>
#include <net/tcp.h>

static unsigned int keep_percent = 50;
module_param(keep_percent, uint, 0444);

static u32 aimd_ssthresh(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)) * keep_percent / 100, 2U);
}

static void aimd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops aimd = {
	.name = "aimd",
	.owner = THIS_MODULE,
	.ssthresh = aimd_ssthresh,
	.cong_avoid = aimd_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init aimd_init(void)
{
	return tcp_register_congestion_control(&aimd);
}

static void __exit aimd_exit(void)
{
	tcp_unregister_congestion_control(&aimd);
}

module_init(aimd_init);
module_exit(aimd_exit);
MODULE_DESCRIPTION("A toy congestion control");
MODULE_LICENSE("GPL");
