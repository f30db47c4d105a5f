// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP Tahoe: the congestion control of 4.3BSD-Tahoe (1988) on today's stack
 *
 *	ACK of new data		w < ssthresh ? w += 1 : w += 1/floor(w)
 *	loss			ssthresh = max(min(w / 2, offered window), 2), w = 1
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
 * Clark, SIGCOMM '91, section 2.1, whose pseudo-code is the default: with its rule of
 * growth floor(w) grows by exactly one per window of ACKs.
 *
 *	modprobe tcp_tahoe				1/floor(w)
 *	modprobe tcp_tahoe growth=bsd			1/w
 *	modprobe tcp_tahoe slow_start=bsd		w <= ssthresh
 *	modprobe tcp_tahoe ssthresh=bsd			max(min(w, offered window) / 2, 2)
 *	modprobe tcp_tahoe timer=bsd			ticks of 500 ms, see below
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
 * Nothing of a flow enters the host's metrics of its destination (ip tcp_metrics), from
 * which later flows of any congestion control start. The stack records them when a connection ends,
 * without asking. We prevent that by taking the socket's route away with the ACK of our FIN. If the
 * stack then looks up a route to acknowledge the peer's FIN, which comes with that ACK or after it,
 * a round trip in the metrics is forgotten, and nothing else changes.
 *
 * The timer. Linux's is srtt + max(4 rttvar, 200 ms), from a sample per ACK, and
 * `ip route ... rto_min` raises the least value. BSD's (tahoe_timer.h) is srtt +
 * 2 rttvar in ticks of 500 ms, at least 1 s, from one segment at a time, and fires at a
 * tick; ticks are the same for all connections, counted from boot. With timer=bsd the timer is
 * BSD's: icsk_rto is the time left to that tick, set before the stack starts the timer; when an ACK
 * has made the stack start it, we start it again as BSD would. What differs from BSD's timer then:
 *
 * - The kernel's timer wheel is late by up to an eighth of a wait. When an ACK has come
 *   since the timer was started, it is woken before the tick, waits for the rest, and is
 *   right to the jiffy (8 of them if it waits for more than 4 s, 64 for more than 32 s, at
 *   1000 Hz). When none has, it is late as the wheel is: for the first segment after
 *   everything was acknowledged, after a timeout, after a fast retransmission; and always
 *   from Linux 6.15 on, whose TCP takes a timer that is woken for one that is due. The
 *   next wait is counted from the right tick all the same.
 * - A segment that is timed counts as sent with the ACK before it, unless everything was
 *   acknowledged: too early if the application wrote it later.
 * - The SYN is not timed: it is gone before the congestion control is asked.
 * - tcp_thin_linear_timeouts is still Linux's, and so is how often it retries.
 *
 * What remains of today's stack, and differs from 4.3BSD-Tahoe:
 *
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
 *   slow start goes on at equality, as with slow_start=bsd. The default ssthresh, MAX[MIN(cwnd/2,
 *   maxwnd), 2], is the paper's, too. BSD halves what may have been in flight instead, as with
 *   ssthresh=bsd: half as much where the receiver's window is the smaller. maxwnd is what the
 *   receiver offers when the loss is found.
 * - w is bounded at 65535 segments, as BSD's at 65535 bytes. As in BSD every new ACK
 *   opens it, whether or not the application uses it, and a pause longer than the timer
 *   closes it.
 * - ECN and drops on the sending host are losses as well; BSD's answer to a source
 *   quench, w = 1, is the nearest relative. So is a path MTU that shrinks.
 * - Only SO_MAX_PACING_RATE paces the sender. Whether a burst is one large buffer is the
 *   interface's choice; the papers' packets need `ip link set ... gso_max_segs 1`, and gro
 *   off.
 */

#include <linux/math64.h>
#include <linux/module.h>
#include <net/tcp.h>

#include "compat/tcp.h"
#include "tahoe_timer.h"
#include "tahoe_window.h"
#include "variants.h"

/* Duplicate ACKs that mean a loss: BSD's tcprexmtthresh. */
#define TAHOE_DUPACKS 3U
/* BSD's slow timeout, in jiffies. */
#define TAHOE_TICK (HZ / 2)

