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
 * Alpha and the other parameters belong to a network namespace and may change at any time; a flow
 * obeys from its next update on:
 *
 *	sysctl net.ipv4.fast.alpha=30		of the flows of "fast"
 *
 * An alpha may also be a congestion control of its own, so that flows of one namespace can
 * differ and ss -ti shows which is which:
 *
 *	modprobe tcp_fast alphas=30,100		registers "fast30" and "fast100" as well
 *
 * Averaged and base RTT are in the fields of Vegas: tcpv_rtt and tcpv_minrtt of
 * INET_DIAG_VEGASINFO. The tracepoint fast:fast_update has each move of each window.
 *
 *	FAST ---- loss, ECN ---> PRR to cwnd/2 ---------------+
 *	 ^  \                                                 |
 *	 |   +--- timeout -----> slow start to cwnd/2 --------+
 *	 |                                                    | recovered
 *	 +--- w = cwnd, moved after a full RTT of samples ----+
 *
 * At the beginning the 2w in the law is a slow start. It ends with the first update that does not
 * double: ssthresh is lowered to cwnd then, so that the stack paces the sender as in avoidance, and
 * counts it as limited by cwnd only if it uses all of it. Increases are spread over the ACKs of a
 * round trip, one packet more for each that left at most; decreases apply at once. The window never
 * grows unless all of it was in flight in the last round trip.
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
 * - An ACK is one sample, of the newest segment that it acknowledges. With delayed ACKs there
 *   are half as many, with stretch ACKs (GRO) far fewer: eta, made for one ACK a segment,
 *   then averages over as many more round trips.
 * - A segment that was alone on its way, such as an application's last, waits for a delayed
 *   ACK (40 ms and more), which counts as queueing delay. With eta at 1/4 it takes a few
 *   round trips of other segments to forget.
 * - A flow whose application sends less than the window keeps the window, and may send
 *   all of it in a burst later, unless it pauses for longer than the timer.
 * - A short segment's round trip is shorter than a full one's by the missing
 *   transmission time, and counts. It can lower baseRTT, so that a flow keeps up to
 *   one packet less than alpha waiting at a slow bottleneck.
 *
 * How this differs from the ns-2 module of Cui and Andrew (1.1.3); the sum of these in "ns2" takes
 * the differences away, each alone or several:
 *
 *	1	the law multiplies baseRTT/RTT by w; ns-2 by the packets in flight when
 *		the acknowledged one was sent
 *	2	eta is the paper's; ns-2's is 1/max(256, f/3) with f of them, much slower
 *		below 768 packets
 *	4	one law for all delays; in ns-2 each ACK adds a packet to w while the
 *		queueing delay is below a threshold (mi_threshold, 0.75 ms here)
 *	8	one update per RTT or, with every_other_rtt, per two RTTs, and its increase is
 *		spread over the ACKs of one RTT; ns-2 updates every 10 ms within every other
 *		RTT, spreads over the ACKs of 10 ms, at once if baseRTT is below 4 ms, and
 *		drops what is left of an increase at the next update
 *	16	w has a fraction; ns-2 cuts it off in one of its three ways to round
 *	32	an increase has a fraction; ns-2 cuts it off in all three, if baseRTT is 4 ms or
 *		more: w rests up to 1/gamma packets lower, if it comes from below
 *
 * Three more are here always: the 2w bound, which ns-2 lacks; slow start to half after a timeout,
 * where ns-2 resumes FAST from 2; and Linux's loss recovery, where ns-2 also sends a packet again
 * that is not acknowledged after twice its average RTT. They matter before a flow is at rest, and
 * after losses. Neither module has a dead zone while its alpha and beta are equal.
 */

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include "compat/tcp.h"
#include "fast_window.h"
#include "variants.h"

#define CREATE_TRACE_POINTS
#include "fast_trace.h"

#define FAST_MAX_VARIANTS 32
/* Packets; "fast65535" fits TCP_CA_NAME_MAX (16). */
#define FAST_MAX_ALPHA 65535U
/* us, above every sample: none was taken yet. */
#define FAST_NO_RTT U32_MAX

