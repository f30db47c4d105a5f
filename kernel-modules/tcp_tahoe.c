// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Tahoe: the congestion control of 4.3BSD-Tahoe (1988) on today's stack
 *
 *	ACK of new data		w < ssthresh ? w += 1 : w += 1/floor(w)
 *	loss			ssthresh = max(min(w, offered window) / 2, 2), w = 1
 *	may send		up to snd_una + floor(w) segments, never more
 *
 *	              3 duplicate ACKs: retransmit one segment, w = 1
 *	           +---------------------------------------------------+
 *	           |                                                   v
 *	  slow start, then avoidance                         wait for the next new ACK
 *	           ^                                                   |
 *	           +---------------------------------------------------+
 *	              any ACK of new data: w = 2, no memory of the loss
 *	  timer: w = 1, everything from snd_una on is sent again as w allows
 *
 * V. Jacobson, Congestion Avoidance and Control, SIGCOMM '88; Zhang, Shenker and
 * Clark, SIGCOMM '91, section 2.1, whose rule of growth is the default: with it
 * floor(w) grows by exactly one per window of ACKs.
 *
 *	modprobe tcp_tahoe				1/floor(w)
 *	modprobe tcp_tahoe growth=bsd			1/w
 *	modprobe tcp_tahoe slow_start=bsd		w <= ssthresh
 *
 * Two names are registered: "tahoe" retransmits on the third duplicate ACK, and
 * "tahoe_rto" waits for the retransmission timer, as Tahoe did before it was given
 * fast retransmit.
 *
 * How it is done. With .cong_control the stack leaves the window alone (no PRR, no
 * restoring at the end of recovery), but four of its habits are not Tahoe's:
 *
 * - Limited transmit. A duplicate ACK takes a segment out of Linux's flight and so
 *   lets a new one go. BSD's window reaches from snd_una and duplicates move
 *   nothing. snd_cwnd is therefore w less the duplicates counted; TCP_INFO shows
 *   that, which is w whenever there are none. (From the third duplicate to the next
 *   ACK it shows the flight, which is what lets the one retransmission go.)
 * - Recovery that lasts until everything outstanding is acknowledged, with holes
 *   retransmitted on partial ACKs (NewReno). BSD sends one segment on the third
 *   duplicate and forgets: the next new ACK is like any other. Here high_seq, where
 *   recovery ends, is moved down to just above snd_una. A second hole then waits for
 *   the timer: at w = 2 nothing may be sent while more is outstanding. When the timer
 *   fires, half the window is below the least value, and ssthresh becomes 2. This is
 *   the paper's footnote 9, which has w at 1 then; the ACK of the first
 *   retransmission has made it 2, and half of either is below 2.
 * - Undo. Forgotten at each reduction.
 * - A threshold of duplicate ACKs that adapts to reordering. BSD's is constant.
 *
 * What remains of today's stack, and differs from 4.3BSD-Tahoe:
 *
 * - The timer. Linux's is srtt + max(4 rttvar, 200 ms), from a sample per ACK; BSD's
 *   is srtt + 2 rttvar in ticks of 500 ms, at least 1 s, from one segment at a time.
 *   `ip route ... rto_min` raises the least value.
 * - After the timer has fired, duplicate ACKs are ignored until everything that was
 *   outstanding is acknowledged. BSD would count them, and could take those that its
 *   own repeats cause for another loss. Nor are there ever more duplicates than
 *   segments outstanding, less the one that is missing.
 * - With SACK, holes are known: each is retransmitted as soon as the ACK of the one
 *   before arrives, as a new loss, with w = 1 and so ssthresh = 2; with RACK they are
 *   found by time, and "tahoe_rto" no longer waits. For Tahoe turn SACK off, and with it
 *   tcp_recovery (RACK), tcp_early_retrans (loss probes) and tcp_frto, which are the
 *   stack's, whatever the congestion control.
 * - Segments are counted, not bytes. w < ssthresh is the paper's pseudo-code; BSD's
 *   slow start goes on at equality, as with slow_start=bsd. w is bounded at 65535
 *   segments, as BSD's at 65535 bytes. As in BSD every new ACK opens it, whether or not
 *   the application uses it, and a pause longer than the timer closes it.
 * - ECN and drops on the sending host are losses as well; BSD's answer to a source
 *   quench, w = 1, is the nearest relative. So is a path MTU that shrinks.
 * - The sender is never paced. Whether a burst is one large buffer is the interface's
 *   choice; the papers' packets need `ip link set ... gso_max_segs 1`, and gro off.
 */

#include <linux/module.h>
#include <net/tcp.h>

#include "compat/compat.h"
#include "tahoe_window.h"

/* Duplicate ACKs that mean a loss: BSD's tcprexmtthresh. */
#define TAHOE_DUPACKS 3U
/* More than there can be: one segment of a window is always missing. */
#define TAHOE_DUPACKS_NEVER (TAHOE_MAX_SEGMENTS + 1)

struct tahoe {
	struct tahoe_window w;
	u32 una;	/* snd_una when w last had its say */
	u32 dupacks;	/* that mean a loss; constant */
};

static char *growth = "floor";
module_param(growth, charp, 0444);
MODULE_PARM_DESC(growth, "congestion avoidance per ACK: floor (1/floor(w), default) or bsd (1/w)");

static char *slow_start = "paper";
module_param(slow_start, charp, 0444);
MODULE_PARM_DESC(slow_start, "slow start: paper (w < ssthresh, default) or bsd (w <= ssthresh)");

static enum tahoe_growth growth_rule;
/* Segments beyond ssthresh up to which slow start goes: 0 or 1. */
static u32 slow_start_beyond;

