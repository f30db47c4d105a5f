// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream - a blocking bulk-data source and sink for one TCP connection.
 *
 *   stream send    --to ADDRESS --port N [--source-port N] --connect-at NS
 *                  --start-at NS --stop-at NS [--congestion NAME] [--send-buffer BYTES]
 *                  [--pacing] [--bytes N | --interval NS --sizes BYTES,BYTES...]
 *   stream receive --port N [--receive-buffer BYTES] [--ipv6]
 *
 * Times are ns on the plan's clock (plan_clock.h). In virtual time the cost of traffic is system
 * calls and wake-ups, not packets, so the source hands the kernel gigabytes in one
 * call and the sink asks to be woken once per mebibyte and drops the data unread
 * (MSG_TRUNC). At --stop-at the source resets the connection: what it had not yet
 * sent would only lengthen the run. The sink ends with the reset, or with SIGTERM
 * should a full queue have dropped it.
 *
 * With --bytes the source has that many to send and then nothing, with --interval it
 * writes one of --sizes, in turn, at each multiple of it: a constant rate, or frames
 * of a film. With --pacing the kernel spreads each window over its round trip, at the
 * rate that tcp_pacing_ca_ratio and tcp_pacing_ss_ratio set.
 *
 * Prints one JSON line: the bytes each side counted, from the kernel's TCP_INFO.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "plan_clock.h"

#define BUFFER_BYTES  (1 << 20)
#define IOVECS        1024
#define WAKE_BYTES    (1 << 20)
/* Bytes/s, above any link: there is pacing, and only the window decides its rate. */
#define MOST_PACING   UINT64_C(1000000000000)

struct options {
	const char *to;
	int port, source_port;
	int64_t connect_at_ns, start_at_ns, stop_at_ns, interval_ns, bytes;
	const char *congestion, *sizes;
	int send_buffer_bytes, receive_buffer_bytes;
	bool pacing, ipv6;
};

static void die(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void set_option(int fd, int level, int name, const void *value,
		       socklen_t size, const char *what)
{
	if (setsockopt(fd, level, name, value, size) < 0)
		die(what);
}

static void set_int(int fd, int level, int name, int value, const char *what)
{
	set_option(fd, level, name, &value, sizeof(value), what);
}

static struct tcp_info tcp_info(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		die("TCP_INFO");
	return info;
}

static int tcp_socket(int family, int local_port)
{
	struct endpoint local = endpoint_here(family, local_port);
	int fd = socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		die("socket");
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	if (bind(fd, &local.any, local.size) < 0)
		die("bind");
	return fd;
}

static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	stopping = signal == SIGTERM;
}

static void handle(int signal)
{
	struct sigaction action = { .sa_handler = on_signal };

	if (sigaction(signal, &action, NULL) < 0)
		die("sigaction");
}

/* Interrupt the blocking write at ns, and again every 10 ms in case it hit between two. */
static void interrupt_at(int64_t ns)
{
	struct itimerspec at = {
		.it_value = plan_time(ns),
		.it_interval = { 0, 10000000 },
	};
	timer_t timer;

	handle(SIGALRM);
	if (timer_create(CLOCK_REALTIME, NULL, &timer) < 0 ||
	    timer_settime(timer, TIMER_ABSTIME, &at, NULL) < 0)
		die("timer");
}

static void write_unlimited(int fd, const struct options *opt, void *buffer)
{
	struct iovec iov[IOVECS];

	for (int i = 0; i < IOVECS; i++)
		iov[i] = (struct iovec){ buffer, BUFFER_BYTES };
	interrupt_at(opt->stop_at_ns);
	while (plan_now_ns() < opt->stop_at_ns)
		if (writev(fd, iov, IOVECS) < 0 && errno != EINTR)
			die("write");
}

static void write_transfer(int fd, const struct options *opt, const void *buffer)
{
	int64_t left = opt->bytes;
	ssize_t n;

	interrupt_at(opt->stop_at_ns);
	while (left && plan_now_ns() < opt->stop_at_ns) {
		n = write(fd, buffer, left < BUFFER_BYTES ? left : BUFFER_BYTES);
		if (n < 0 && errno != EINTR)
			die("write");
		left -= n > 0 ? n : 0;
	}
	plan_sleep_until(opt->stop_at_ns);
}

