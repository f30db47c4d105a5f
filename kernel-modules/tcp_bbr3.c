// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBR, version 3: a model of the path, its rate and its volume
 *
 *	on each ACK:	bw <- min{ max_bw, bw_shortterm }	bdp = bw * min_rtt
 *			pacing rate <- 0.99 gain bw
 *			cwnd <- min{ cwnd + acked, cwnd gain bdp + extra_acked, bounds }
 *	each round with loss, unless probing:
 *			shortterm bound <- max{ latest, 0.7 bound }	of rate, of inflight
 *	> 2 % lost while probing:
 *			inflight_longterm <- max{ inflight then, 0.7 min(bdp, cwnd) }
 *
 * max_bw is the most of two probing cycles, min_rtt the least of 10 s, latest the most of a round.
 *
 *	              pacing   cwnd
 *	Startup        2.77    2	until three rounds grow by less than 25 %, or on loss
 *	Drain          0.5     2	until inflight <= bdp, or for three rounds
 *	ProbeBW DOWN   0.9     2	until inflight <= bdp and <= 0.85 inflight_longterm
 *	        CRUISE 1       2	for 2..3 s, or for min(bdp, 63) rounds, Reno's time
 *	        REFILL 1       2	for one round; forgets the shortterm bounds
 *	        UP     1.25    2.25	until three rounds do not grow, or on loss
 *	ProbeRTT       1       0.5	for 200 ms and a round, if min_rtt is older than 5 s
 *
 * In UP inflight_longterm grows by 1, 2, 4, ... packets a round. After an UP that lost too much the
 * next one ends where it reaches inflight_longterm, and a third follows at once if that was safe.
 *
 * Reference: Cardwell, Swett, Beshay, "BBR Congestion Control", draft-ietf-ccwg-bbr, the editors'
 * copy of 3 August 2026, which is draft 06 with corrections. Names in capitals are the draft's.
 *
 * How this differs from the draft, because a stock kernel hands a module less than it needs:
 *
 * - No packet remembers what was in flight, or lost, when it was sent. All that was in flight
 *   then has been delivered or marked lost when its ACK comes. So RS.tx_in_flight is all that was
 *   delivered since, which struct rate_sample has, plus RS.lost. With reordering, or after a
 *   timeout, that is not exact.
 * - RS.lost counts the packets marked lost in the round of losses. That begins with the first loss
 *   and ends after a round trip; the draft's begins when the acknowledged packet was sent.
 * - No call when a packet is marked lost. Losses are handled with the ACK that revealed them, as
 *   one packet of the draft that holds all of them; those of a timeout with the next ACK. Whether
 *   the flow was limited by its application is then what the acknowledged packet remembers.
 * - An ACK without a valid rate sample leaves the model as it is, min_rtt and rounds included.
 * - No count of the ranges that were lost. Startup ends after six ACKs that revealed losses.
 * - State for undo is saved when recovery begins, and not again in its later rounds: the stack
 *   takes a recovery for spurious as a whole.
 * - C.inflight is the stack's, with packets that wait in a queue of the sending host.
 * - The send quantum is the stack's: pacing rate * 1 ms and at least 2 packets as in the draft, but
 *   more on paths of few ms (net.ipv4.tcp_tso_rtt_log).
 *
 * Where the draft leaves a choice:
 *
 * - ECN. The draft names no response, and demands one. A mark is a loss beyond LossThresh, once a
 *   window, as the stack's state CWR has it. So is a drop on the sending host.
 * - extra_acked is the most of 5 to 10 rounds, and of one or two in Startup: two slots are kept.
 * - inflight_longterm does not bound Drain: the draft's table says that it does, its code that not.
 * - A delayed ACK does not replace a min_rtt that has expired.
 * - Volumes are packets, not bytes.
 * - Drain lasts for three rounds, as the draft's text has it; its code waits for a fourth.
 *
 * What the draft has otherwise, to little effect:
 *
 * - A cycle without a rate sample does not advance the filter of max_bw: two slots are kept.
 * - ProbeRTT goes back to the cwnd before it; the draft to an older one, if that was larger.
 * - After a pause extra_acked's count is 0, too, not only its interval new.
 * - In UP the growth of inflight_longterm follows cwnd at each ACK, not at the round's start.
 * - Without SACK Startup ends with the round of the loss, not at once.
 *
 * Bandwidth, min_rtt and gains are in INET_DIAG_BBRINFO: ss -ti prints them.
 */

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/random.h>
#include <net/tcp.h>