/**
 * struct tahoe - what a flow of tahoe keeps beside its tcp_sock
 * @w: the window
 * @una: snd_una when @w was last moved
 * @found_reordering: tcp_sock's reordering before this congestion control had the socket
 * @timer: srtt and rttvar; this and all below are used with timer=bsd only
 * @timed: sequence number of the segment that is timed; snd_nxt while none is
 * @timed_tick: tick at which it was sent; the current one while none is timed
 * @expiry: tick at which the retransmission timer expires
 */
struct tahoe {
	struct tahoe_window w;
	u32 una;
	u32 found_reordering;
	struct tahoe_timer timer;
	u32 timed;
	u32 timed_tick;
	u32 expiry;
};

static char *growth = "floor";
module_param(growth, charp, 0444);
MODULE_PARM_DESC(growth, "congestion avoidance per ACK: floor (1/floor(w), default) or bsd (1/w)");

static char *slow_start = "paper";
module_param(slow_start, charp, 0444);
MODULE_PARM_DESC(slow_start, "slow start: paper (w < ssthresh, default) or bsd (w <= ssthresh)");

static char *ssthresh = "paper";
module_param(ssthresh, charp, 0444);
MODULE_PARM_DESC(ssthresh, "threshold after a loss: paper (min(w/2, offered), default) or bsd (min(w, offered)/2)");

static char *timer = "linux";
module_param(timer, charp, 0444);
MODULE_PARM_DESC(timer, "retransmission timer: linux (default) or bsd (ticks of 500 ms)");

static enum tahoe_growth growth_rule;
static enum tahoe_threshold threshold_rule;
/* Segments beyond ssthresh up to which slow start goes: 0 or 1. */
static u32 slow_start_beyond;
static bool timer_is_bsd;

/* Jiffies since boot in 64 bits: an overflow of jiffies does not shift ticks. */
static u64 tahoe_jiffies(void)
{
	return get_jiffies_64() - INITIAL_JIFFIES;
}

static u32 tahoe_tick(u64 at)
{
	return div_u64(at, TAHOE_TICK);
}

static u32 tahoe_tick_now(void)
{
	return tahoe_tick(tahoe_jiffies());
}

/* Whether the stack is about to send the one segment of a fast retransmission. */
static bool tahoe_retransmits(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery && !tcp_sk(sk)->retrans_out;
}

/* Nothing is timed: the next segment of new data will be. */
static void tahoe_timer_watch(struct sock *sk)
{
	struct tahoe *ca = inet_csk_ca(sk);

	ca->timed = tcp_sk(sk)->snd_nxt;
	ca->timed_tick = tahoe_tick_now();
}

/* Jiffies until the timer expires. */
static u32 tahoe_timer_left(const struct tahoe *ca)
{
	s32 left = ca->expiry * TAHOE_TICK - (u32)tahoe_jiffies();

	return max(left, 1);
}

/* BSD starts the timer in this tick, and so will the stack. */
static void tahoe_timer_start(struct sock *sk, u32 tick)
{
	struct tahoe *ca = inet_csk_ca(sk);

	ca->expiry = tick + tahoe_timer_ticks(&ca->timer);
	inet_csk(sk)->icsk_rto = tahoe_timer_left(ca);
}

/* A segment that is about to be sent again is not timed; if the timer has fired, it backs off. */
static void tahoe_timer_loss(struct sock *sk, u8 state)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tahoe *ca = inet_csk_ca(sk);

	tahoe_timer_watch(sk);
	/* It is not running while the stack deals with its expiry. */
	if (state != TCP_CA_Loss || icsk->icsk_pending)
		return;

	tahoe_timer_expired(&ca->timer);
	/* The timer may be a jiffy early: count from the tick that it waited for. */
	tahoe_timer_start(sk, tahoe_tick(tahoe_jiffies() + 1));
	/* The stack will double it before it starts the timer. */
	icsk->icsk_rto = DIV_ROUND_UP(icsk->icsk_rto, 2);
}

