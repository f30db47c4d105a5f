// SPDX-License-Identifier: GPL-2.0-only
/*
 * FAST TCP: a window that keeps alpha packets queued in the path
 *
 *	once per RTT:	w <- min{ 2w, (1 - gamma) w + gamma (baseRTT/RTT w + alpha) }
 *	on each ACK:	RTT <- (1 - eta) RTT + eta sample	eta = min{3/w, 1/4}
 *
 * baseRTT is the least round trip seen. At rest w (1 - baseRTT/RTT) = alpha: a flow
 * has alpha packets of its own in queues, and its rate is alpha / (RTT - baseRTT).
 * Flows with one bottleneck share it as their alphas. Reference: Wei, Jin, Low,
 * Hegde, "FAST TCP: motivation, architecture, algorithms, performance", IEEE/ACM
 * Transactions on Networking 14(6), 2006.
 *
 * Each alpha is a congestion control of its own, so that flows of one kernel can
 * differ and ss -ti shows which is which:
 *
 *	modprobe tcp_fast alphas=30,100		registers "fast30" and "fast100"
 *
 * Averaged and base RTT are in the fields of Vegas: tcpv_rtt and tcpv_minrtt of
 * INET_DIAG_VEGASINFO.
 *
 *	FAST ---- loss, ECN ---> PRR to cwnd/2 ---------------+
 *	 ^  \                                                 |
 *	 |   +--- timeout -----> slow start to cwnd/2 --------+
 *	 |                                                    | recovered
 *	 +--- w = cwnd, moved after a full RTT of samples ----+
 *
 * There is no slow start at the beginning: the 2w in the law is one. Increases are
 * spread over the ACKs of a round trip, one packet more for each that left at most;
 * decreases apply at once. The window never grows while it is not used in full.
 *
 * How this differs from the paper:
 * - alpha is constant. The paper lets it grow with w while there is no queueing delay
 *   (multiplicative increase); here only 2w bounds the approach, so a flow far below
 *   its share grows by gamma alpha packets per RTT.
 * - Loss recovery is Linux's own (SACK, RACK, proportional rate reduction).
 * - baseRTT may be given (base_rtt_us), for experiments. A flow that starts behind the
 *   queues of others measures them as part of its baseRTT and takes more than its
 *   share ("persistent congestion"); the law cannot tell. Nor does a baseRTT that was
 *   measured ever rise: a longer route looks like a queue until the flow ends.
 * - A short segment's round trip is shorter than a full one's by the missing
 *   transmission time, and counts. It can lower baseRTT, so that a flow keeps up to
 *   one packet less than alpha waiting at a slow bottleneck.
 *
 * How this differs from the ns-2 module of Cui and Andrew (1.1.3):
 * - The law multiplies baseRTT/RTT by w, not by the packets that were in flight when
 *   the acknowledged one was sent, and has the 2w bound, which ns-2's lacks.
 * - eta is the paper's; ns-2's is 1/max(256, w/3), much slower below 768 packets.
 * - No dead zone, no separate increase below a threshold of delay (mi_threshold), and
 *   one update per RTT or, with every_other_rtt, per two RTTs; ns-2 updates every
 *   10 ms within every other RTT.
 * - After a timeout the window slow-starts to half; ns-2's resumes FAST from 2.
 */

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "compat/compat.h"
#include "fast_window.h"

#define FAST_MAX_VARIANTS 32
/* Packets; "fast65535" fits TCP_CA_NAME_MAX (16). */
#define FAST_MAX_ALPHA 65535U
/* us, above every sample: none was taken yet. */
#define FAST_NO_RTT U32_MAX

struct fast_variant {
	struct tcp_congestion_ops ops;
	u32 alpha;	/* packets */
};

struct fast {
	u64 window;		/* w, packets, Q24 */
	u64 average_rtt;	/* us, Q24; 0 = no sample yet */
	u32 base_rtt_us;	/* least sample; FAST_NO_RTT = none yet */
	u32 samples;		/* round trips measured, for ss */
	u32 round_end;		/* snd_nxt when the round began; acked beyond, it is over */
	u32 from;		/* snd_cwnd when w was last updated, packets */
	u32 to;			/* snd_cwnd to reach in this round, packets */
	u32 acked;		/* packets acknowledged while growing to it */
	bool recovering;	/* Linux's loss recovery has the window, not FAST */
	bool frozen;		/* no update at this round's end (every_other_rtt) */
};