#include "bbr3_model.h"
#include "compat/tcp.h"

/* TargetInflight(): the BDP, unless congestion cut cwnd. */
static u32 bbr3_target_inflight(const struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);

	return min(bbr3_bdp(ca, bbr3_bw(ca), BBR3_GAIN_ONE), tcp_snd_cwnd(tcp_sk(sk)));
}

/* QuantizationBudget(): three quanta, one each in the queue, in the engine, and at the receiver. */
static u32 bbr3_quantized(const struct sock *sk, u32 inflight)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 bytes = min_t(unsigned long, READ_ONCE(sk->sk_pacing_rate) >> 10, 65536);
	u32 quantum = max(bytes / tcp_sk(sk)->mss_cache, 2U);

	inflight = max3(inflight, 3 * quantum, BBR3_MIN_CWND);
	return ca->state == BBR3_UP ? inflight + 2 : inflight;
}

static bool bbr3_has_elapsed(u32 stamp, u32 interval)
{
	return after(tcp_jiffies32, stamp + interval);
}

/* Pacing and cwnd */

static void bbr3_set_pacing_rate(struct sock *sk, u32 bw, u32 gain)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	unsigned long rate = min_t(u64, bbr3_bytes_per_s(bw, gain, tcp_sk(sk)->mss_cache),
				   READ_ONCE(sk->sk_max_pacing_rate));

	if (ca->full_bw_reached || rate > READ_ONCE(sk->sk_pacing_rate))
		WRITE_ONCE(sk->sk_pacing_rate, rate);
}

/* The first rate: cwnd in the first round trip, or in 1 ms while none was measured. */
static void bbr3_init_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 rtt_us = tp->srtt_us ? max(tp->srtt_us >> 3, 1U) : USEC_PER_MSEC;

	ca->seen_rtt = !!tp->srtt_us;
	WRITE_ONCE(sk->sk_pacing_rate, 0);
	bbr3_set_pacing_rate(sk, bbr3_rate(tcp_snd_cwnd(tp), rtt_us),
			     bbr3_gains[BBR3_STARTUP].pacing);
}

static void bbr3_save_cwnd(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery && ca->state != BBR3_PROBE_RTT)
		ca->prior_cwnd = cwnd;
	else
		ca->prior_cwnd = max(ca->prior_cwnd, cwnd);
}

static void bbr3_restore_cwnd(struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), ca->prior_cwnd));
}

static void bbr3_set_cwnd(struct sock *sk, u32 acked)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp), most;

	most = bbr3_bdp(ca, bbr3_bw(ca), bbr3_gains[ca->state].cwnd) +
	       max(ca->extra_acked[0], ca->extra_acked[1]);
	most = bbr3_quantized(sk, most);
	if (ca->full_bw_reached)
		cwnd = min(cwnd + acked, most);
	else if (cwnd < most || tp->delivered < TCP_INIT_CWND)
		cwnd += acked;
	cwnd = max(cwnd, BBR3_MIN_CWND);
	if (ca->state == BBR3_PROBE_RTT)
		cwnd = min(cwnd, bbr3_probe_rtt_cwnd(ca));
	tcp_snd_cwnd_set(tp, min3(cwnd, bbr3_cwnd_bound(ca), tp->snd_cwnd_clamp));
}

/* States */

static void bbr3_start_round(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->round_delivered = tcp_sk(sk)->delivered;
}

static void bbr3_start_down(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->loss_in_round = 0;
	ca->mark_in_round = 0;
	ca->bw_latest = 0;
	ca->inflight_latest = 0;
	ca->rounds_since_probe = get_random_u32() & 1;
	ca->probe_wait_ms = BBR3_PROBE_WAIT_MS +
			    reciprocal_scale(get_random_u32(), BBR3_PROBE_SPREAD_MS + 1);
	ca->phase_stamp = tcp_jiffies32;
	ca->acks = BBR3_ACKS_STOPPING;
	bbr3_start_round(sk);
	ca->state = BBR3_DOWN;
}

