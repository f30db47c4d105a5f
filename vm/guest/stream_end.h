/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stream_end.h - an end of a TCP connection, read from a line of words:
 *
 *   send NAME --to ADDRESS --port N [--source-port N] --connect-at NS
 *        --start-at NS --stop-at NS [--congestion NAME] [--send-buffer BYTES]
 *        [--pacing] [--option LEVEL,NAME,VALUE]... [--bytes N | --interval NS
 *        --sizes BYTES,BYTES...]
 *   receive NAME --port N [--receive-buffer BYTES] [--at-once] [--ipv6]
 */
#ifndef STREAM_END_H
#define STREAM_END_H

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

/* Of one write: no size is larger. */
#define BUFFER_BYTES  (1 << 20)
#define MOST_WORDS    48
#define MOST_OPTIONS  8

struct option_value {
	int level, name, value;
};

struct end {
	bool sends;
	pthread_t thread;
	pid_t task;
	struct endpoint there;
	const char *name, *to;
	int port, source_port;
	int64_t connect_at_ns, start_at_ns, stop_at_ns, interval_ns, bytes;
	const char *congestion, *sizes;
	int send_buffer_bytes, receive_buffer_bytes;
	struct option_value options[MOST_OPTIONS];
	int n_options;
	bool pacing, at_once, ipv6, gave_up;
};

/* The next of sizes, in bytes, at *at, which moves on and begins again at the end. */
static size_t next_size(const char *sizes, const char **at)
{
	char *end;
	size_t size = strtoul(*at, &end, 10);

	*at = *end == ',' ? end + 1 : sizes;
	return size;
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

static bool parse_option(struct end *end, const char *text)
{
	struct option_value *option = &end->options[end->n_options];

	return end->n_options++ < MOST_OPTIONS &&
	       sscanf(text, "%d,%d,%d", &option->level, &option->name, &option->value) == 3;
}

/* Read the options of an end; argv[0] is `send` or `receive`, argv[1] its name. */
static bool parse_end(struct end *end, int argc, char **argv)
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
		{ "option", required_argument, NULL, 'o' },
		{ "at-once", no_argument, NULL, 'w' },
		{ "ipv6", no_argument, NULL, '6' },
		{ 0 },
	};
	int c;

	if (argc < 2 || (strcmp(argv[0], "send") && strcmp(argv[0], "receive")))
		return false;
	end->sends = !strcmp(argv[0], "send");
	end->name = argv[1];
	optind = 0;
	while ((c = getopt_long(argc - 1, argv + 1, "", names, NULL)) != -1) {
		switch (c) {
		case 't': end->to = optarg; break;
		case 'p': end->port = atoi(optarg); break;
		case 'P': end->source_port = atoi(optarg); break;
		case 'c': end->connect_at_ns = atoll(optarg); break;
		case 's': end->start_at_ns = atoll(optarg); break;
		case 'e': end->stop_at_ns = atoll(optarg); break;
		case 'C': end->congestion = optarg; break;
		case 'i': end->interval_ns = atoll(optarg); break;
		case 'z': end->sizes = optarg; break;
		case 'n': end->bytes = atoll(optarg); break;
		case 'a': end->pacing = true; break;
		case 'b': end->send_buffer_bytes = atoi(optarg); break;
		case 'r': end->receive_buffer_bytes = atoi(optarg); break;
		case 'o':
			if (!parse_option(end, optarg))
				return false;
			break;
		case 'w': end->at_once = true; break;
		case '6': end->ipv6 = true; break;
		default: return false;
		}
	}
	if (optind != argc - 1 || !end->port)
		return false;
	if (!end->interval_ns != !end->sizes || (end->interval_ns && end->bytes))
		return false;
	if (end->sizes && !valid_sizes(end->sizes))
		return false;
	return !end->sends || (end->to && end->stop_at_ns &&
			       endpoint_there(&end->there, end->to, end->port));
}

/* Split a line into words, in place; a NULL ends them. Too many: no words. */
static int split(char *line, char **words)
{
	int n = 0;

	for (char *rest; n < MOST_WORDS; line = NULL) {
		words[n] = strtok_r(line, " \n", &rest);
		if (!words[n])
			return n;
		n++;
	}
	return 0;
}

#endif
