// SPDX-License-Identifier: GPL-2.0-only
/*
 * twoway_probe - what the kernel's TCP and queues do, packet by packet, from one time to another
 *
 *	insmod twoway_probe.ko from=NS until=NS interfaces=NAME,NAME,...
 *
 * Times are ns of CLOCK_REALTIME. /proc/twoway_probe is a table with a row for each of
 *
 *	ack		a segment that comes to an established socket, before TCP looks at it
 *	send		a segment that TCP gives to its interface, and its cause
 *	enqueue dequeue	a packet of the root qdisc of one of the interfaces
 *	drop		a packet that the kernel drops, and its reason
 *
 * A row of a socket has the socket's state at that time. The module only reads: it is attached to
 * tracepoints, sets no timer, takes no lock and makes no system call, so that a run with it has the
 * packets of the run without it. The table is in memory of its own. What does not fit is counted.
 */

#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <net/dropreason.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "seen.h"

#define MOST_RECORDS	100000
#define MOST_INTERFACES	100

static unsigned long long from, until;
module_param(from, ullong, 0400);
MODULE_PARM_DESC(from, "time of the first record, ns");
module_param(until, ullong, 0400);
MODULE_PARM_DESC(until, "time after the last record, ns");
static char *interfaces[MOST_INTERFACES];
static int interface_count;
module_param_array(interfaces, charp, &interface_count, 0400);
MODULE_PARM_DESC(interfaces, "interfaces whose queues are recorded");

enum kind { ACK, SEND, ENQUEUE, DEQUEUE, DROP };
static const char * const kinds[] = { "ack", "send", "enqueue", "dequeue", "drop" };

/* Why a segment leaves now. */
enum cause { NONE, ARRIVAL, APPLICATION, PACING, HOST_QUEUE, TIMEOUT, TAIL_PROBE, WINDOW_PROBE,
	     REORDERING, DELAYED_ACK, COMPRESSED_ACK };
static const char * const causes[] = {
	"-", "arrival", "application", "pacing", "host_queue", "timeout", "tail_probe",
	"window_probe", "reordering", "delayed_ack", "compressed_ack"
};

static struct record {
	u64 ns;
	struct seen seen;
	u8 kind, cause, ca_state;
	u32 queue;		/* packets in the qdisc, after the event */
	u32 segments;		/* that the packet will be on the wire */
	char interface[IFNAMSIZ];
	const char *reason;
	u32 next, unsent;
	u32 cwnd, ssthresh, packets_out, sacked, lost, retransmitted;
	u32 srtt_us, rto_us, window;
	u64 pacing_bytes;	/* per second */
} *records;
static u32 count;
static u64 left_out;

/* The last things that may have a segment sent: one processor does one thing at a time. */
static struct seen arrived;		/* a segment of a host that is handled in softirq */
static const struct net *arrived_at;
static u64 arrived_ns, probed_ns;
static const struct sock *probed;	/* whose backlog is handled */
static const struct sock *paced;
static u64 paced_ns;
static const struct sock *timed;	/* whose timer's function runs */
static enum cause timed_cause;

static u64 now_ns(void)
{
	unsigned long flags;
	u64 now;

	/* In virtual time a reading costs nothing here. */
	local_irq_save(flags);
	now = ktime_get_real_ns();
	local_irq_restore(flags);
	return now;
}

static struct record *record(enum kind kind, const struct sk_buff *skb)
{
	u64 now = now_ns();
	struct record *found;

	if (now < from || now >= until)
		return NULL;
	if (count == MOST_RECORDS) {
		left_out++;
		return NULL;
	}
	found = &records[count++];
	*found = (struct record){ .ns = now, .kind = kind, .seen = look(skb), .reason = "-",
				   .segments = max_t(u32, skb_shinfo(skb)->gso_segs, 1) };
	strscpy(found->interface, skb->dev ? skb->dev->name : "-", sizeof(found->interface));
	return found;
}

