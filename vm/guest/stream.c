// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream - blocking sources and sinks of bulk data, a thread for each end of a TCP connection.
 *
 *   stream FOLDER < ENDS
 *
 * Each line of standard input is one end (stream_end.h). Its report, FOLDER/NAME-source.json or
 * FOLDER/NAME-sink.json, is one JSON line: the bytes it counted, from the kernel's TCP_INFO.
 *
 * Times are ns on the plan's clock (plan_clock.h). In virtual time the cost of traffic is system
 * calls and wake-ups, not packets, so the source hands the kernel gigabytes in one
 * call and the sink asks to be woken once per mebibyte and drops the data unread
 * (MSG_TRUNC); with --at-once it reads data as they come, as the kernel's tuning of the receive buffer
 * supposes. At --stop-at the source resets the connection: what it had not yet
 * sent would only lengthen the run. The sink ends with the reset, or with SIGTERM
 * should a full queue have dropped it. SIGTERM also ends a source or a sink that has no connection
 * yet.
 *
 * With --bytes the source has that many to send and then nothing, with --interval it
 * writes one of --sizes, in turn, at each multiple of it: a constant rate, or frames
 * of a film. With --pacing the kernel spreads each window over its round trip, at the
 * rate that tcp_pacing_ca_ratio and tcp_pacing_ss_ratio set. An --option of the socket has the numbers
 * of setsockopt(2); it is the last that is set. A connection that the kernel gives up ends early.
 *
 * A thread that waits in a call of the kernel's costs nothing; waiting for several sockets at once
 * would take two more system calls for each piece of data (decision 0058).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "plan_clock.h"
#include "stream_end.h"

#define IOVECS        1024
#define WAKE_BYTES    (1 << 20)
/* Bytes/s, above any link: there is pacing, and only the window decides its rate. */
#define MOST_PACING   UINT64_C(1000000000000)

/*
 * A thread's stack, which is locked in memory: room for a line to write and a signal's registers.
 */
#define STACK_BYTES   (32 << 10)
/* Descriptors of an end, and of the program: a sink has its listener, too; reports come one by one. */
#define END_FILES     3
#define OWN_FILES     16

static void *zeros;
static struct end *ends;
static size_t n_ends;
/* The end that this thread serves. */
static _Thread_local struct end *own;