/* Packets: of "fast", until the namespace's sysctl says otherwise. */
#define FAST_DEFAULT_ALPHA 100U

/* Bits of ns2: what ns-2's module does, see above. */
enum {
	FAST_NS2_FLOWN = 1,
	FAST_NS2_AVERAGE = 2,
	FAST_NS2_THRESHOLD = 4,
	FAST_NS2_UPDATES = 8,
	FAST_NS2_WHOLE = 16,
	FAST_NS2_INCREASES = 32,
	FAST_NS2_ALL = 63,
};

/**
 * struct fast_net - the parameters of a network namespace's flows; any may change at any time
 * @alpha: of the control "fast", packets
 * @gamma: share of the way to go in one update, thousandths
 * @base_rtt_us: of every flow; 0: each measures its own
 * @every_other_rtt: 1 to update once in two round trips; 0: in each
 * @ns2: FAST_NS2_... bits; 0: as the paper
 * @sysctls: the table that says so, with an empty last entry
 * @header: its registration
 */
struct fast_net {
	u32 alpha;
	u32 gamma;
	u32 base_rtt_us;
	u32 every_other_rtt;
	u32 ns2;
	struct ctl_table sysctls[6];
	struct ctl_table_header *header;
};

/**
 * struct fast - what a flow of FAST keeps beside its tcp_sock
 * @window: w, packets, Q24
 * @average_rtt: us, Q24; 0: no sample yet
 * @base_rtt_us: least sample; FAST_NO_RTT: none yet
 * @samples: round trips measured, for ss
 * @round_end: snd_nxt when the round began; it ends when more is acknowledged
 * @from: snd_cwnd when w was last updated, packets
 * @to: snd_cwnd to reach in this round, packets
 * @over: acknowledged packets that the increase is spread over
 * @acked: packets acknowledged while growing to it
 * @recovering: Linux's loss recovery has the window, not FAST
 * @frozen: no update at this round's end (every_other_rtt), or in this round (ns2)
 * @flown: packets in flight when the newest acknowledged one was sent, with it
 * @updated_us: when w was last updated, by the clock of TCP, whose upper half is cut off (ns2)
 */
struct fast {
	u64 window;
	u64 average_rtt;
	u32 base_rtt_us;
	u32 samples;
	u32 round_end;
	u32 from;
	u32 to;
	u32 over;
	u32 acked;
	bool recovering;
	bool frozen;
	u32 flown;
	u32 updated_us;
};

static unsigned int alphas[FAST_MAX_VARIANTS];
static int alphas_count;
module_param_array(alphas, uint, &alphas_count, 0444);
MODULE_PARM_DESC(alphas, "alphas to register beside fast, in packets (1..65535): 30,100 makes fast30 and fast100");

/* What the sysctls of each namespace say at first. */
static unsigned int base_rtt_us;
module_param(base_rtt_us, uint, 0444);
MODULE_PARM_DESC(base_rtt_us, "first net.ipv4.fast.base_rtt_us: base round trip of every flow in us (default 0: measured)");

static unsigned int gamma = FAST_GAMMA_ONE / 2;
module_param(gamma, uint, 0444);
MODULE_PARM_DESC(gamma, "first net.ipv4.fast.gamma: share of the way to go in one update, in thousandths (1..1000, default 500)");

static bool every_other_rtt;
module_param(every_other_rtt, bool, 0444);
MODULE_PARM_DESC(every_other_rtt, "first net.ipv4.fast.every_other_rtt: update once in two round trips (default: in each)");

static unsigned int ns2;
module_param(ns2, uint, 0444);
MODULE_PARM_DESC(ns2, "first net.ipv4.fast.ns2: sum of what is as in ns-2's module (0..63, default 0): 1 flown, 2 average, 4 threshold, 8 updates, 16 whole windows, 32 whole increases");

static unsigned int fast_net_id;

/* The first is "fast", whose value is 0; the value of each other is its alpha. */
static struct variant *variants;
static int variants_count;