static void record_state(struct record *found, const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	found->next = tp->snd_nxt;
	found->unsent = tp->write_seq - tp->snd_nxt;
	found->cwnd = tcp_snd_cwnd(tp);
	found->ssthresh = tp->snd_ssthresh;
	found->packets_out = tp->packets_out;
	found->sacked = tp->sacked_out;
	found->lost = tp->lost_out;
	found->retransmitted = tp->retrans_out;
	found->srtt_us = tp->srtt_us >> 3;
	found->rto_us = jiffies_to_usecs(icsk->icsk_rto);
	found->window = tp->snd_wnd;
	found->ca_state = icsk->icsk_ca_state;
	found->pacing_bytes = min_t(u64, READ_ONCE(sk->sk_pacing_rate), S64_MAX);
}

static enum cause cause_of(const struct sock *sk, const struct seen *seen)
{
	u64 now = now_ns();

	if (timed == sk)
		return timed_cause;
	if (arrived_ns == now && arrived_at == sock_net(sk) && in_serving_softirq() &&
	    arrived.source == seen->dest && arrived.dest == seen->source)
		return ARRIVAL;
	if (!in_serving_softirq())
		return probed == sk && probed_ns == now ? ARRIVAL : APPLICATION;
	return paced == sk && paced_ns == now ? PACING : HOST_QUEUE;
}

static void on_receive(void *unused, struct sk_buff *skb)
{
	struct seen seen = look(skb);

	if (!seen.flags)
		return;
	arrived = seen;
	arrived_at = dev_net(skb->dev);
	arrived_ns = now_ns();
}

static void on_probe(void *unused, struct sock *sk, struct sk_buff *skb)
{
	const struct tcphdr *th = (const struct tcphdr *)skb->data;
	struct record *found;

	if (!in_serving_softirq()) {
		probed = sk;
		probed_ns = now_ns();
	}
	found = record(ACK, skb);
	if (!found)
		return;
	found->seen = (struct seen){ ntohs(th->source), ntohs(th->dest), ntohl(th->seq),
				     th->ack ? ntohl(th->ack_seq) : 0, skb->len - th->doff * 4,
				     tcp_flag_byte(th) };
	record_state(found, sk);
}

static void on_send(void *unused, struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	struct record *found;

	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return;
	found = record(SEND, skb);
	if (!found)
		return;
	found->cause = cause_of(sk, &found->seen);
	record_state(found, sk);
}

static bool is_recorded(const struct net_device *dev)
{
	int i;

	for (i = 0; i < interface_count; i++)
		if (!strcmp(interfaces[i], dev->name))
			return true;
	return false;
}

static void on_enqueue(void *unused, struct Qdisc *qdisc, const struct netdev_queue *txq,
		       struct sk_buff *skb)
{
	struct record *found = is_recorded(txq->dev) ? record(ENQUEUE, skb) : NULL;

	if (found)
		found->queue = qdisc->q.qlen;
}

static void on_dequeue(void *unused, struct Qdisc *qdisc, const struct netdev_queue *txq,
		       int packets, struct sk_buff *skb)
{
	struct record *found = skb && is_recorded(txq->dev) ? record(DEQUEUE, skb) : NULL;

	if (found)
		found->queue = qdisc->q.qlen;
}

static void on_drop(void *unused, struct sk_buff *skb, void *location, enum skb_drop_reason reason,
		    struct sock *rx_sk)
{
	const struct drop_reason_list *list;
	struct record *found;

	if (reason <= SKB_DROP_REASON_NOT_SPECIFIED)
		return;
	found = record(DROP, skb);
	if (!found)
		return;
	list = rcu_dereference(drop_reasons_by_subsys[SKB_DROP_REASON_SUBSYS_CORE]);
	if (list && reason < list->n_reasons && list->reasons[reason])
		found->reason = list->reasons[reason];
}