/*
 * New data may go while packets_out < w. The stack compares in_flight, which is less by
 * the segments that duplicate ACKs stand for; at least one of the others is in flight.
 */
static void tahoe_apply(struct sock *sk)
{
	const struct tahoe *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = 1;

	if (ca->w.segments > tp->sacked_out)
		cwnd = ca->w.segments - tp->sacked_out;
	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
	/* The stack adapts it to reordering, and resets it when the timer fires. */
	tp->reordering = ca->dupacks;
}

static u32 tahoe_ssthresh(struct sock *sk)
{
	const struct tahoe *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	return tahoe_window_ssthresh(&ca->w, tp->snd_wnd / tp->mss_cache);
}

static void tahoe_close(struct sock *sk)
{
	struct tahoe *ca = inet_csk_ca(sk);

	tahoe_window_close(&ca->w);
	ca->una = tcp_sk(sk)->snd_una;
	tahoe_apply(sk);
}

static void tahoe_start(struct sock *sk, u32 dupacks)
{
	struct tahoe *ca = inet_csk_ca(sk);

	ca->dupacks = dupacks;
	/* Not paced: the ACK clock is what is being studied. */
	WRITE_ONCE(sk->sk_pacing_rate, ~0UL);
	tahoe_close(sk);
}

static void tahoe_init(struct sock *sk)
{
	tahoe_start(sk, TAHOE_DUPACKS);
}

static void tahoe_rto_init(struct sock *sk)
{
	tahoe_start(sk, TAHOE_DUPACKS_NEVER);
}

static void tahoe_release(struct sock *sk)
{
	tcp_sk(sk)->reordering = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reordering);
}

/* Called last of all on a loss: what is set here stays. */
static void tahoe_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (state < TCP_CA_CWR)
		return;

	/* The stack asks for it only once per window; every loss counts. */
	tp->snd_ssthresh = tahoe_ssthresh(sk);
	tahoe_close(sk);

	/* No undo: by F-RTO, and by timestamps or D-SACK. */
	tp->prior_ssthresh = 0;
	tp->undo_marker = 0;
	if (state == TCP_CA_Recovery)
		tp->high_seq = tp->snd_una + 1;
}

static void tahoe_cong_control(TWOWAY_CONG_CONTROL_ARGS(sk, rs))
{
	struct tahoe *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	/* The ACK of the SYN comes before init. */
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;

	if (ca->una != tp->snd_una) {
		ca->una = tp->snd_una;
		tahoe_window_open(&ca->w, tp->snd_ssthresh + slow_start_beyond, growth_rule);
	}
	tahoe_apply(sk);

	/* The fast retransmission itself, whatever else is still counted as in flight. */
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery && !tp->retrans_out)
		tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + 1);
}

/* Nothing in flight and nothing sent for a timeout: no ACKs will clock what follows. */
static void tahoe_tx_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_jiffies32 - tp->lsndtime > inet_csk(sk)->icsk_rto)
		tahoe_close(sk);
}

TWOWAY_CWND_EVENT_TX_START(tahoe_tx_start);

/* Never asked for: nothing is ever undone. */
static u32 tahoe_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static struct tcp_congestion_ops tahoe_ops __read_mostly = {
	.init		= tahoe_init,
	.release	= tahoe_release,
	.ssthresh	= tahoe_ssthresh,
	.set_state	= tahoe_set_state,
	.cong_control	= tahoe_cong_control,
	.undo_cwnd	= tahoe_undo_cwnd,
	TWOWAY_TX_START_OP(tahoe_tx_start),
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "tahoe",
	.owner		= THIS_MODULE,
};

static struct tcp_congestion_ops tahoe_rto_ops __read_mostly = {
	.init		= tahoe_rto_init,
	.release	= tahoe_release,
	.ssthresh	= tahoe_ssthresh,
	.set_state	= tahoe_set_state,
	.cong_control	= tahoe_cong_control,
	.undo_cwnd	= tahoe_undo_cwnd,
	TWOWAY_TX_START_OP(tahoe_tx_start),
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= "tahoe_rto",
	.owner		= THIS_MODULE,
};

static int tahoe_parse_growth(void)
{
	static const char * const rules[] = {
		[TAHOE_GROWTH_FLOOR] = "floor",
		[TAHOE_GROWTH_BSD] = "bsd",
	};
	int rule = sysfs_match_string(rules, growth);

	if (rule < 0) {
		pr_err("growth: must be floor or bsd, got \"%s\"\n", growth);
		return rule;
	}
	growth_rule = rule;
	return 0;
}

static int tahoe_parse_slow_start(void)
{
	static const char * const rules[] = { "paper", "bsd" };
	int rule = sysfs_match_string(rules, slow_start);

	if (rule < 0) {
		pr_err("slow_start: must be paper or bsd, got \"%s\"\n", slow_start);
		return rule;
	}
	slow_start_beyond = rule;
	return 0;
}

static int __init tahoe_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct tahoe) > ICSK_CA_PRIV_SIZE);

	err = tahoe_parse_growth() ?: tahoe_parse_slow_start();
	if (err)
		return err;

	err = tcp_register_congestion_control(&tahoe_ops);
	if (err)
		return err;

	err = tcp_register_congestion_control(&tahoe_rto_ops);
	if (err)
		tcp_unregister_congestion_control(&tahoe_ops);
	return err;
}

static void __exit tahoe_unregister(void)
{
	tcp_unregister_congestion_control(&tahoe_rto_ops);
	tcp_unregister_congestion_control(&tahoe_ops);
}

module_init(tahoe_register);
module_exit(tahoe_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("TCP congestion control of 4.3BSD-Tahoe");
MODULE_LICENSE("GPL");