static const struct fast_net *fast_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), fast_net_id);
}

static u32 fast_alpha(const struct sock *sk)
{
	return variant_value(sk) ?: READ_ONCE(fast_net(sk)->alpha);
}

static u32 fast_base_rtt_us(const struct sock *sk)
{
	const struct fast *fast = inet_csk_ca(sk);

	return READ_ONCE(fast_net(sk)->base_rtt_us) ?: fast->base_rtt_us;
}

static bool fast_as_ns2(const struct sock *sk, u32 what)
{
	return READ_ONCE(fast_net(sk)->ns2) & what;
}

/*
 * Whether all of the window was in flight in the last round trip. tcp_is_cwnd_limited() is content
 * with half of it during slow start.
 */
static bool fast_window_was_full(const struct sock *sk)
{
	return tcp_sk(sk)->is_cwnd_limited;
}

static void fast_begin_round(struct sock *sk, u32 cwnd)
{
	struct fast *fast = inet_csk_ca(sk);

	fast->round_end = tcp_sk(sk)->snd_nxt;
	fast->from = cwnd;
	fast->to = fast->from;
	fast->over = fast->from;
	fast->acked = 0;
}

/* FAST takes the window as it is, and a round trip of samples before it moves it. */
static void fast_resume(struct sock *sk)
{
	struct fast *fast = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	fast->window = fast_q24(min(cwnd, FAST_MAX_WINDOW));
	fast->recovering = false;
	fast->frozen = false;
	fast_begin_round(sk, cwnd);
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
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fast *fast = inet_csk_ca(sk);
	u32 rtt_us;

	/* Retransmitted packets have no round trip (Karn). */
	if (sample->rtt_us < 0)
		return;

	/* A zero would divide; round trips below 1 us count as 1 us. */
	rtt_us = max(sample->rtt_us, 1);
	fast->base_rtt_us = min(fast->base_rtt_us, rtt_us);
	fast->flown = clamp(sample->in_flight / tp->mss_cache, 1U, FAST_MAX_WINDOW);
	if (fast_as_ns2(sk, FAST_NS2_AVERAGE))
		fast->average_rtt = fast_average_rtt_ns2(fast->average_rtt, rtt_us, fast->flown);
	else
		fast->average_rtt = fast_average_rtt(fast->average_rtt, rtt_us,
						     clamp(tcp_snd_cwnd(tp), 1U, FAST_MAX_WINDOW));
	fast->samples++;
}

static void fast_set_cwnd(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
}

static void fast_update(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast *fast = inet_csk_ca(sk);
	u32 alpha = fast_alpha(sk), base = fast_base_rtt_us(sk), cwnd = tcp_snd_cwnd(tp);
	bool doubles;
	u64 flown, next;

	/*
	 * w is no more than the flow could use: an increase may not have been completed, or
	 * something else may have lowered cwnd. The one packet more is for the fraction of w, and
	 * for an increase's last ACK.
	 */
	fast->window = min(fast->window, fast_q24(min(cwnd, FAST_MAX_WINDOW - 1) + 1));
	if (fast_as_ns2(sk, FAST_NS2_UPDATES) && fast->to > cwnd)
		fast->window = min(fast->window, fast_q24(cwnd));
	flown = fast_as_ns2(sk, FAST_NS2_FLOWN) ? fast_q24(fast->flown) : fast->window;
	next = fast_next_window(fast->window, flown, fast_q24(base), fast->average_rtt, alpha,
				READ_ONCE(fast_net(sk)->gamma));
	doubles = next == 2 * fast->window;
	if (fast_as_ns2(sk, FAST_NS2_WHOLE))
		next = fast_cut(next);
	if (fast_as_ns2(sk, FAST_NS2_INCREASES))
		next = fast_cut_increase(fast->window, next, base);
	if (next > fast->window && !fast_window_was_full(sk))
		next = fast->window;
	fast->window = next;

	if (fast_whole(next) < cwnd)
		fast_set_cwnd(sk, fast_whole(next));
	/* There is a queue, or gamma alpha packets are less than w: slow start is over. */
	if (!doubles)
		tp->snd_ssthresh = min(tp->snd_ssthresh, tcp_snd_cwnd(tp));
	fast_begin_round(sk, tcp_snd_cwnd(tp));
	fast->to = clamp(fast_whole(next), fast->from, 2 * fast->from);
	if (fast_as_ns2(sk, FAST_NS2_UPDATES) && fast->to > fast->from)
		fast->over = fast_spread_as_ns2(fast->to - fast->from, fast->flown,
						fast->average_rtt, base);
	if (!fast->over)
		fast_set_cwnd(sk, fast->to);
	trace_fast_update(sk, next, fast->average_rtt, base, alpha);
}