static unsigned int alphas[FAST_MAX_VARIANTS] = { 100 };
static int alphas_count = 1;
module_param_array(alphas, uint, &alphas_count, 0444);
MODULE_PARM_DESC(alphas, "alphas to register, in packets (1..65535): 30,100 makes fast30 and fast100");

static unsigned int base_rtt_us;
module_param(base_rtt_us, uint, 0444);
MODULE_PARM_DESC(base_rtt_us, "base round trip of every flow in us, for experiments (default 0: measured)");

static unsigned int gamma = FAST_GAMMA_ONE / 2;
module_param(gamma, uint, 0444);
MODULE_PARM_DESC(gamma, "share of the way to go in one update, in thousandths (1..1000, default 500)");

static bool every_other_rtt;
module_param(every_other_rtt, bool, 0444);
MODULE_PARM_DESC(every_other_rtt, "update once in two round trips (default: in each)");

static struct fast_variant *variants;

static u32 fast_alpha(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;

	return container_of(ops, struct fast_variant, ops)->alpha;
}

static u32 fast_base_rtt_us(const struct fast *fast)
{
	return base_rtt_us ?: fast->base_rtt_us;
}

static void fast_begin_round(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fast *fast = inet_csk_ca(sk);

	fast->round_end = tp->snd_nxt;
	fast->from = tcp_snd_cwnd(tp);
	fast->to = fast->from;
	fast->acked = 0;
}

/* FAST takes the window as it is, and a round trip of samples before it moves it. */
static void fast_resume(struct sock *sk)
{
	struct fast *fast = inet_csk_ca(sk);

	fast->window = fast_q24(min(tcp_snd_cwnd(tcp_sk(sk)), FAST_MAX_WINDOW));
	fast->recovering = false;
	fast->frozen = false;
	fast_begin_round(sk);
}

static void fast_init(struct sock *sk)
{
	struct fast *fast = inet_csk_ca(sk);

	/* Forgets the handshake's round trip: a SYN is far shorter than data. */
	fast->average_rtt = 0;
	fast->base_rtt_us = FAST_NO_RTT;
	fast->samples = 0;
	fast_resume(sk);
}

static void fast_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct fast *fast = inet_csk_ca(sk);
	u32 rtt_us;

	/* Retransmitted packets have no round trip (Karn). */
	if (sample->rtt_us < 0)
		return;

	/* A zero would divide; round trips below 1 us count as 1 us. */
	rtt_us = max(sample->rtt_us, 1);
	fast->base_rtt_us = min(fast->base_rtt_us, rtt_us);
	fast->average_rtt = fast_average_rtt(fast->average_rtt, rtt_us,
					     clamp(tcp_snd_cwnd(tcp_sk(sk)), 1U, FAST_MAX_WINDOW));
	fast->samples++;
}

static void fast_set_cwnd(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
}

static void fast_update(struct sock *sk)
{
	struct fast *fast = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	u64 next;

	/*
	 * What the flow did not get to use, because an increase was not completed or
	 * something else lowered cwnd, it has not got. The one packet more is the
	 * fraction of w, and an increase's last ACK.
	 */
	fast->window = min(fast->window, fast_q24(min(cwnd, FAST_MAX_WINDOW - 1) + 1));
	next = fast_next_window(fast->window, fast_q24(fast_base_rtt_us(fast)),
				fast->average_rtt, fast_alpha(sk), gamma);
	if (next > fast->window && !tcp_is_cwnd_limited(sk))
		next = fast->window;
	fast->window = next;

	if (fast_whole(next) < cwnd)
		fast_set_cwnd(sk, fast_whole(next));
	fast_begin_round(sk);
	fast->to = clamp(fast_whole(next), fast->from, 2 * fast->from);
}