static void bbr3_start_refill(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	bbr3_reset_shortterm(ca);
	ca->probe_up_rounds = 0;
	ca->probe_up_acked = 0;
	ca->probe_precautionary = 0;
	ca->acks = BBR3_ACKS_REFILLING;
	bbr3_start_round(sk);
	ca->state = BBR3_REFILL;
}

static void bbr3_start_up(struct sock *sk, u32 bw)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->probe_sample = 1;
	ca->acks = BBR3_ACKS_STARTING;
	bbr3_start_round(sk);
	bbr3_reset_full_bw(ca, bw);
	ca->state = BBR3_UP;
}

/* Losses */

static void bbr3_note_loss(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!ca->loss_in_round)
		ca->loss_round_delivered = tcp_sk(sk)->delivered;
	ca->loss_in_round = 1;
}

/* RS.lost */
static u32 bbr3_lost(const struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);

	return tcp_sk(sk)->lost - ca->loss_round_lost;
}

/* RS.tx_in_flight, see above */
static u32 bbr3_tx_in_flight(const struct sock *sk, const struct rate_sample *rs)
{
	return rs->delivered + bbr3_lost(sk);
}

static bool bbr3_is_inflight_too_high(const struct sock *sk, const struct rate_sample *rs)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 lost = bbr3_lost(sk);

	return ca->mark_in_round || (lost && !tcp_is_sack(tcp_sk(sk))) ||
	       bbr3_too_high(lost, bbr3_tx_in_flight(sk, rs));
}

static void bbr3_handle_inflight_too_high(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->probe_too_high = 1;
	ca->probe_sample = 0;
	if (!rs->is_app_limited)
		ca->inflight_longterm =
			max(bbr3_inflight_at_loss(bbr3_tx_in_flight(sk, rs), bbr3_lost(sk),
						  rs->losses),
			    bbr3_beta(bbr3_target_inflight(sk)));
	if (ca->state == BBR3_UP) {
		ca->undo_state = BBR3_UP;
		bbr3_start_down(sk);
	}
}

/* Once in a round: AdaptLowerBoundsFromCongestion() */
static void bbr3_adapt_shortterm(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (bbr3_is_probing(ca) || !ca->loss_in_round)
		return;
	if (ca->bw_shortterm == BBR3_INFINITE)
		ca->bw_shortterm = bbr3_max_bw(ca);
	if (ca->inflight_shortterm == BBR3_INFINITE)
		ca->inflight_shortterm = tcp_snd_cwnd(tcp_sk(sk));
	ca->bw_shortterm = max(ca->bw_latest, bbr3_beta(ca->bw_shortterm));
	ca->inflight_shortterm = max(ca->inflight_latest, bbr3_beta(ca->inflight_shortterm));
}

/* The model */

static void bbr3_update_rounds(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->round_start = !before(rs->prior_delivered, ca->round_delivered);
	if (ca->round_start) {
		bbr3_start_round(sk);
		ca->rounds_since_probe = min(ca->rounds_since_probe + 1, BBR3_RENO_ROUNDS);
		ca->drain_rounds = min(ca->drain_rounds + 1, BBR3_DRAIN_ROUNDS);
	}
	ca->loss_round_start = !before(rs->prior_delivered, ca->loss_round_delivered);
	if (ca->loss_round_start)
		ca->loss_round_delivered = tp->delivered;
}

static void bbr3_update_max_bw(struct bbr3 *ca, const struct rate_sample *rs, u32 bw)
{
	if (bw >= bbr3_max_bw(ca) || !rs->is_app_limited)
		ca->max_bw[1] = max(ca->max_bw[1], bw);
}

/* UpdateACKAggregation() */
static void bbr3_update_extra_acked(struct sock *sk, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 now = (u32)tp->tcp_mstamp, expected, extra;

	if (ca->round_start) {
		ca->aggregate_rounds++;
		if (ca->aggregate_rounds >= (ca->full_bw_reached ? BBR3_AGGREGATION_ROUNDS : 1)) {
			ca->aggregate_rounds = 0;
			ca->extra_acked[0] = ca->extra_acked[1];
			ca->extra_acked[1] = 0;
		}
	}
	expected = (u64)bbr3_bw(ca) * (now - ca->aggregate_start) >> BBR3_RATE_SHIFT;
	if (ca->aggregate <= expected) {
		ca->aggregate = 0;
		ca->aggregate_start = now;
		expected = 0;
	}
	ca->aggregate += acked;
	extra = min3(ca->aggregate - expected, tcp_snd_cwnd(tp), (u32)U16_MAX);
	ca->extra_acked[1] = max_t(u32, ca->extra_acked[1], extra);
}

