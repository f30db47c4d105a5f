// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send one connection's data, as `stream send` does.
 *
 *	send SOURCE_PORT PATIENCE ADDRESS PORT CONNECT START STOP CONGESTION BUFFER [OPTION...]
 *		pacing				the kernel spreads each window over its round trip
 *		bytes N				so many, and then nothing
 *		interval NS sizes N,N...	one of these, in turn, at each multiple of NS
 *
 * Times are ns of CLOCK_REALTIME. Without `bytes` or `interval` the data never ends: a call of
 * the socket layer gets a gibibyte. At STOP the source resets its connection.
 */

#include <linux/bvec.h>
#include <linux/inet.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <linux/timekeeping.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "compat/socket.h"
#include "compat/timer.h"
#include "testbed_clock.h"
#include "testbed_end.h"

#define CALL_BYTES	SZ_1G
/* What a write of a transfer, or of a film's frame, has at most. */
#define MOST_BYTES	SZ_1M
#define ZERO_ORDER	4
#define ZERO_BYTES	(PAGE_SIZE << ZERO_ORDER)
/* Bytes/s, above any link: there is pacing, and only the window decides its rate. */
#define MOST_PACING	(ULONG_MAX < 1000000000000ULL ? ULONG_MAX : 1000000000000ULL)

struct source {
	struct end end;
	struct hrtimer stop;
	struct sockaddr_storage to;
	s64 connect_ns, start_ns, stop_ns;
	s64 interval_ns;		/* 0: as fast as it goes */
	s64 bytes;			/* 0: without end */
	u32 *sizes;			/* n_sizes of them, in turn */
	unsigned int n_sizes;
};

/* All data there is: each piece of a call is the same zeros. */
static struct page *zeros;
static struct bio_vec pieces[CALL_BYTES / ZERO_BYTES];

static struct source *source_of(struct end *end)
{
	return container_of(end, struct source, end);
}

/* As a program's write, but for its copy: segments refer to the zeros. */
static long source_write(struct source *s, size_t bytes)
{
	struct msghdr message = { .msg_flags = MSG_SPLICE_PAGES };
	long n;

	iov_iter_bvec(&message.msg_iter, ITER_SOURCE, pieces, DIV_ROUND_UP(bytes, ZERO_BYTES),
		      bytes);
	n = sock_sendmsg(s->end.socket, &message);
	end_spend_call(n);
	return n;
}

static bool source_may_write(struct source *s)
{
	end_spend_call(0);
	return !end_is_stopping(&s->end) && ktime_get_real_ns() < s->stop_ns;
}

/* False if there is no use in waiting. */
static bool source_sleep_until(struct source *s, s64 ns)
{
	while (!end_is_stopping(&s->end)) {
		bool slept = testbed_sleep_until(ns);

		end_spend_call(slept ? 0 : -EINTR);
		if (slept)
			return true;
	}
	return false;
}

static enum hrtimer_restart source_stop(struct hrtimer *timer)
{
	end_interrupt(&container_of(timer, struct source, stop)->end);
	return HRTIMER_NORESTART;
}

/* Interrupt the blocked write at the end of traffic: three system calls. */
static void source_arm(struct source *s)
{
	end_spend_call(0);
	end_spend_call(0);
	hrtimer_start(&s->stop, ns_to_ktime(s->stop_ns), HRTIMER_MODE_ABS);
	end_spend_call(0);
}

static bool source_failed(long n)
{
	return n < 0 && n != -ERESTARTSYS && n != -EINTR;
}

static int source_write_unlimited(struct source *s)
{
	long n;

	source_arm(s);
	while (source_may_write(s)) {
		n = source_write(s, CALL_BYTES);
		if (source_failed(n))
			return n;
	}
	return 0;
}

static int source_write_transfer(struct source *s)
{
	s64 left = s->bytes;
	long n;

	source_arm(s);
	while (left && source_may_write(s)) {
		n = source_write(s, min_t(s64, left, MOST_BYTES));
		if (source_failed(n))
			return n;
		left -= max(n, 0L);
	}
	source_sleep_until(s, s->stop_ns);
	return 0;
}

static int source_write_paced(struct source *s)
{
	unsigned int next = 0;
	s64 at;
	long n;

	n = end_set_int(s->end.socket, SOL_TCP, TCP_NODELAY, 1);
	end_spend_call(n);
	if (n)
		return n;
	source_arm(s);
	for (at = s->start_ns; at < s->stop_ns; at += s->interval_ns) {
		source_sleep_until(s, at);
		if (!source_may_write(s))
			break;
		n = source_write(s, s->sizes[next]);
		if (source_failed(n))
			return n;
		next = (next + 1) % s->n_sizes;
	}
	return 0;
}

static void source_sum_up(struct source *s)
{
	struct sock *sk = s->end.socket->sk;
	char name[TCP_CA_NAME_MAX];
	struct tcp_info info;

	tcp_get_info(sk, &info);
	end_spend_call(0);
	lock_sock(sk);
	strscpy(name, inet_csk(sk)->icsk_ca_ops->name, sizeof(name));
	release_sock(sk);
	end_spend_call(0);
	scnprintf(s->end.summary, sizeof(s->end.summary),
		  "{\"role\": \"send\", \"source_port\": %u, \"port\": %u, \"congestion\": \"%s\", \"bytes_acked\": %llu, \"bytes_sent\": %llu, \"bytes_retransmitted\": %llu, \"retransmits\": %u, \"rwnd_limited_us\": %llu, \"sndbuf_limited_us\": %llu}\n",
		  ntohs(inet_sk(sk)->inet_sport), ntohs(inet_sk(sk)->inet_dport), name,
		  info.tcpi_bytes_acked, info.tcpi_bytes_sent, info.tcpi_bytes_retrans,
		  info.tcpi_total_retrans, info.tcpi_rwnd_limited, info.tcpi_sndbuf_limited);
	end_spend_call(0);		/* stdio asks what standard output is */
}

