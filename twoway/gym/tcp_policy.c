// SPDX-License-Identifier: GPL-2.0-only
/*
 * tcp_policy - a congestion control that asks a program of the host
 *
 *   at the first ACK at or after ask_us:  question = what TCP_INFO has, to a FIFO
 *                                         answer   = window, rate, when it is in force, when to ask
 *   at the first ACK at or after due_us:  cwnd = window, pacing rate = rate
 *
 * User-mode Linux waits for the answer in a system call of the host. Its clock in virtual time
 * stands still meanwhile, however long the program thinks: due_us charges that time, as declared.
 *
 * A loss changes nothing by itself: the window is the program's, retransmissions are Linux's.
 */
#include <linux/module.h>
#include <net/tcp.h>
#include <os.h>

#define QUESTIONS "/mnt/policy/questions"
#define ANSWERS	  "/mnt/policy/answers"

/* Both have the layout that __init__.py reads and writes. */
struct question {
	u64 time_us;		/* the kernel's monotonic clock */
	u64 acked_bytes;
	u32 port;		/* the receiver's, which tells flows apart */
	u32 window;		/* packets, as the next three */
	u32 in_flight;
	u32 retransmitted;
	u32 marked;
	u32 rtt_us;		/* smoothed */
	u32 min_rtt_us;
	u32 unused;
};

struct answer {
	u64 due_us;
	u64 ask_us;
	u64 rate;		/* bytes per second; 0: not paced */
	u64 window;		/* packets; 0: ask no more */
};

struct policy {
	struct answer answer;	/* the latest; ask_us is 0 before the first */
	bool waits;		/* for due_us */
};

static int questions, answers; /* descriptors of the host */
static bool closed; /* by the program */

static bool ask(const struct question *question, struct answer *answer)
{
	int n = os_write_file(questions, question, sizeof(*question));

	if (n == sizeof(*question))
		do {
			n = os_read_file(answers, answer, sizeof(*answer));
		} while (n == -EINTR);
	return n == sizeof(*answer) && answer->window;
}

static void apply(struct sock *sk)
{
	struct policy *policy = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!policy->waits || tp->tcp_mstamp < policy->answer.due_us)
		return;
	policy->waits = false;
	tcp_snd_cwnd_set(tp, min_t(u64, policy->answer.window, tp->snd_cwnd_clamp));
	if (policy->answer.rate) {
		sk->sk_pacing_rate = min_t(u64, policy->answer.rate, sk->sk_max_pacing_rate);
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	} else {
		sk->sk_pacing_status = SK_PACING_NONE;
	}
}

static void policy_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct policy *policy = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct question question = {
		.time_us = tp->tcp_mstamp,
		.acked_bytes = tp->bytes_acked,
		.port = ntohs(inet_sk(sk)->inet_dport),
		.in_flight = tcp_packets_in_flight(tp),
		.retransmitted = tp->total_retrans,
		.marked = tp->delivered_ce,
		.rtt_us = tp->srtt_us >> 3,
		.min_rtt_us = tcp_min_rtt(tp),
	};

	if (!inet_csk(sk)->icsk_ca_initialized)
		return;
	apply(sk);
	question.window = tcp_snd_cwnd(tp);
	if (closed || question.time_us < policy->answer.ask_us)
		return;
	closed = !ask(&question, &policy->answer);
	policy->waits = !closed;
	apply(sk);
}

static u32 policy_ssthresh(struct sock *sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

static struct tcp_congestion_ops policy = {
	.name = "policy",
	.owner = THIS_MODULE,
	.ssthresh = policy_ssthresh,
	.cong_control = policy_control,
	.undo_cwnd = tcp_reno_undo_cwnd,
};

static int __init policy_init(void)
{
	BUILD_BUG_ON(sizeof(struct policy) > ICSK_CA_PRIV_SIZE);
	questions = os_open_file(QUESTIONS, of_write(OPENFLAGS()), 0);
	answers = os_open_file(ANSWERS, of_read(OPENFLAGS()), 0);
	if (questions < 0 || answers < 0)
		return min(questions, answers);
	return tcp_register_congestion_control(&policy);
}

module_init(policy_init);
MODULE_DESCRIPTION("A congestion control that asks a program of the host");
MODULE_LICENSE("GPL");