static void die(const char *what)
{
	fprintf(stderr, "stream: %s: %s: %s\n", own ? own->name : "all", what, strerror(errno));
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

static void on_alarm(int signal)
{
	(void)signal;
}

/* Pass SIGTERM on to each thread, whose call it interrupts. */
static void on_terminate(int signal, siginfo_t *info, void *context)
{
	(void)context;
	stopping = true;
	if (info->si_code != SI_TKILL)
		for (size_t i = 0; i < n_ends; i++)
			syscall(SYS_tgkill, getpid(), ends[i].task, signal);
}

static void handle(int signal, const struct sigaction *action)
{
	if (sigaction(signal, action, NULL) < 0)
		die("sigaction");
}

/* Interrupt the blocking write at ns, and then every 10 ms, in case ns fell between two writes. */
static void interrupt_at(const struct end *end)
{
	struct sigaction alarm = { .sa_handler = on_alarm };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
	struct itimerspec at = {
		.it_value = plan_time(end->stop_at_ns),
		.it_interval = { 0, 10000000 },
	};
	timer_t timer;

	event._sigev_un._tid = end->task;
	handle(SIGALRM, &alarm);
	if (timer_create(CLOCK_REALTIME, &event, &timer) < 0 ||
	    timer_settime(timer, TIMER_ABSTIME, &at, NULL) < 0)
		die("timer");
}

/* Tell whether a failed write is the connection's end: the kernel gave it up. */
static bool ended(void)
{
	if (errno != EINTR && errno != ETIMEDOUT)
		die("write");
	own->gave_up = own->gave_up || errno == ETIMEDOUT;
	return own->gave_up;
}

static void write_unlimited(int fd, const struct end *end)
{
	struct iovec iov[IOVECS];

	for (int i = 0; i < IOVECS; i++)
		iov[i] = (struct iovec){ zeros, BUFFER_BYTES };
	interrupt_at(end);
	while (plan_now_ns() < end->stop_at_ns)
		if (writev(fd, iov, IOVECS) < 0 && ended())
			return;
}

static void write_transfer(int fd, const struct end *end)
{
	int64_t left = end->bytes;
	ssize_t n;

	interrupt_at(end);
	while (left && plan_now_ns() < end->stop_at_ns) {
		n = write(fd, zeros, left < BUFFER_BYTES ? left : BUFFER_BYTES);
		if (n < 0 && ended())
			return;
		left -= n > 0 ? n : 0;
	}
	plan_sleep_until(end->stop_at_ns);
}

static void write_paced(int fd, const struct end *end)
{
	const char *next = end->sizes;

	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	interrupt_at(end);
	for (int64_t at = end->start_at_ns; at < end->stop_at_ns; at += end->interval_ns) {
		plan_sleep_until(at);
		if (plan_now_ns() >= end->stop_at_ns)
			break;
		if (write(fd, zeros, next_size(end->sizes, &next)) < 0 && ended())
			return;
	}
}

static void write_data(int fd, const struct end *end)
{
	/* One byte for a round-trip sample: a connection that exists has its timers set. */
	if (send(fd, "", 1, 0) != 1)
		die("send");
	plan_sleep_until(end->start_at_ns);
	if (end->interval_ns)
		write_paced(fd, end);
	else if (end->bytes)
		write_transfer(fd, end);
	else
		write_unlimited(fd, end);
}

static int open_report(const struct end *end)
{
	char file[NAME_MAX + 1];
	int report;

	snprintf(file, sizeof(file), "%s-%s.json", end->name, end->sends ? "source" : "sink");
	report = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (report < 0)
		die(file);
	return report;
}

/* Write a line in one system call. */
__attribute__((format(printf, 2, 3)))
static void write_line(int file, const char *format, ...)
{
	char line[512];
	va_list values;
	int size;

	va_start(values, format);
	size = vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	if (write(file, line, size) != size)
		die("report");
}

static void send_stream(const struct end *end)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	uint64_t most_pacing = MOST_PACING;
	struct tcp_info info;
	char name[16] = "";
	socklen_t name_size = sizeof(name);
	const struct endpoint *to = &end->there;
	int fd = tcp_socket(to->any.sa_family, end->source_port), report;

	if (end->congestion)
		set_option(fd, IPPROTO_TCP, TCP_CONGESTION, end->congestion,
			   strlen(end->congestion), end->congestion);
	if (end->send_buffer_bytes) {
		set_int(fd, SOL_SOCKET, SO_SNDBUF, end->send_buffer_bytes, "SO_SNDBUF");
		/* The kernel goes on from that size: the buffer grows with the window. */
		set_int(fd, SOL_SOCKET, SO_BUF_LOCK, 0, "SO_BUF_LOCK");
	}
	if (end->pacing)
		set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &most_pacing, sizeof(most_pacing),
			   "SO_MAX_PACING_RATE");
	for (int i = 0; i < end->n_options; i++)
		set_int(fd, end->options[i].level, end->options[i].name, end->options[i].value,
			"option of the file");
	set_option(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset), "SO_LINGER");

	plan_sleep_until(end->connect_at_ns);
	if (connect(fd, &to->any, to->size) == 0)
		write_data(fd, end);
	else if (errno != EINTR || !stopping)
		die("connect");

	info = tcp_info(fd);
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_size) < 0)
		die("TCP_CONGESTION");
	report = open_report(end);
	close(fd);
	write_line(report, "{\"role\": \"send\", \"source_port\": %d, \"port\": %d, \"congestion\": \"%.16s\", "
	       "\"bytes_acked\": %" PRIu64 ", \"bytes_sent\": %" PRIu64
	       ", \"bytes_retransmitted\": %" PRIu64 ", \"retransmits\": %u"
	       ", \"rwnd_limited_us\": %" PRIu64 ", \"sndbuf_limited_us\": %" PRIu64
	       ", \"gave_up\": %s}\n",
	       end->source_port, end->port, name, (uint64_t)info.tcpi_bytes_acked,
	       (uint64_t)info.tcpi_bytes_sent, (uint64_t)info.tcpi_bytes_retrans,
	       info.tcpi_total_retrans, (uint64_t)info.tcpi_rwnd_limited,
	       (uint64_t)info.tcpi_sndbuf_limited, end->gave_up ? "true" : "false");
}