static void bbr3_check_full_bw(struct bbr3 *ca, const struct rate_sample *rs, u32 bw)
{
	if (ca->full_bw_now || !ca->round_start || rs->is_app_limited)
		return;
	if ((u64)bw * 4 >= (u64)ca->full_bw * 5) {
		bbr3_reset_full_bw(ca, bw);
		return;
	}
	ca->full_bw_count++;
	ca->full_bw_now = ca->full_bw_count == BBR3_FULL_BW_ROUNDS;
	ca->full_bw_reached |= ca->full_bw_now;
}

/* Whether a round of Startup, all of it in recovery, lost too much. */
static bool bbr3_startup_lost(const struct sock *sk, const struct rate_sample *rs)
{
	const struct bbr3 *ca = inet_csk_ca(sk);

	if (!ca->loss_round_start || !bbr3_is_inflight_too_high(sk, rs))
		return false;
	if (ca->mark_in_round)
		return true;
	return inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery &&
	       (ca->losses_in_round >= BBR3_STARTUP_LOSSES || !tcp_is_sack(tcp_sk(sk)));
}

static void bbr3_check_startup(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->state != BBR3_STARTUP)
		return;
	if (!ca->full_bw_reached && bbr3_startup_lost(sk, rs)) {
		ca->undo_state = BBR3_STARTUP;
		ca->full_bw_reached = 1;
		ca->full_bw_now = 1;
		ca->inflight_longterm = max(bbr3_bdp(ca, bbr3_bw(ca), BBR3_GAIN_ONE),
					    ca->inflight_latest);
	}
	if (ca->full_bw_reached) {
		ca->state = BBR3_DRAIN;
		ca->drain_rounds = 0;
	}
}

static u32 bbr3_inflight(const struct sock *sk, u32 bw)
{
	return bbr3_quantized(sk, bbr3_bdp(inet_csk_ca(sk), bw, BBR3_GAIN_ONE));
}

static void bbr3_check_drain(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->state != BBR3_DRAIN)
		return;
	if (tcp_packets_in_flight(tcp_sk(sk)) <= bbr3_inflight(sk, bbr3_bw(ca)) ||
	    (ca->round_start && ca->drain_rounds == BBR3_DRAIN_ROUNDS))
		bbr3_start_down(sk);
}

/* The bound grows by cwnd packets in 1, 1/2, 1/4, ... of a round: ProbeInflightLongtermUpward() */
static void bbr3_grow_longterm(struct sock *sk, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 per_packet;

	if (!tp->is_cwnd_limited || tcp_snd_cwnd(tp) < ca->inflight_longterm)
		return;
	per_packet = max(tcp_snd_cwnd(tp) >> ca->probe_up_rounds, 1U);
	ca->probe_up_acked += acked;
	ca->inflight_longterm += ca->probe_up_acked / per_packet;
	ca->probe_up_acked %= per_packet;
	if (ca->round_start)
		ca->probe_up_rounds = min(ca->probe_up_rounds + 1, 30);
}

/* AdaptLongTermModel(): whether it has chosen the next state. */
static bool bbr3_adapt_longterm(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->acks == BBR3_ACKS_STARTING && ca->round_start)
		ca->acks = BBR3_ACKS_FEEDBACK;
	if (ca->acks == BBR3_ACKS_STOPPING && ca->round_start) {
		ca->probe_sample = 0;
		ca->acks = BBR3_ACKS_INIT;
		if (bbr3_in_probe_bw(ca) && !rs->is_app_limited && ca->max_bw[1]) {
			ca->max_bw[0] = ca->max_bw[1];
			ca->max_bw[1] = 0;
		}
		if (bbr3_in_probe_bw(ca) && ca->probe_precautionary && !ca->probe_too_high) {
			bbr3_start_refill(sk);
			return true;
		}
	}
	if (ca->inflight_longterm == BBR3_INFINITE || bbr3_is_inflight_too_high(sk, rs))
		return false;
	ca->inflight_longterm = max(ca->inflight_longterm, bbr3_tx_in_flight(sk, rs));
	if (ca->state == BBR3_UP)
		bbr3_grow_longterm(sk, rs->acked_sacked);
	return false;
}