static void fast_grow(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast *fast = inet_csk_ca(sk);

	if (fast_window_was_full(sk))
		fast_set_cwnd(sk, tcp_snd_cwnd(tp) + 1);
	fast->window = fast_q24(min(tcp_snd_cwnd(tp), FAST_MAX_WINDOW));
	fast->updated_us = (u32)tp->tcp_mstamp;
	fast_begin_round(sk, tcp_snd_cwnd(tp));
}

/* Every 10 ms within every other round trip, which goes on. */
static void fast_update_as_ns2(struct sock *sk, u32 ack)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast *fast = inet_csk_ca(sk);
	u32 round_end;

	if (after(ack, fast->round_end)) {
		fast->round_end = tp->snd_nxt;
		fast->frozen = !fast->frozen;
	}
	if (fast->frozen || !fast->average_rtt ||
	    (u32)tp->tcp_mstamp - fast->updated_us < FAST_NS2_PERIOD_US)
		return;
	round_end = fast->round_end;
	fast_update(sk);
	fast->round_end = round_end;
	fast->updated_us = (u32)tp->tcp_mstamp;
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

	if (fast_as_ns2(sk, FAST_NS2_THRESHOLD) &&
	    fast_has_little_delay(fast->average_rtt, fast_base_rtt_us(sk))) {
		fast_grow(sk);
		return;
	}
	if (fast->to > fast->from && fast_window_was_full(sk)) {
		u32 cwnd;

		fast->acked += acked;
		cwnd = fast_spread(fast->from, fast->to, fast->over, fast->acked);
		/* Not further if something else lowered cwnd meanwhile, e.g. a restart. */
		fast_set_cwnd(sk, min(cwnd, tcp_snd_cwnd(tp) + acked));
	}

	if (fast_as_ns2(sk, FAST_NS2_UPDATES)) {
		fast_update_as_ns2(sk, ack);
		return;
	}
	if (!after(ack, fast->round_end) || !fast->average_rtt)
		return;
	if (fast->frozen) {
		fast->round_end = tp->snd_nxt;
		fast->frozen = false;
	} else {
		fast_update(sk);
		fast->frozen = READ_ONCE(fast_net(sk)->every_other_rtt);
	}
}

static void fast_set_state(struct sock *sk, u8 new_state)
{
	struct fast *fast = inet_csk_ca(sk);

	if (new_state >= TCP_CA_CWR)
		fast->recovering = true;
}

/*
 * There was no loss: FAST goes on with the w it had. If this comes after recovery, FAST has taken
 * the halved window, and w becomes the window that the stack restores.
 */
static u32 fast_undo_cwnd(struct sock *sk)
{
	struct fast *fast = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	fast->window = max(fast->window, fast_q24(min(cwnd, FAST_MAX_WINDOW)));
	fast->recovering = false;
	fast_begin_round(sk, cwnd);
	return cwnd;
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
	info->vegas.tcpv_minrtt = fast_base_rtt_us(sk);
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
	/* It answers to loss as Reno does: anybody may use it. */
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
};

static const unsigned int fast_zero, fast_one = 1;
static const unsigned int fast_most_alpha = FAST_MAX_ALPHA;
static const unsigned int fast_most_gamma = FAST_GAMMA_ONE;
static const unsigned int fast_most_rtt = FAST_MAX_RTT_US;
static const unsigned int fast_most_ns2 = FAST_NS2_ALL;