/*
 * On its first level (waits under 63 jiffies) the timer wheel is late by at most one jiffy. Each
 * level above takes waits eight times as long, and may be late by the longest wait of the level
 * below: woken that much early, the timer waits for the rest on the level below.
 */
static void tahoe_timer_restart(struct sock *sk)
{
	u32 left = tahoe_timer_left(inet_csk_ca(sk)) - 1, early = 63;

	while (left / 64 >= early)
		early *= 8;
	inet_csk_reset_xmit_timer(sk, ICSK_TIME_RETRANS, left, TCP_RTO_MAX);
	if (left > early)
		twoway_wake_early(sk, jiffies + left - early);
}

/* After an ACK, which may have made the stack start the timer with its own timeout. */
static void tahoe_timer_ack(struct sock *sk, bool is_new)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tahoe *ca = inet_csk_ca(sk);

	if (after(tp->snd_una, ca->timed)) {
		tahoe_timer_sample(&ca->timer, tahoe_tick_now() - ca->timed_tick);
		tahoe_timer_watch(sk);
	} else if (tp->snd_nxt == ca->timed) {
		tahoe_timer_watch(sk);
	}
	if (is_new || tahoe_retransmits(sk))
		tahoe_timer_start(sk, tahoe_tick_now());
	if (inet_csk(sk)->icsk_pending == ICSK_TIME_RETRANS)
		tahoe_timer_restart(sk);
}

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
	/*
	 * Duplicate ACKs that mean a loss. The stack adapts it to reordering, and resets it when
	 * the timer fires. tahoe_rto's number cannot be reached: of the segments sent, one is
	 * missing. Losses of a SYN come before init, which stores the stack's own number.
	 */
	if (inet_csk(sk)->icsk_ca_initialized)
		tp->reordering = variant_value(sk) ?: max(ca->w.segments, tp->packets_out);
}

static u32 tahoe_ssthresh(struct sock *sk)
{
	const struct tahoe *ca = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	return tahoe_window_ssthresh(&ca->w, tp->snd_wnd / tp->mss_cache, threshold_rule);
}

static void tahoe_close(struct sock *sk)
{
	struct tahoe *ca = inet_csk_ca(sk);

	tahoe_window_close(&ca->w);
	ca->una = tcp_sk(sk)->snd_una;
	tahoe_apply(sk);
}

static void tahoe_init(struct sock *sk)
{
	struct tahoe *ca = inet_csk_ca(sk);

	ca->found_reordering = tcp_sk(sk)->reordering;
	/* Not paced unless the socket asks: the ACK clock is what is being studied. */
	WRITE_ONCE(sk->sk_pacing_rate, READ_ONCE(sk->sk_max_pacing_rate));
	tahoe_timer_init(&ca->timer);
	tahoe_timer_watch(sk);
	tahoe_close(sk);
}

static void tahoe_release(struct sock *sk)
{
	const struct tahoe *ca = inet_csk_ca(sk);

	/* A socket that never connected had no init. */
	if (inet_csk(sk)->icsk_ca_initialized)
		tcp_sk(sk)->reordering = ca->found_reordering;
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

	if (timer_is_bsd && state > TCP_CA_CWR)
		tahoe_timer_loss(sk, state);
}

/* All that was sent has been acknowledged, and nothing more will be. */
static bool tahoe_has_ended(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const int closing = TCPF_FIN_WAIT1 | TCPF_CLOSING | TCPF_LAST_ACK;

	return (1 << sk->sk_state) & closing && tp->snd_una == tp->write_seq;
}

/*
 * Make tcp_update_metrics() record nothing: it needs a route, and takes nothing from a flow whose
 * timer has backed off. To acknowledge the peer's FIN the stack looks the route up again; then the
 * backed-off timer protects all but the destination's round trip.
 */
static void tahoe_leave_no_metrics(struct sock *sk)
{
	__sk_dst_reset(sk);
	inet_csk(sk)->icsk_backoff = 1;
}