/* The next of sizes, in bytes, at *at, which moves on and begins again at the end. */
static size_t next_size(const char *sizes, const char **at)
{
	char *end;
	size_t size = strtoul(*at, &end, 10);

	*at = *end == ',' ? end + 1 : sizes;
	return size;
}

static void write_paced(int fd, const struct options *opt, const void *buffer)
{
	const char *next = opt->sizes;

	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	interrupt_at(opt->stop_at_ns);
	for (int64_t at = opt->start_at_ns; at < opt->stop_at_ns; at += opt->interval_ns) {
		plan_sleep_until(at);
		if (plan_now_ns() >= opt->stop_at_ns)
			break;
		if (write(fd, buffer, next_size(opt->sizes, &next)) < 0 && errno != EINTR)
			die("write");
	}
}

static int send_stream(const struct options *opt, const struct endpoint *to)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	uint64_t most_pacing = MOST_PACING;
	struct tcp_info info;
	char name[16] = "";
	socklen_t name_size = sizeof(name);
	int fd = tcp_socket(to->any.sa_family, opt->source_port);
	void *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (buffer == MAP_FAILED)
		die("mmap");
	if (opt->congestion)
		set_option(fd, IPPROTO_TCP, TCP_CONGESTION, opt->congestion,
			   strlen(opt->congestion), opt->congestion);
	if (opt->send_buffer_bytes) {
		set_int(fd, SOL_SOCKET, SO_SNDBUF, opt->send_buffer_bytes, "SO_SNDBUF");
		/* The kernel goes on from there: a window that grows takes its buffer along. */
		set_int(fd, SOL_SOCKET, SO_BUF_LOCK, 0, "SO_BUF_LOCK");
	}
	if (opt->pacing)
		set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &most_pacing, sizeof(most_pacing),
			   "SO_MAX_PACING_RATE");
	set_option(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset), "SO_LINGER");

	plan_sleep_until(opt->connect_at_ns);
	if (connect(fd, &to->any, to->size) < 0)
		die("connect");
	/* One byte for a round-trip sample: a connection that exists has its timers set. */
	if (send(fd, "", 1, 0) != 1)
		die("send");
	plan_sleep_until(opt->start_at_ns);
	if (opt->interval_ns)
		write_paced(fd, opt, buffer);
	else if (opt->bytes)
		write_transfer(fd, opt, buffer);
	else
		write_unlimited(fd, opt, buffer);

	info = tcp_info(fd);
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_size) < 0)
		die("TCP_CONGESTION");
	printf("{\"role\": \"send\", \"source_port\": %d, \"port\": %d, \"congestion\": \"%.16s\", "
	       "\"bytes_acked\": %" PRIu64 ", \"bytes_sent\": %" PRIu64
	       ", \"bytes_retransmitted\": %" PRIu64 ", \"retransmits\": %u"
	       ", \"rwnd_limited_us\": %" PRIu64 ", \"sndbuf_limited_us\": %" PRIu64 "}\n",
	       opt->source_port, opt->port, name, (uint64_t)info.tcpi_bytes_acked,
	       (uint64_t)info.tcpi_bytes_sent, (uint64_t)info.tcpi_bytes_retrans,
	       info.tcpi_total_retrans, (uint64_t)info.tcpi_rwnd_limited,
	       (uint64_t)info.tcpi_sndbuf_limited);
	return close(fd);
}

