// SPDX-License-Identifier: GPL-2.0-only
/*
 * dtm events [--out FILE] - write down each reallocation of the channels in this network namespace
 *
 * One row of CSV per event, under a preamble that says what the numbers are. The multicast group is
 * joined before "listening on" is printed, on standard error: what happens after that is written
 * down. On SIGINT and SIGTERM it asks the kernel to send what it has not sent yet, and writes that
 * down, too. Each event has a number, by which those that did not get through are counted at the
 * end: then the status is 1.
 *
 * Rows to standard output appear one by one; those of --out are written in blocks, because in
 * virtual time each system call costs some.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "dtm_genl.h"

/* Thousands of events of some 100 bytes: more than a link can change in a scheduling delay. */
#define RECEIVE_BUFFER	(8 << 20)

static const char *const causes[] = {
	[TC_DTM_CAUSE_ALLOCATOR]	= "allocator",
	[TC_DTM_CAUSE_DENIED]		= "denied",
	[TC_DTM_CAUSE_RECLAIMED]	= "reclaimed",
	[TC_DTM_CAUSE_OPERATOR]		= "operator",
	[TC_DTM_CAUSE_START]		= "start",
	[TC_DTM_CAUSE_GRANTED]		= "granted",
	[TC_DTM_CAUSE_LEFT]		= "left",
};

struct recorder {
	FILE *out;
	struct genl genl;
	bool numbered;		/* next is known */
	uint32_t next;		/* number that the next event must have */
	uint64_t lost;		/* events that it shows to be missing */
	bool overrun;		/* the kernel said that some are */
	bool answered;		/* the request of synchronise() */
};

static void subscribe(struct recorder *recorder)
{
	struct genl *genl = &recorder->genl;
	int size = RECEIVE_BUFFER;

	genl_open(genl);
	if (setsockopt(genl->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(genl->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(genl->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &genl->group,
		       sizeof(genl->group)) < 0)
		die("multicast group " DTM_GENL_GROUP);
}

/* All events before number `next` must have been here. */
static void count_lost(struct recorder *recorder, uint32_t next)
{
	int32_t missing = next - recorder->next;

	if (recorder->numbered && missing <= 0)
		return;
	if (recorder->numbered)
		recorder->lost += missing;
	recorder->numbered = true;
	recorder->next = next;
}

static void write_event(const struct attributes *event, FILE *out)
{
	char name[IF_NAMESIZE];
	unsigned int cause;
	uint32_t handle;

	if (!if_indextoname(number(event->at[DTM_A_IFINDEX]), name))
		snprintf(name, sizeof(name), "%u",
			 (unsigned int)number(event->at[DTM_A_IFINDEX]));
	cause = number(event->at[DTM_A_CAUSE]);
	handle = number(event->at[DTM_A_HANDLE]);
	fprintf(out, "%" PRIu64 ",%s,%x:,%s,%u,%u,%u,%" PRIu64 ",%" PRIu64 "\n",
		number(event->at[DTM_A_TIME]), name, handle >> 16,
		cause < sizeof(causes) / sizeof(causes[0]) ? causes[cause] : "unknown",
		(unsigned int)number(event->at[DTM_A_FROM]),
		(unsigned int)number(event->at[DTM_A_TO]),
		(unsigned int)number(event->at[DTM_A_WANTED]),
		number(event->at[DTM_A_ESTIMATE]), number(event->at[DTM_A_BACKLOG]));
}

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static void take_message(struct recorder *recorder, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = NLMSG_DATA(nlh);
	const struct nlattr *sequence;
	struct attributes found;

	if (nlh->nlmsg_type == NLMSG_ERROR)
		recorder->answered = true;	/* a module that cannot be asked */
	if (nlh->nlmsg_type < NLMSG_MIN_TYPE)
		return;
	parse_message(&found, nlh);
	sequence = found.at[DTM_A_SEQUENCE];
	if (sequence)
		count_lost(recorder, number(sequence));
	if (genl->cmd == DTM_CMD_SYNC) {
		recorder->answered = true;
	} else if (genl->cmd == DTM_CMD_REALLOCATION) {
		recorder->next++;
		write_event(&found, recorder->out);
	}
}

/* Write what has been received. */
static void write_received(struct recorder *recorder)
{
	static char message[MESSAGE_BYTES];

	for (;;) {
		ssize_t size = recv(recorder->genl.fd, message, sizeof(message), MSG_DONTWAIT);
		const struct nlmsghdr *nlh = (const void *)message;

		if (size < 0 && errno == EAGAIN)
			return;
		if (size < 0 && errno == ENOBUFS)
			recorder->overrun = true;
		else if (size < 0)
			die("receive");
		for (; size > 0 && NLMSG_OK(nlh, (size_t)size); nlh = NLMSG_NEXT(nlh, size))
			take_message(recorder, nlh);
	}
}

/*
 * Write all events that have happened, and learn the number of the next. Events reach the socket
 * soon after they happen, not at once; the kernel answers this request when it has sent those that
 * happened before. It does so before send() returns; but if the socket has no room for the answer,
 * the kernel must be asked again.
 */
static void synchronise(struct recorder *recorder)
{
	struct genl_request request;

	genl_begin(&request, &recorder->genl, DTM_CMD_SYNC, 0);
	recorder->answered = false;
	for (int tries = 0; tries < 3 && !recorder->answered; tries++) {
		genl_send(&recorder->genl, &request);
		write_received(recorder);
	}
	if (!recorder->answered)
		recorder->overrun = true;
}

/* Write events until told to stop, and all that happened before. */
static void record(struct recorder *recorder, const sigset_t *while_waiting)
{
	struct pollfd ready = { .fd = recorder->genl.fd, .events = POLLIN };

	while (!stopped) {
		if (ppoll(&ready, 1, NULL, while_waiting) < 0 && errno != EINTR)
			die("wait");
		write_received(recorder);
	}
	synchronise(recorder);
}

/* Say how many events are missing; false if none is. */
static bool report_lost(const struct recorder *recorder)
{
	if (recorder->lost)
		fprintf(stderr, "dtm: %" PRIu64 " events were lost\n", recorder->lost);
	else if (recorder->overrun)
		fprintf(stderr, "dtm: events were lost\n");
	return recorder->lost || recorder->overrun;
}

int events_main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = stop };
	sigset_t stops, before;
	struct recorder recorder = { 0 };
	FILE *out = stdout;

	if (argc && (argc != 2 || strcmp(argv[0], "--out"))) {
		fputs("dtm: `dtm events` takes --out FILE only; `dtm --help` explains\n", stderr);
		return 2;
	}
	if (argc) {
		out = fopen(argv[1], "w");
		if (!out)
			die(argv[1]);
	}
	/* Blocked but in the wait: one that comes just before it is not slept through. */
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigprocmask(SIG_BLOCK, &stops, &before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	subscribe(&recorder);
	recorder.out = out;
	setvbuf(out, NULL, out == stdout ? _IOLBF : _IOFBF, MESSAGE_BYTES);
	fputs("# tool: dtm events\n"
	      "# clock: CLOCK_REALTIME, ns, of the change itself\n"
	      "# units: slots of 512 kbit/s, estimate in bit/s, backlog in bytes on the link\n"
	      "time_ns,interface,handle,cause,from,to,wanted,estimate_bit,backlog_bytes\n", out);
	synchronise(&recorder);
	fprintf(stderr, "listening on generic netlink %s/%s\n", DTM_GENL_NAME, DTM_GENL_GROUP);
	record(&recorder, &before);
	if (ferror(out) | fclose(out))
		die("output");
	return report_lost(&recorder) ? 1 : 0;
}