static int source_connect(struct source *s)
{
	int err;

	if (!source_sleep_until(s, s->connect_ns))
		return -EINTR;
	err = kernel_connect(s->end.socket, (TWOWAY_SOCKADDR *)&s->to, sizeof(s->to), 0);
	end_spend_call(err);
	if (err)
		return err;
	/* One byte for a round-trip sample: a connection that exists has its timers set. */
	err = source_write(s, 1);
	return min(err, 0);
}

static int source_run(struct end *end)
{
	struct source *s = source_of(end);
	int err = source_connect(s);

	if (!err && !source_sleep_until(s, s->start_ns))
		err = -EINTR;
	if (err)
		return err;
	if (s->interval_ns)
		err = source_write_paced(s);
	else if (s->bytes)
		err = source_write_transfer(s);
	else
		err = source_write_unlimited(s);
	hrtimer_cancel(&s->stop);
	if (!err && end_is_stopping(end))
		err = -EINTR;
	if (err)
		return err;
	source_sum_up(s);
	sock_release(end->socket);
	end->socket = NULL;
	end_spend_call(0);
	end_spend_call(0);		/* and writes it as the program ends */
	return 0;
}

static void source_release(struct instrument *instrument)
{
	struct source *s = source_of(end_of(instrument));

	end_release(&s->end);
	kvfree(s->sizes);
	kfree(s);
}

static const struct instrument_ops source_ops = {
	.finish		= end_finish,
	.release	= source_release,
};

static int parse_sizes(struct source *s, char *list)
{
	const char *at;
	char *word;

	for (at = list; at; at = strchr(at + 1, ','))
		s->n_sizes++;
	s->sizes = kvmalloc_array(s->n_sizes, sizeof(*s->sizes), GFP_KERNEL);
	if (!s->sizes)
		return -ENOMEM;
	s->n_sizes = 0;
	while ((word = strsep(&list, ","))) {
		u32 *size = &s->sizes[s->n_sizes++];

		if (kstrtou32(word, 10, size) || !*size || *size > MOST_BYTES)
			return -EINVAL;
	}
	return 0;
}

static int parse_options(struct source *s, int argc, char **argv)
{
	unsigned long most_pacing = MOST_PACING;
	int err = 0;

	for (; argc && !err; argc--, argv++) {
		if (!strcmp(argv[0], "pacing")) {
			err = end_set_option(s->end.socket, SOL_SOCKET, SO_MAX_PACING_RATE,
					     &most_pacing, sizeof(most_pacing));
			continue;
		}
		if (argc == 1)
			return -EINVAL;
		if (!strcmp(argv[0], "bytes"))
			err = kstrtos64(argv[1], 10, &s->bytes) ?: s->bytes <= 0 ? -EINVAL : 0;
		else if (!strcmp(argv[0], "interval"))
			err = kstrtos64(argv[1], 10, &s->interval_ns) ?:
			      s->interval_ns <= 0 ? -EINVAL : 0;
		else if (!strcmp(argv[0], "sizes") && !s->sizes)
			err = parse_sizes(s, argv[1]);
		else
			return -EINVAL;
		argc--;
		argv++;
	}
	if (!err && (!s->interval_ns != !s->sizes || (s->interval_ns && s->bytes)))
		err = -EINVAL;
	return err;
}

/* Words from CONNECT on. */
static int source_parse(struct source *s, int argc, char **argv)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	struct socket *socket = s->end.socket;
	int buffer, err;

	if (kstrtos64(argv[0], 10, &s->connect_ns) || kstrtos64(argv[1], 10, &s->start_ns) ||
	    kstrtos64(argv[2], 10, &s->stop_ns) || kstrtoint(argv[4], 10, &buffer) || buffer <= 0)
		return -EINVAL;
	err = end_set_option(socket, SOL_TCP, TCP_CONGESTION, argv[3], strlen(argv[3]));
	if (!err)
		err = end_set_int(socket, SOL_SOCKET, SO_SNDBUF, buffer);
	/* The kernel goes on from there: a window that grows takes its buffer along. */
	if (!err)
		err = end_set_int(socket, SOL_SOCKET, SO_BUF_LOCK, 0);
	if (!err)
		err = end_set_option(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return err ?: parse_options(s, argc - 5, argv + 5);
}

int source_command(struct instrument **instrument, int argc, char **argv)
{
	struct source *s;
	int err;

	if (argc < 10 || *instrument)
		return -EINVAL;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->end.instrument.ops = &source_ops;
	hrtimer_setup(&s->stop, source_stop, CLOCK_REALTIME, HRTIMER_MODE_ABS);
	err = inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, argv[3], argv[4], &s->to);
	if (!err)
		err = end_prepare(&s->end, source_run, s->to.ss_family, argv[1], argv[2]);
	if (!err)
		err = source_parse(s, argc - 5, argv + 5);
	if (!err)
		err = end_start(&s->end, argv[0]);
	if (err) {
		source_release(&s->end.instrument);
		return err;
	}
	*instrument = &s->end.instrument;
	return 0;
}

int source_init(void)
{
	int i;

	zeros = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO, ZERO_ORDER);
	if (!zeros)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(pieces); i++)
		pieces[i] = (struct bio_vec){ .bv_page = zeros, .bv_len = ZERO_BYTES };
	return 0;
}

/* Segments on their way may still refer to the zeros. */
void source_exit(void)
{
	put_page(zeros);
}