static void tahoe_cong_control(TWOWAY_CONG_CONTROL_ARGS(sk, rs))
{
	struct tahoe *ca = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool is_new = ca->una != tp->snd_una;

	/* The ACK of the SYN comes before init. */
	if (!inet_csk(sk)->icsk_ca_initialized)
		return;

	if (is_new) {
		ca->una = tp->snd_una;
		tahoe_window_open(&ca->w, tp->snd_ssthresh + slow_start_beyond, growth_rule);
	}
	tahoe_apply(sk);

	/* The fast retransmission itself, whatever else is still counted as in flight. */
	if (tahoe_retransmits(sk))
		tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + 1);

	if (timer_is_bsd)
		tahoe_timer_ack(sk, is_new);
	if (tahoe_has_ended(sk))
		tahoe_leave_no_metrics(sk);
}

/* Nothing in flight and nothing sent for a timeout: no ACKs will clock what follows. */
static void tahoe_tx_start(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tcp_jiffies32 - tp->lsndtime > inet_csk(sk)->icsk_rto)
		tahoe_close(sk);

	/* A retransmission after a timeout is not timed, and has its timer set. */
	if (timer_is_bsd && !tp->packets_out) {
		tahoe_timer_watch(sk);
		tahoe_timer_start(sk, tahoe_tick_now());
	}
}

TWOWAY_CWND_EVENT_TX_START(tahoe_tx_start);

/* Never asked for: nothing is ever undone. */
static u32 tahoe_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static const struct tcp_congestion_ops tahoe_ops = {
	.init		= tahoe_init,
	.release	= tahoe_release,
	.ssthresh	= tahoe_ssthresh,
	.set_state	= tahoe_set_state,
	.cong_control	= tahoe_cong_control,
	.undo_cwnd	= tahoe_undo_cwnd,
	TWOWAY_TX_START_OP(tahoe_tx_start),
	/* It answers to every loss by the smallest window: anybody may use it. */
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
};

/* The value of each is how many duplicate ACKs mean a loss; 0: none ever do. */
static struct variant variants[2] __read_mostly;
static int variants_count = ARRAY_SIZE(variants);

/* The number of the word among two, paper's or Linux's first; -EINVAL if it is neither. */
static int tahoe_choice(const char *parameter, const char *word, const char *first)
{
	const char * const words[] = { first, "bsd" };
	int choice = sysfs_match_string(words, word);

	if (choice < 0)
		pr_err("%s: must be %s or bsd, got \"%s\"\n", parameter, first, word);
	return choice;
}

static int __init tahoe_parse_parameters(void)
{
	int growth_choice = tahoe_choice("growth", growth, "floor");
	int slow_start_choice = tahoe_choice("slow_start", slow_start, "paper");
	int ssthresh_choice = tahoe_choice("ssthresh", ssthresh, "paper");
	int timer_choice = tahoe_choice("timer", timer, "linux");

	if (growth_choice < 0 || slow_start_choice < 0 || ssthresh_choice < 0 || timer_choice < 0)
		return -EINVAL;
	growth_rule = growth_choice;
	slow_start_beyond = slow_start_choice;
	threshold_rule = ssthresh_choice;
	timer_is_bsd = timer_choice;
	if (timer_is_bsd && !TWOWAY_WAKES_EARLY)
		pr_warn("timer: on this kernel bsd's ticks are up to an eighth of a wait late\n");
	return 0;
}

static int __init tahoe_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct tahoe) > ICSK_CA_PRIV_SIZE);

	err = tahoe_parse_parameters();
	if (err)
		return err;

	variants[0] = (struct variant){ .ops = tahoe_ops, .value = TAHOE_DUPACKS };
	strscpy(variants[0].ops.name, "tahoe", TCP_CA_NAME_MAX);
	variants[1] = (struct variant){ .ops = tahoe_ops, .value = 0 };
	strscpy(variants[1].ops.name, "tahoe_rto", TCP_CA_NAME_MAX);
	return variants_register(variants, &variants_count);
}

static void __exit tahoe_unregister(void)
{
	variants_unregister(variants, variants_count);
}

module_init(tahoe_register);
module_exit(tahoe_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("TCP congestion control of 4.3BSD-Tahoe");
MODULE_LICENSE("GPL");