/* An entry of the table; its data is an offset here, and an address in each namespace. */
#define FAST_SYSCTL(field, least, most) {			\
	.procname = #field,					\
	.data = (void *)offsetof(struct fast_net, field),	\
	.maxlen = sizeof(u32),					\
	.mode = 0644,						\
	.proc_handler = proc_douintvec_minmax,			\
	.extra1 = (void *)&(least),				\
	.extra2 = (void *)&(most),				\
}

static const struct ctl_table fast_sysctls[] = {
	FAST_SYSCTL(alpha, fast_one, fast_most_alpha),
	FAST_SYSCTL(gamma, fast_one, fast_most_gamma),
	FAST_SYSCTL(base_rtt_us, fast_zero, fast_most_rtt),
	FAST_SYSCTL(every_other_rtt, fast_zero, fast_one),
	FAST_SYSCTL(ns2, fast_zero, fast_most_ns2),
};

static int __net_init fast_net_init(struct net *net)
{
	struct fast_net *own = net_generic(net, fast_net_id);
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(fast_sysctls) + 1 != ARRAY_SIZE(own->sysctls));

	own->alpha = FAST_DEFAULT_ALPHA;
	own->gamma = gamma;
	own->base_rtt_us = base_rtt_us;
	own->every_other_rtt = every_other_rtt;
	own->ns2 = ns2;
	for (i = 0; i < ARRAY_SIZE(fast_sysctls); i++) {
		own->sysctls[i] = fast_sysctls[i];
		own->sysctls[i].data = (char *)own + (uintptr_t)fast_sysctls[i].data;
	}
	own->header = register_net_sysctl_sz(net, "net/ipv4/fast", own->sysctls,
					     ARRAY_SIZE(fast_sysctls));
	return own->header ? 0 : -ENOMEM;
}

static void __net_exit fast_net_exit(struct net *net)
{
	struct fast_net *own = net_generic(net, fast_net_id);

	unregister_net_sysctl_table(own->header);
}

static struct pernet_operations fast_net_ops = {
	.init = fast_net_init,
	.exit = fast_net_exit,
	.id = &fast_net_id,
	.size = sizeof(struct fast_net),
};

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
	if (ns2 > FAST_NS2_ALL) {
		pr_err("ns2: must be 0..%u, got %u\n", FAST_NS2_ALL, ns2);
		return -EINVAL;
	}
	return variants_check("alphas", "packets", alphas, alphas_count, FAST_MAX_ALPHA);
}

static int __init fast_register(void)
{
	int i, err;

	BUILD_BUG_ON(sizeof(struct fast) > ICSK_CA_PRIV_SIZE);

	err = fast_check_parameters();
	if (err)
		return err;

	variants_count = 1 + alphas_count;
	variants = kcalloc(variants_count, sizeof(*variants), GFP_KERNEL);
	if (!variants)
		return -ENOMEM;
	for (i = 0; i < variants_count; i++)
		variants[i].ops = fast_ops;
	strscpy(variants[0].ops.name, "fast", TCP_CA_NAME_MAX);
	for (i = 1; i < variants_count; i++) {
		variants[i].value = alphas[i - 1];
		snprintf(variants[i].ops.name, TCP_CA_NAME_MAX, "fast%u", variants[i].value);
	}

	err = register_pernet_subsys(&fast_net_ops);
	if (err)
		goto free_variants;
	err = variants_register(variants, &variants_count);
	if (err)
		goto unregister_pernet;
	return 0;

unregister_pernet:
	unregister_pernet_subsys(&fast_net_ops);
free_variants:
	kfree(variants);
	return err;
}

static void __exit fast_unregister(void)
{
	variants_unregister(variants, variants_count);
	unregister_pernet_subsys(&fast_net_ops);
	kfree(variants);
}

module_init(fast_register);
module_exit(fast_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("FAST TCP congestion control");
MODULE_LICENSE("GPL");
