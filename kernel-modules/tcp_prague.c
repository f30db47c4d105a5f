// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prague: a window that answers to the share of marked packets
 *
 *	each virtual RTT	alpha += (marked / delivered - alpha) / 16
 *	ACK			w += (acked - marked) / w * min{ 1, srtt / 25 ms }^2
 *	mark			w -= w alpha / 2, once each virtual RTT
 *	loss			w -= w / 2
 *
 * The virtual RTT is max{ srtt, 25 ms }, and for the first 500 round trips srtt, so that a transfer
 * that is short is not slowed down. Then a flow of a shorter srtt grows, and shrinks, as slowly as
 * one of 25 ms, and both get the same share of a queue. At rest there are two marks in each round
 * trip, at any rate.
 *
 *	slow start --- mark, loss ---> avoidance <-----------+
 *	                                   |                 | ssthresh
 *	                                   +-- timeout --> slow start
 *
 * alpha is 1 at the first mark. The sender is paced at w / srtt, and twice that in slow start, in
 * bursts of 250 us. Reference: De Schepper, Tilmans, Briscoe, Goel, "Prague Congestion Control",
 * draft-briscoe-iccrg-prague-congestion-control; RFC 9331, section 4.
 *
 * How this differs from the draft:
 *
 * - Feedback. The draft needs AccECN, for which the module asks where the stack has it, in 7.x;
 *   with a receiver that has none it is a paced Reno without ECN, as the draft demands.
 *   Elsewhere the receiver is DCTCP's (RFC 8257): it echoes the mark of each packet by ECE, and
 *   acknowledges at once when that changes. The ACK of a packet that was delayed has the mark of
 *   the next one. Both ends need this control, or the receiver the kernel's dctcp.
 * - ECT(1). In 7.x the module asks for it. Stock 7.3-rc7 sends the SYN with it, but data as ECT(0),
 *   set by tcp_ecn_send() after the last call of a module; vm/patches/7.3 mends that. Elsewhere all
 *   packets have ECT(0). An L4S queue takes those for classic traffic: use a queue that marks
 *   above a threshold.
 * - Loss. The window is halved, as by Reno; the draft leaves the choice between Reno and CUBIC.
 *   It is ssthresh at once, for modules cannot call PRR. If a mark came in the same round trip,
 *   half of the window before that remains.
 * - A classic queue that marks is not detected. The draft leaves that to the implementer. Then
 *   others get too little: therefore the control needs CAP_NET_ADMIN, as dctcp does.
 * - A round trip of alpha and of cuts is srtt on the clock; the draft waits for a packet's ACK.
 * - Packets are counted, not bytes: what is marked, acknowledged and in the window.
 * - The pace is doubled to the end of slow start, not to half of ssthresh.
 * - Rates are of payload, by which the stack paces: the draft's MTU would be w / srtt and 3 % more.
 * - No window below two packets.
 *
 * Without ECN it is a paced Reno.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "compat/tcp.h"
#include "prague_window.h"

/* Round trips after the start, from which on a short round trip slows growth. */
#define PRAGUE_FAST_ROUNDS 500
/* Bursts last for the rate divided by 2^12: 244 us. */
#define PRAGUE_PACING_SHIFT 12

/**
 * struct prague - what a flow of prague keeps beside its tcp_sock
 * @w: the window
 * @alpha: share of marked packets, Q20
 * @alpha_us: when alpha was last moved, by the clock of TCP, whose upper half is cut off
 * @cut_us: when a mark last cut the window, likewise
 * @delivered: tp->delivered then
 * @delivered_ce: tp->delivered_ce then
 * @seen_ce: tp->delivered_ce at the last ACK
 * @round_end: tp->delivered at which the round trip ends
 * @rounds: round trips so far, up to PRAGUE_FAST_ROUNDS
 * @prior_cwnd: before the last reduction, packets
 * @was_marked: alpha is in use
 * @received_ce: the receiver got a mark with its last packet
 */
struct prague {
	struct prague_window w;
	u32 alpha;
	u32 alpha_us;
	u32 cut_us;
	u32 delivered;
	u32 delivered_ce;
	u32 seen_ce;
	u32 round_end;
	u32 rounds;
	u32 prior_cwnd;
	bool was_marked;
	bool received_ce;
};

static u32 prague_srtt_us(const struct sock *sk)
{
	return max(tcp_sk(sk)->srtt_us >> 3, 1U);
}

/* Whether a virtual RTT is over that began at a time. */
static bool prague_has_elapsed(const struct sock *sk, u32 since_us)
{
	const struct prague *ca = inet_csk_ca(sk);
	u32 rtt_us = prague_srtt_us(sk);

	if (ca->rounds == PRAGUE_FAST_ROUNDS)
		rtt_us = max(rtt_us, PRAGUE_RTT_VIRT_US);
	return (u32)tcp_sk(sk)->tcp_mstamp - since_us >= rtt_us;
}

static void prague_set_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)max(tcp_snd_cwnd(tp), tp->packets_out) * tp->mss_cache * USEC_PER_SEC;

	rate = div_u64(rate, prague_srtt_us(sk)) << tcp_in_slow_start(tp);
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

static void prague_apply(struct sock *sk)
{
	const struct prague *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, min(ca->w.packets, tp->snd_cwnd_clamp));
}