static void fast_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast *fast = inet_csk_ca(sk);

	if (fast->recovering) {
		if (tcp_in_slow_start(tp)) {
			if (tcp_is_cwnd_limited(sk))
				tcp_slow_start(tp, acked);
		} else if (inet_csk(sk)->icsk_ca_state < TCP_CA_CWR) {
			fast_resume(sk);
		}
		return;
	}

	if (fast->to > fast->from && tcp_is_cwnd_limited(sk)) {
		fast->acked += acked;
		/* Not further if something else lowered cwnd meanwhile, e.g. a restart. */
		fast_set_cwnd(sk, min(fast_spread(fast->from, fast->to, fast->acked),
				      tcp_snd_cwnd(tp) + acked));
	}

	if (!after(ack, fast->round_end) || !fast->average_rtt)
		return;
	if (fast->frozen) {
		fast->round_end = tp->snd_nxt;
		fast->frozen = false;
	} else {
		fast_update(sk);
		fast->frozen = every_other_rtt;
	}
}

static void fast_set_state(struct sock *sk, u8 new_state)
{
	struct fast *fast = inet_csk_ca(sk);

	if (new_state >= TCP_CA_CWR)
		fast->recovering = true;
}

/* The loss was none: FAST goes on with the w it had. */
static u32 fast_undo_cwnd(struct sock *sk)
{
	struct fast *fast = inet_csk_ca(sk);

	fast->recovering = false;
	return tcp_reno_undo_cwnd(sk);
}

static size_t fast_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct fast *fast = inet_csk_ca(sk);

	/* Like every congestion control with these fields, e.g. for ss -ti. */
	if (!(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	info->vegas.tcpv_enabled = !fast->recovering;
	info->vegas.tcpv_rttcnt = fast->samples;
	info->vegas.tcpv_rtt = fast_whole(fast->average_rtt);
	info->vegas.tcpv_minrtt = fast_base_rtt_us(fast);
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(info->vegas);
}

static const struct tcp_congestion_ops fast_ops = {
	.init		= fast_init,
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= fast_cong_avoid,
	.set_state	= fast_set_state,
	.pkts_acked	= fast_pkts_acked,
	.undo_cwnd	= fast_undo_cwnd,
	.get_info	= fast_get_info,
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
};

static int fast_check_alphas(void)
{
	int i, j;

	for (i = 0; i < alphas_count; i++) {
		if (!alphas[i] || alphas[i] > FAST_MAX_ALPHA) {
			pr_err("alphas: must be 1..%u packets, got %u\n",
			       FAST_MAX_ALPHA, alphas[i]);
			return -EINVAL;
		}
		for (j = 0; j < i; j++) {
			if (alphas[i] == alphas[j]) {
				pr_err("alphas: %u is given twice\n", alphas[i]);
				return -EINVAL;
			}
		}
	}
	return 0;
}

static int fast_check_parameters(void)
{
	if (!gamma || gamma > FAST_GAMMA_ONE) {
		pr_err("gamma: must be 1..%u thousandths, got %u\n",
		       FAST_GAMMA_ONE, gamma);
		return -EINVAL;
	}
	if (base_rtt_us > FAST_MAX_RTT_US) {
		pr_err("base_rtt_us: must be 0..%u us, got %u\n",
		       FAST_MAX_RTT_US, base_rtt_us);
		return -EINVAL;
	}
	return fast_check_alphas();
}

static void fast_unregister_variants(int count)
{
	while (count--)
		tcp_unregister_congestion_control(&variants[count].ops);
	kfree(variants);
}

static int __init fast_register(void)
{
	int i, err;

	BUILD_BUG_ON(sizeof(struct fast) > ICSK_CA_PRIV_SIZE);

	err = fast_check_parameters();
	if (err)
		return err;

	variants = kcalloc(alphas_count, sizeof(*variants), GFP_KERNEL);
	if (!variants)
		return -ENOMEM;

	for (i = 0; i < alphas_count; i++) {
		variants[i].ops = fast_ops;
		variants[i].alpha = alphas[i];
		snprintf(variants[i].ops.name, TCP_CA_NAME_MAX, "fast%u", alphas[i]);
		err = tcp_register_congestion_control(&variants[i].ops);
		if (err) {
			fast_unregister_variants(i);
			return err;
		}
	}
	return 0;
}

static void __exit fast_unregister(void)
{
	fast_unregister_variants(alphas_count);
}

module_init(fast_register);
module_exit(fast_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("FAST TCP congestion control");
MODULE_LICENSE("GPL");