static int receive_stream(const struct options *opt)
{
	int listener = tcp_socket(opt->ipv6 ? AF_INET6 : AF_INET, opt->port), fd;
	struct tcp_info info;
	ssize_t n;

	if (opt->receive_buffer_bytes)
		set_int(listener, SOL_SOCKET, SO_RCVBUF, opt->receive_buffer_bytes, "SO_RCVBUF");
	if (listen(listener, 1) < 0)
		die("listen");
	handle(SIGTERM);
	fd = accept(listener, NULL, NULL);
	if (fd < 0 && stopping) {
		fprintf(stderr, "stream: nobody connected\n");
		return 1;
	}
	if (fd < 0)
		die("accept");
	set_int(fd, SOL_SOCKET, SO_RCVLOWAT, WAKE_BYTES, "SO_RCVLOWAT");
	do {
		n = recv(fd, NULL, 1 << 30, MSG_TRUNC | MSG_WAITALL);
	} while (!stopping && (n > 0 || (n < 0 && errno == EINTR)));
	if (n < 0 && errno != ECONNRESET && errno != EINTR)
		die("recv");
	info = tcp_info(fd);
	printf("{\"role\": \"receive\", \"port\": %d, \"bytes_received\": %" PRIu64 "}\n",
	       opt->port, (uint64_t)info.tcpi_bytes_received);
	return 0;
}

static bool valid_sizes(const char *sizes)
{
	const char *next = sizes;

	do {
		if (*next < '1' || *next > '9' || next_size(sizes, &next) > BUFFER_BYTES)
			return false;
	} while (next != sizes);
	return true;
}

static int usage(void)
{
	fputs("usage: stream send --to ADDRESS --port N [--source-port N] --connect-at NS --start-at NS\n"
	      "                   --stop-at NS [--congestion NAME] [--send-buffer BYTES]\n"
	      "                   [--pacing] [--bytes N | --interval NS --sizes BYTES,BYTES...]\n"
	      "       stream receive --port N [--receive-buffer BYTES] [--ipv6]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "to", required_argument, NULL, 't' },
		{ "port", required_argument, NULL, 'p' },
		{ "source-port", required_argument, NULL, 'P' },
		{ "connect-at", required_argument, NULL, 'c' },
		{ "start-at", required_argument, NULL, 's' },
		{ "stop-at", required_argument, NULL, 'e' },
		{ "congestion", required_argument, NULL, 'C' },
		{ "interval", required_argument, NULL, 'i' },
		{ "sizes", required_argument, NULL, 'z' },
		{ "bytes", required_argument, NULL, 'n' },
		{ "pacing", no_argument, NULL, 'a' },
		{ "send-buffer", required_argument, NULL, 'b' },
		{ "receive-buffer", required_argument, NULL, 'r' },
		{ "ipv6", no_argument, NULL, '6' },
		{ 0 },
	};
	struct options opt = { 0 };
	struct endpoint to;
	int c;

	if (argc < 2)
		return usage();
	optind = 2;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 't': opt.to = optarg; break;
		case 'p': opt.port = atoi(optarg); break;
		case 'P': opt.source_port = atoi(optarg); break;
		case 'c': opt.connect_at_ns = atoll(optarg); break;
		case 's': opt.start_at_ns = atoll(optarg); break;
		case 'e': opt.stop_at_ns = atoll(optarg); break;
		case 'C': opt.congestion = optarg; break;
		case 'i': opt.interval_ns = atoll(optarg); break;
		case 'z': opt.sizes = optarg; break;
		case 'n': opt.bytes = atoll(optarg); break;
		case 'a': opt.pacing = true; break;
		case 'b': opt.send_buffer_bytes = atoi(optarg); break;
		case 'r': opt.receive_buffer_bytes = atoi(optarg); break;
		case '6': opt.ipv6 = true; break;
		default: return usage();
		}
	}
	if (optind != argc)
		return usage();
	/* On a clock that runs on meanwhile, to fetch a page is to be late. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		die("mlockall");
	if (!opt.interval_ns != !opt.sizes || (opt.interval_ns && opt.bytes))
		return usage();
	if (opt.sizes && !valid_sizes(opt.sizes))
		return usage();
	if (opt.to && !endpoint_there(&to, opt.to, opt.port)) {
		fprintf(stderr, "stream: --to: not an address: \"%s\"\n", opt.to);
		return 2;
	}
	if (!strcmp(argv[1], "send") && opt.to && opt.port && opt.stop_at_ns)
		return send_stream(&opt, &to);
	if (!strcmp(argv[1], "receive") && opt.port)
		return receive_stream(&opt);
	return usage();
}