static bool bbr3_is_time_to_probe(const struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);

	return bbr3_has_elapsed(ca->phase_stamp, msecs_to_jiffies(ca->probe_wait_ms)) ||
	       ca->rounds_since_probe >= min(bbr3_target_inflight(sk), BBR3_RENO_ROUNDS);
}

static bool bbr3_is_time_to_cruise(const struct sock *sk)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u32 inflight = tcp_packets_in_flight(tcp_sk(sk));

	return inflight <= bbr3_with_headroom(ca->inflight_longterm) &&
	       inflight <= bbr3_inflight(sk, bbr3_max_bw(ca));
}

static bool bbr3_is_time_to_go_down(struct sock *sk, u32 bw)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->probe_too_high && tcp_packets_in_flight(tp) >= ca->inflight_longterm) {
		ca->probe_precautionary = 1;
		return true;
	}
	if (tp->is_cwnd_limited && tcp_snd_cwnd(tp) >= ca->inflight_longterm) {
		bbr3_reset_full_bw(ca, bw);
		return false;
	}
	return ca->full_bw_now;
}

static void bbr3_update_probe_bw(struct sock *sk, const struct rate_sample *rs, u32 bw)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!ca->full_bw_reached || bbr3_adapt_longterm(sk, rs))
		return;
	switch (ca->state) {
	case BBR3_DOWN:
	case BBR3_CRUISE:
		if (bbr3_is_time_to_probe(sk))
			bbr3_start_refill(sk);
		else if (ca->state == BBR3_DOWN && bbr3_is_time_to_cruise(sk))
			ca->state = BBR3_CRUISE;
		break;
	case BBR3_REFILL:
		if (ca->round_start)
			bbr3_start_up(sk, bw);
		break;
	case BBR3_UP:
		if (bbr3_is_time_to_go_down(sk, bw)) {
			ca->probe_too_high = 0;
			bbr3_start_down(sk);
		}
		break;
	}
}

/* Round trips */

static void bbr3_update_min_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	ca->probe_rtt_expired = bbr3_has_elapsed(ca->probe_rtt_min_stamp, BBR3_PROBE_RTT_INTERVAL);
	if (rs->rtt_us >= 0 && (rs->rtt_us < ca->probe_rtt_min_us ||
				(ca->probe_rtt_expired && !rs->is_ack_delayed))) {
		ca->probe_rtt_min_us = max(rs->rtt_us, 1L);
		ca->probe_rtt_min_stamp = tcp_jiffies32;
	}
	if (ca->probe_rtt_min_us < ca->min_rtt_us ||
	    bbr3_has_elapsed(ca->min_rtt_stamp, BBR3_MIN_RTT_WINDOW)) {
		ca->min_rtt_us = ca->probe_rtt_min_us;
		ca->min_rtt_stamp = ca->probe_rtt_min_stamp;
	}
}

/* ExitProbeRTT(), if its time is over */
static void bbr3_check_probe_rtt_done(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!ca->probe_rtt_holds || !bbr3_has_elapsed(ca->phase_stamp, 0))
		return;
	ca->probe_rtt_min_stamp = tcp_jiffies32;
	bbr3_restore_cwnd(sk);
	bbr3_reset_shortterm(ca);
	if (ca->full_bw_reached) {
		bbr3_start_down(sk);
		ca->state = BBR3_CRUISE;
	} else {
		ca->state = BBR3_STARTUP;
	}
}

static void bbr3_handle_probe_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	/* Packets sent now are no samples of the path's rate. */
	tp->app_limited = (tp->delivered + tcp_packets_in_flight(tp)) ? : 1;
	if (ca->probe_rtt_holds) {
		ca->probe_rtt_round_done |= ca->round_start;
		if (ca->probe_rtt_round_done)
			bbr3_check_probe_rtt_done(sk);
	} else if (tcp_packets_in_flight(tp) <= bbr3_probe_rtt_cwnd(ca)) {
		ca->phase_stamp = tcp_jiffies32 + BBR3_PROBE_RTT_DURATION;
		ca->probe_rtt_holds = 1;
		ca->probe_rtt_round_done = 0;
		bbr3_start_round(sk);
	}
}