static void prague_init(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	*ca = (struct prague){
		.w.packets = tcp_snd_cwnd(tp),
		.alpha = PRAGUE_ALPHA_ONE,
		.alpha_us = (u32)tp->tcp_mstamp,
		.delivered = tp->delivered,
		.delivered_ce = tp->delivered_ce,
		.seen_ce = tp->delivered_ce,
		.round_end = tp->delivered + 1,
	};
	sk_pacing_shift_update(sk, PRAGUE_PACING_SHIFT);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	prague_set_pacing_rate(sk);
}

static void prague_update_alpha(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	if (!prague_has_elapsed(sk, ca->alpha_us))
		return;
	if (ca->was_marked)
		ca->alpha = prague_next_alpha(ca->alpha, tp->delivered_ce - ca->delivered_ce,
					      tp->delivered - ca->delivered);
	ca->was_marked |= tp->delivered_ce != ca->delivered_ce;
	ca->alpha_us = (u32)tp->tcp_mstamp;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

static void prague_grow(struct sock *sk, u32 acked, u32 marked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u32 increase = PRAGUE_INCREASE_ONE;

	if (!tcp_is_cwnd_limited(sk) || inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery)
		return;
	if (tcp_in_slow_start(tp)) {
		ca->w.packets = min(ca->w.packets + acked, PRAGUE_MAX_PACKETS);
		return;
	}
	if (ca->rounds == PRAGUE_FAST_ROUNDS)
		increase = prague_increase(prague_srtt_us(sk));
	prague_window_grow(&ca->w, acked - min(acked, marked), increase);
}

static void prague_cong_control(TWOWAY_CONG_CONTROL_ARGS(sk, rs))
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);

	/* The stack restarts after a timeout, or after a pause, with another window. */
	if (ca->w.packets != tcp_snd_cwnd(tp))
		ca->w = (struct prague_window){ .packets = tcp_snd_cwnd(tp) };
	if (!before(tp->delivered, ca->round_end)) {
		ca->round_end = tp->delivered + tcp_packets_in_flight(tp) + 1;
		ca->rounds = min(ca->rounds + 1, PRAGUE_FAST_ROUNDS);
	}
	prague_update_alpha(sk);
	prague_grow(sk, rs->acked_sacked, tp->delivered_ce - ca->seen_ce);
	ca->seen_ce = tp->delivered_ce;
	prague_apply(sk);
	prague_set_pacing_rate(sk);
}

/* For a mark, unless set_state() tells of a loss. */
static u32 prague_ssthresh(struct sock *sk)
{
	const struct prague *ca = inet_csk_ca(sk);
	struct prague_window w = ca->w;

	if (prague_has_elapsed(sk, ca->cut_us))
		prague_window_cut(&w, ca->alpha);
	return w.packets;
}

/* Called last when a reduction begins: what is set here stays. */
static void prague_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct prague *ca = inet_csk_ca(sk);
	u8 before = inet_csk(sk)->icsk_ca_state;

	if (state < TCP_CA_CWR || before >= state)
		return;
	if (before < TCP_CA_CWR)
		ca->prior_cwnd = ca->w.packets;
	if (state == TCP_CA_CWR) {
		if (!prague_has_elapsed(sk, ca->cut_us))
			return;
		ca->cut_us = (u32)tp->tcp_mstamp;
		prague_window_cut(&ca->w, ca->alpha);
		prague_apply(sk);
		return;
	}
	if (before < TCP_CA_Recovery)
		tp->snd_ssthresh = max(ca->prior_cwnd / 2, PRAGUE_MIN_PACKETS);
	if (state == TCP_CA_Recovery) {
		ca->w = (struct prague_window){ .packets = tp->snd_ssthresh };
		prague_apply(sk);
	}
}

static u32 prague_undo_cwnd(struct sock *sk)
{
	const struct prague *ca = inet_csk_ca(sk);

	return max(tcp_snd_cwnd(tcp_sk(sk)), ca->prior_cwnd);
}

/* The receiver, without AccECN: the mark of each packet is echoed, a change at once. */
static void prague_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct prague *ca = inet_csk_ca(sk);
	bool ce = event == CA_EVENT_ECN_IS_CE;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (ce != ca->received_ce)
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	ca->received_ce = ce;
	if (ce)
		tcp_sk(sk)->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tcp_sk(sk)->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static u32 prague_min_tso_segs(struct sock *sk)
{
	return 1;
}

static struct tcp_congestion_ops prague_ops __read_mostly = {
	.name		= "prague",
	.init		= prague_init,
	.ssthresh	= prague_ssthresh,
	.set_state	= prague_set_state,
	.cong_control	= prague_cong_control,
	.undo_cwnd	= prague_undo_cwnd,
	.cwnd_event	= prague_cwnd_event,
	.min_tso_segs	= prague_min_tso_segs,
	.flags		= TWOWAY_CONG_L4S,
	.owner		= THIS_MODULE,
};

static int __init prague_register(void)
{
	BUILD_BUG_ON(sizeof(struct prague) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&prague_ops);
}

static void __exit prague_unregister(void)
{
	tcp_unregister_congestion_control(&prague_ops);
}

module_init(prague_register);
module_exit(prague_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("TCP congestion control Prague, for L4S");
MODULE_LICENSE("GPL");