static void receive_stream(const struct end *end)
{
	int listener = tcp_socket(end->ipv6 ? AF_INET6 : AF_INET, end->port), fd, report;
	struct tcp_info info = { 0 };
	ssize_t n;

	if (end->receive_buffer_bytes)
		set_int(listener, SOL_SOCKET, SO_RCVBUF, end->receive_buffer_bytes, "SO_RCVBUF");
	if (listen(listener, 1) < 0)
		die("listen");
	fd = accept(listener, NULL, NULL);
	if (fd < 0 && !stopping)
		die("accept");
	if (fd >= 0) {
		if (!end->at_once)
			set_int(fd, SOL_SOCKET, SO_RCVLOWAT, WAKE_BYTES, "SO_RCVLOWAT");
		do {
			n = recv(fd, NULL, 1 << 30, MSG_TRUNC | MSG_WAITALL);
		} while (!stopping && (n > 0 || (n < 0 && errno == EINTR)));
		if (n < 0 && errno != ECONNRESET && errno != EINTR)
			die("recv");
		info = tcp_info(fd);
	}
	report = open_report(end);
	write_line(report, "{\"role\": \"receive\", \"port\": %d, \"bytes_received\": %" PRIu64 "}\n",
		end->port, (uint64_t)info.tcpi_bytes_received);
}

/* A thread ends as a process would, without calls that put off what the next one sends. */
static void *run_end(void *argument)
{
	own = argument;
	own->task = gettid();
	if (own->sends)
		send_stream(own);
	else
		receive_stream(own);
	syscall(SYS_exit, 0);
	return NULL;
}

/* Read an end from each line of standard input; the lines stay, because ends point into them. */
static void read_ends(void)
{
	char *line = NULL, *words[MOST_WORDS];
	size_t room = 0;

	for (; getline(&line, &room, stdin) > 0; line = NULL, n_ends++) {
		ends = reallocarray(ends, n_ends + 1, sizeof(*ends));
		if (!ends)
			die("memory");
		ends[n_ends] = (struct end) { 0 };
		if (!parse_end(&ends[n_ends], split(line, words), words)) {
			fprintf(stderr, "stream: line %zu: see vm/guest/stream_end.h\n", n_ends + 1);
			exit(2);
		}
	}
}

static void start(struct end *end)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	errno = pthread_create(&end->thread, &small, run_end, end);
	if (errno)
		die("thread");
}

int main(int argc, char **argv)
{
	struct sigaction terminate = { .sa_sigaction = on_terminate, .sa_flags = SA_SIGINFO };
	struct rlimit files;

	if (argc != 2) {
		fputs("usage: stream FOLDER < ENDS\n", stderr);
		return 2;
	}
	if (chdir(argv[1]) < 0)
		die(argv[1]);
	read_ends();
	files.rlim_cur = files.rlim_max = OWN_FILES + END_FILES * n_ends;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		die("RLIMIT_NOFILE");
	/* Reads of this memory all use one page of zeros. */
	zeros = mmap(NULL, BUFFER_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (zeros == MAP_FAILED)
		die("mmap");
	/* On a clock that runs on meanwhile, a page fault makes a packet late. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		die("mlockall");
	handle(SIGTERM, &terminate);
	for (size_t i = 0; i < n_ends; i++)
		start(&ends[i]);
	for (size_t i = 0; i < n_ends; i++)
		pthread_join(ends[i].thread, NULL);
	return 0;
}