static void bbr3_check_probe_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (ca->state != BBR3_PROBE_RTT && ca->probe_rtt_expired && !ca->idle_restart) {
		bbr3_save_cwnd(sk);
		ca->state = BBR3_PROBE_RTT;
		ca->probe_rtt_holds = 0;
		ca->acks = BBR3_ACKS_STOPPING;
		bbr3_start_round(sk);
	}
	if (ca->state == BBR3_PROBE_RTT)
		bbr3_handle_probe_rtt(sk);
	if (rs->delivered > 0)
		ca->idle_restart = 0;
}

/* The stack's calls */

static void bbr3_update_model(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 bw = bbr3_rate(rs->delivered, rs->interval_us);

	bbr3_update_rounds(sk, rs);
	ca->bw_latest = max(ca->bw_latest, bw);
	ca->inflight_latest = max_t(u32, ca->inflight_latest, rs->delivered);
	bbr3_update_max_bw(ca, rs, bw);
	if (ca->probe_sample && ca->loss_in_round && bbr3_is_inflight_too_high(sk, rs))
		bbr3_handle_inflight_too_high(sk, rs);
	if (ca->loss_round_start)
		bbr3_adapt_shortterm(sk);
	bbr3_update_extra_acked(sk, rs->acked_sacked);
	bbr3_check_full_bw(ca, rs, bw);
	bbr3_check_startup(sk, rs);
	bbr3_check_drain(sk);
	bbr3_update_probe_bw(sk, rs, bw);
	bbr3_update_min_rtt(sk, rs);
	bbr3_check_probe_rtt(sk, rs);
	if (!ca->loss_round_start)
		return;
	ca->loss_in_round = 0;
	ca->mark_in_round = 0;
	ca->losses_in_round = 0;
	ca->loss_round_lost = tcp_sk(sk)->lost;
	ca->bw_latest = bw;
	ca->inflight_latest = rs->delivered;
}

static void bbr3_cong_control(TWOWAY_CONG_CONTROL_ARGS(sk, rs))
{
	struct bbr3 *ca = inet_csk_ca(sk);
	bool recovering = inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery;

	if (ca->recovering && !recovering)
		bbr3_restore_cwnd(sk);
	ca->recovering = recovering;
	if (rs->losses > 0) {
		bbr3_note_loss(sk);
		ca->losses_in_round = min(ca->losses_in_round + 1, BBR3_STARTUP_LOSSES);
	}
	if (rs->delivered > 0 && rs->interval_us > 0)
		bbr3_update_model(sk, rs);
	if (!ca->seen_rtt && tcp_sk(sk)->srtt_us)
		bbr3_init_pacing_rate(sk);
	bbr3_set_pacing_rate(sk, bbr3_bw(ca), bbr3_gains[ca->state].pacing);
	bbr3_set_cwnd(sk, rs->acked_sacked);
}

static void bbr3_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	ca->min_rtt_us = tcp_min_rtt(tp);
	ca->min_rtt_stamp = tcp_jiffies32;
	ca->probe_rtt_min_us = ca->min_rtt_us;
	ca->probe_rtt_min_stamp = tcp_jiffies32;
	ca->round_delivered = tp->delivered;
	ca->loss_round_delivered = tp->delivered;
	ca->loss_round_lost = tp->lost;
	ca->aggregate_start = (u32)tp->tcp_mstamp;
	ca->inflight_longterm = BBR3_INFINITE;
	ca->undo_state = BBR3_DRAIN;
	bbr3_reset_shortterm(ca);
	bbr3_init_pacing_rate(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* Nothing was in flight: HandleRestartFromIdle() */
static void bbr3_tx_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr3 *ca = inet_csk_ca(sk);

	if (!tp->app_limited)
		return;
	ca->idle_restart = 1;
	ca->aggregate_start = (u32)tp->tcp_mstamp;
	ca->aggregate = 0;
	if (bbr3_in_probe_bw(ca))
		bbr3_set_pacing_rate(sk, bbr3_bw(ca), BBR3_GAIN_ONE);
	else if (ca->state == BBR3_PROBE_RTT)
		bbr3_check_probe_rtt_done(sk);
}