static void on_timer(void *unused, struct timer_list *timer, unsigned long clock)
{
	static const void *write_timer, *delayed_ack_timer;
	const struct inet_connection_sock *icsk;

	if (!write_timer && is_named(timer->function, "tcp_write_timer"))
		write_timer = timer->function;
	if (!delayed_ack_timer && is_named(timer->function, "tcp_delack_timer"))
		delayed_ack_timer = timer->function;
	if (timer->function == delayed_ack_timer) {
		icsk = container_of(timer, struct inet_connection_sock, icsk_delack_timer);
		timed_cause = DELAYED_ACK;
	} else if (timer->function == write_timer) {
		icsk = container_of(timer, struct inet_connection_sock, icsk_retransmit_timer);
		timed_cause = icsk->icsk_pending == ICSK_TIME_LOSS_PROBE ? TAIL_PROBE :
			      icsk->icsk_pending == ICSK_TIME_PROBE0 ? WINDOW_PROBE :
			      icsk->icsk_pending == ICSK_TIME_REO_TIMEOUT ? REORDERING : TIMEOUT;
	} else {
		return;
	}
	timed = &icsk->icsk_inet.sk;
}

static void on_hrtimer(void *unused, struct hrtimer *timer, ktime_t *now)
{
	static const void *pacing_timer, *compressed_ack_timer;

	if (!pacing_timer && is_named(timer->function, "tcp_pace_kick"))
		pacing_timer = timer->function;
	if (!compressed_ack_timer && is_named(timer->function, "tcp_compressed_ack_kick"))
		compressed_ack_timer = timer->function;
	if (timer->function == pacing_timer) {	/* a tasklet sends */
		paced = (const struct sock *)container_of(timer, struct tcp_sock, pacing_timer);
		paced_ns = now_ns();
	} else if (timer->function == compressed_ack_timer) {
		timed = (const struct sock *)container_of(timer, struct tcp_sock,
							  compressed_ack_timer);
		timed_cause = COMPRESSED_ACK;
	}
}

static void on_timer_end(void *unused, void *timer)
{
	timed = NULL;
}

static const struct {
	const char *name;
	void *function;
} probes[] = {
	{ "netif_receive_skb", on_receive },	{ "tcp_probe", on_probe },
	{ "net_dev_queue", on_send },		{ "qdisc_enqueue", on_enqueue },
	{ "qdisc_dequeue", on_dequeue },	{ "kfree_skb", on_drop },
	{ "timer_expire_entry", on_timer },	{ "timer_expire_exit", on_timer_end },
	{ "hrtimer_expire_entry", on_hrtimer },	{ "hrtimer_expire_exit", on_timer_end },
};

static int attached;

static void attach(struct tracepoint *point, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(probes[i].name, point->name) &&
		    !tracepoint_probe_register(point, probes[i].function, NULL))
			attached++;
}

static int table_show(struct seq_file *file, void *unused)
{
	u32 i;

	seq_puts(file, "time_ns,kind,cause,interface,reason,source,dest,seq,ack,payload,flags,");
	seq_puts(file, "segments,queue,next,unsent,cwnd,ssthresh,packets_out,sacked,lost,");
	seq_puts(file, "retransmitted,srtt_us,rto_us,window,ca_state,pacing_bytes,left_out\n");
	for (i = 0; i < count; i++) {
		const struct record *r = &records[i];

		seq_printf(file, "%llu,%s,%s,%s,%s,", r->ns, kinds[r->kind], causes[r->cause],
			   r->interface, r->reason);
		seq_printf(file, "%u,%u,%u,%u,%u,%u,%u,%u,%u,", r->seen.source, r->seen.dest,
			   r->seen.seq, r->seen.ack, r->seen.payload, r->seen.flags, r->segments,
			   r->queue, r->next);
		seq_printf(file, "%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%llu,%llu\n", r->unsent, r->cwnd,
			   r->ssthresh, r->packets_out, r->sacked, r->lost, r->retransmitted,
			   r->srtt_us, r->rto_us, r->window, r->ca_state, r->pacing_bytes,
			   left_out);
	}
	return 0;
}

static int __init probe_init(void)
{
	records = vzalloc(array_size(MOST_RECORDS, sizeof(*records)));
	if (!records || !proc_create_single("twoway_probe", 0400, NULL, table_show))
		return -ENOMEM;
	for_each_kernel_tracepoint(attach, NULL);
	return attached == ARRAY_SIZE(probes) ? 0 : -ENOENT;
}
module_init(probe_init);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("What TCP and queues do, packet by packet");
MODULE_LICENSE("GPL");
