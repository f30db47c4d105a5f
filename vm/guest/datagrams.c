// SPDX-License-Identifier: GPL-2.0-only
/*
 * datagrams - a source of UDP on a schedule, which ignores losses, and a sink.
 *
 *   datagrams send     --to ADDRESS --port N --source-port N --bytes N --interval NS
 *                      --start-at NS --stop-at NS [--poisson] [--on NS --off NS] [--seed N]
 *                      [--frames N,N,...]
 *   datagrams receive  --port N [--ipv6]
 *
 * Times are ns on the plan's clock (plan_clock.h). A datagram of --bytes of payload leaves at each
 * multiple of the interval; with --poisson intervals are exponential with that mean. With --on and
 * --off it sends for a time and is silent for a time, both exponential with these means, from an
 * `on` at the start. With --frames the list says how many datagrams leave together at each interval;
 * it ends the sending. What is random comes from the seed: SplitMix64 (Steele, Lea and Flood, 2014).
 *
 * The payload starts with the datagram's number, by which captures tell one from the next. The sink
 * reads nothing, and so costs no wake-ups: captures show what arrives. The source prints one JSON
 * line, how many it sent; the sink ends with SIGTERM.
 */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"
#include "plan_clock.h"

#define MOST_BYTES 65507

struct options {
	const char *to, *frames;
	int port, source_port, bytes, tos;
	int64_t interval_ns, start_at_ns, stop_at_ns, on_ns, off_ns;
	uint64_t seed;
	bool poisson, ipv6;
};

static void die(const char *what)
{
	fprintf(stderr, "datagrams: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t split_mix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* An exponential time of this mean: minus the logarithm of a number in (0, 1], of 53 bits. */
static int64_t exponential(uint64_t *state, int64_t mean_ns)
{
	double uniform = (double)((split_mix(state) >> 11) + 1) * 0x1p-53;

	return llround(-log(uniform) * (double)mean_ns);
}

static int udp_socket(int family, int port)
{
	struct endpoint local = endpoint_here(family, port);
	int fd = socket(family, SOCK_DGRAM, 0);

	if (fd < 0)
		die("socket");
	if (bind(fd, &local.any, local.size) < 0)
		die("bind");
	return fd;
}

static int64_t interval(const struct options *o, uint64_t *random)
{
	return o->poisson ? exponential(random, o->interval_ns) : o->interval_ns;
}

static void send_one(int fd, const struct options *o, uint64_t number)
{
	static char payload[MOST_BYTES];
	uint64_t big_endian = htobe64(number);

	memcpy(payload, &big_endian, sizeof(big_endian));
	if (send(fd, payload, (size_t)o->bytes, 0) != o->bytes)
		die("send");
}

/* The number of datagrams of the next frame; -1 if there is none. Without frames it is always 1. */
static long next_frame(const char **frames)
{
	char *end;
	long count;

	if (!*frames)
		return 1;
	if (!**frames)
		return -1;
	count = strtol(*frames, &end, 10);
	*frames = *end == ',' ? end + 1 : end;
	return count;
}

static void send_all(const struct options *o)
{
	const char *frames = o->frames;
	uint64_t random = o->seed, number = 0;
	int64_t at = o->start_at_ns + (o->poisson ? interval(o, &random) : 0);
	int64_t on_until = o->on_ns ? o->start_at_ns + exponential(&random, o->on_ns) : INT64_MAX;
	struct endpoint to;
	int fd;

	if (!endpoint_there(&to, o->to, o->port))
		die(o->to);
	fd = udp_socket(to.any.sa_family, o->source_port);
	if (o->tos && setsockopt(fd, to.any.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
				 to.any.sa_family == AF_INET6 ? IPV6_TCLASS : IP_TOS, &o->tos,
				 sizeof(o->tos)) < 0)
		die("tos");
	if (connect(fd, &to.any, to.size) < 0)
		die("connect");
	for (;; at += interval(o, &random)) {
		while (at >= on_until) {
			int64_t on_from = on_until + exponential(&random, o->off_ns);

			on_until = on_from + exponential(&random, o->on_ns);
			at = on_from + (o->poisson ? interval(o, &random) : 0);
		}
		long count = next_frame(&frames);

		if (at >= o->stop_at_ns || count < 0)
			break;
		plan_sleep_until(at);
		while (count--)
			send_one(fd, o, number++);
	}
	printf("{\"packets_sent\": %" PRIu64 "}\n", number);
}

static void receive(const struct options *o)
{
	sigset_t term;
	int signal;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &term, NULL) < 0)
		die("sigprocmask");
	udp_socket(o->ipv6 ? AF_INET6 : AF_INET, o->port);
	sigwait(&term, &signal);
}

static struct options read_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "to", required_argument, NULL, 't' },
		{ "port", required_argument, NULL, 'p' },
		{ "source-port", required_argument, NULL, 's' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "interval", required_argument, NULL, 'i' },
		{ "start-at", required_argument, NULL, 'a' },
		{ "stop-at", required_argument, NULL, 'z' },
		{ "poisson", no_argument, NULL, 'P' },
		{ "on", required_argument, NULL, 'n' },
		{ "off", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 'r' },
		{ "frames", required_argument, NULL, 'F' },
		{ "tos", required_argument, NULL, 'T' },
		{ "ipv6", no_argument, NULL, '6' },
		{ 0 },
	};
	struct options o = { 0 };

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		switch (c) {
		case 't':
			o.to = optarg;
			break;
		case 'p':
			o.port = atoi(optarg);
			break;
		case 's':
			o.source_port = atoi(optarg);
			break;
		case 'b':
			o.bytes = atoi(optarg);
			break;
		case 'i':
			o.interval_ns = atoll(optarg);
			break;
		case 'a':
			o.start_at_ns = atoll(optarg);
			break;
		case 'z':
			o.stop_at_ns = atoll(optarg);
			break;
		case 'P':
			o.poisson = true;
			break;
		case 'n':
			o.on_ns = atoll(optarg);
			break;
		case 'f':
			o.off_ns = atoll(optarg);
			break;
		case 'r':
			o.seed = strtoull(optarg, NULL, 10);
			break;
		case 'F':
			o.frames = optarg;
			break;
		case 'T':
			o.tos = atoi(optarg);
			break;
		case '6':
			o.ipv6 = true;
			break;
		default:
			exit(2);
		}
	}
	return o;
}

int main(int argc, char **argv)
{
	struct options o = read_options(argc, argv);
	const char *what = optind < argc ? argv[optind] : "";

	if (!strcmp(what, "send") && o.to && o.bytes >= (int)sizeof(uint64_t) && o.bytes <= MOST_BYTES &&
	    o.interval_ns > 0) {
		send_all(&o);
	} else if (!strcmp(what, "receive")) {
		receive(&o);
	} else {
		fprintf(stderr, "usage: datagrams send|receive ...\n");
		return 2;
	}
	return 0;
}