TWOWAY_CWND_EVENT_TX_START(bbr3_tx_start);

/* Recovery, or the stack's answer to a mark, begins. */
static u32 bbr3_ssthresh(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	bbr3_save_cwnd(sk);
	ca->undo_state = BBR3_DRAIN;
	ca->undo_bw_shortterm = ca->bw_shortterm;
	ca->undo_inflight_shortterm = ca->inflight_shortterm;
	ca->undo_inflight_longterm = ca->inflight_longterm;
	return tcp_sk(sk)->snd_ssthresh;
}

static void bbr3_set_state(struct sock *sk, u8 state)
{
	struct bbr3 *ca = inet_csk_ca(sk);

	if (state == TCP_CA_CWR)
		ca->mark_in_round = 1;
	if (state == TCP_CA_CWR || state == TCP_CA_Loss)
		bbr3_note_loss(sk);
}

/* The recovery was spurious: HandleSpuriousLossDetection() */
static u32 bbr3_undo_cwnd(struct sock *sk)
{
	struct bbr3 *ca = inet_csk_ca(sk);
	u32 undo_state = ca->undo_state;

	bbr3_restore_cwnd(sk);
	ca->loss_in_round = 0;
	ca->losses_in_round = 0;
	ca->loss_round_lost = tcp_sk(sk)->lost;
	bbr3_reset_full_bw(ca, 0);
	ca->bw_shortterm = max(ca->bw_shortterm, ca->undo_bw_shortterm);
	ca->inflight_shortterm = max(ca->inflight_shortterm, ca->undo_inflight_shortterm);
	ca->inflight_longterm = max(ca->inflight_longterm, ca->undo_inflight_longterm);
	if (undo_state == BBR3_STARTUP && ca->state != BBR3_STARTUP) {
		ca->full_bw_reached = 0;
		if (ca->state != BBR3_PROBE_RTT)
			ca->state = BBR3_STARTUP;
	} else if (undo_state == BBR3_UP && ca->state != BBR3_UP &&
		   ca->state != BBR3_PROBE_RTT) {
		bbr3_start_refill(sk);
	}
	ca->undo_state = BBR3_DRAIN;
	return tcp_snd_cwnd(tcp_sk(sk));
}

/* As many as the draft's quantum has at least. */
static u32 bbr3_min_tso_segs(struct sock *sk)
{
	return 2;
}

/* Startup may send three windows while losses are repaired. */
static u32 bbr3_sndbuf_expand(struct sock *sk)
{
	return 3;
}

static size_t bbr3_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct bbr3 *ca = inet_csk_ca(sk);
	u64 bw;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	bw = mul_u64_u32_shr((u64)bbr3_bw(ca) * tcp_sk(sk)->mss_cache, USEC_PER_SEC,
			     BBR3_RATE_SHIFT);
	info->bbr = (struct tcp_bbr_info){
		.bbr_bw_lo = lower_32_bits(bw),
		.bbr_bw_hi = upper_32_bits(bw),
		.bbr_min_rtt = ca->min_rtt_us,
		.bbr_pacing_gain = bbr3_gains[ca->state].pacing,
		.bbr_cwnd_gain = bbr3_gains[ca->state].cwnd,
	};
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

static struct tcp_congestion_ops bbr3_ops __read_mostly = {
	.name		= "bbr3",
	.init		= bbr3_init,
	.ssthresh	= bbr3_ssthresh,
	.set_state	= bbr3_set_state,
	.cong_control	= bbr3_cong_control,
	.undo_cwnd	= bbr3_undo_cwnd,
	.min_tso_segs	= bbr3_min_tso_segs,
	.sndbuf_expand	= bbr3_sndbuf_expand,
	.get_info	= bbr3_get_info,
	TWOWAY_TX_START_OP(bbr3_tx_start),
	/* It answers to loss: anybody may use it. */
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
};

static int __init bbr3_register(void)
{
	BUILD_BUG_ON(sizeof(struct bbr3) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&bbr3_ops);
}

static void __exit bbr3_unregister(void)
{
	tcp_unregister_congestion_control(&bbr3_ops);
}

module_init(bbr3_register);
module_exit(bbr3_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("TCP congestion control BBR, version 3, of draft-ietf-ccwg-bbr");
MODULE_LICENSE("GPL");
