// SPDX-License-Identifier: GPL-2.0-only
/*
 * dtm-events - write down each reallocation of the DTM channels in this network namespace.
 *
 *   dtm-events [--out FILE]
 *
 * One row of CSV per event, under a preamble that says what the numbers are. Raw netlink: the
 * kernel numbers families and groups as they come, so the number of the group is asked for by
 * name, and joined before "listening on" is said, on standard error: what happens after that is
 * written down. On SIGINT and SIGTERM it asks the kernel to send what it has not sent yet, and
 * writes that down, too. Each event has a number, by which those that did not get through are
 * counted at the end: then the status is 1.
 *
 * Rows to standard output appear one by one; those of --out are written in blocks, because in
 * virtual time each system call costs some.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../pkt_dtm.h"

/* Thousands of events of some 100 bytes: more than a link can change in a scheduling delay. */
#define RECEIVE_BUFFER	(8 << 20)
#define MESSAGE_BYTES	(1 << 16)

static const char *const causes[] = {
	[DTM_CAUSE_ALLOCATOR]	= "allocator",
	[DTM_CAUSE_DENIED]	= "denied",
	[DTM_CAUSE_RECLAIMED]	= "reclaimed",
	[DTM_CAUSE_OPERATOR]	= "operator",
	[DTM_CAUSE_START]	= "start",
};

struct attributes {
	const struct nlattr *at[64];
};

struct recorder {
	FILE *out;
	int fd;
	uint16_t family;
	bool numbered;		/* next is known */
	uint32_t next;		/* number that the next event must have */
	uint64_t lost;		/* events that it shows to be missing */
	bool overrun;		/* the kernel said that some are */
	bool answered;		/* the request of synchronise() */
};

static void die(const char *what)
{
	fprintf(stderr, "dtm-events: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void parse(struct attributes *found, const void *data, int length)
{
	const struct nlattr *attr = data;

	memset(found, 0, sizeof(*found));
	while (length >= NLA_HDRLEN && attr->nla_len >= NLA_HDRLEN && attr->nla_len <= length) {
		unsigned int type = attr->nla_type & NLA_TYPE_MASK;
		int size = NLA_ALIGN(attr->nla_len);

		if (type < 64)
			found->at[type] = attr;
		attr = (const void *)((const char *)attr + size);
		length -= size;
	}
}

static const void *payload(const struct nlattr *attr)
{
	return (const char *)attr + NLA_HDRLEN;
}

/* A number of 8, 16, 32 or 64 bits; 0 if there is none. */
static uint64_t number(const struct nlattr *attr)
{
	size_t size = attr ? attr->nla_len - NLA_HDRLEN : 0;
	uint64_t u64 = 0;
	uint32_t u32 = 0;
	uint16_t u16 = 0;

	switch (size) {
	case sizeof(u64):
		memcpy(&u64, payload(attr), size);
		return u64;
	case sizeof(u32):
		memcpy(&u32, payload(attr), size);
		return u32;
	case sizeof(u16):
		memcpy(&u16, payload(attr), size);
		return u16;
	case 1:
		return *(const uint8_t *)payload(attr);
	default:
		return 0;
	}
}

/* Numbers of the family and its multicast group: there are none without the module. */
static int find_group(int fd, uint16_t *number_of_family)
{
	static char answer[MESSAGE_BYTES];
	struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
		struct nlattr attr;
		char name[NLMSG_ALIGN(sizeof(DTM_GENL_NAME))];
	} request = {
		.nlh = { .nlmsg_len = sizeof(request), .nlmsg_type = GENL_ID_CTRL,
			 .nlmsg_flags = NLM_F_REQUEST },
		.genl = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 },
		.attr = { NLA_HDRLEN + sizeof(DTM_GENL_NAME), CTRL_ATTR_FAMILY_NAME },
		.name = DTM_GENL_NAME,
	};
	const struct nlmsghdr *nlh = (const void *)answer;
	struct attributes family, groups, group;
	ssize_t size;

	if (send(fd, &request, sizeof(request), 0) < 0)
		die("generic netlink");
	size = recv(fd, answer, sizeof(answer), 0);
	if (size < 0)
		die("generic netlink");
	if (nlh->nlmsg_type == NLMSG_ERROR) {
		fprintf(stderr, "dtm-events: the kernel has no dtm: load sch_dtm first\n");
		exit(1);
	}
	parse(&family, (const char *)NLMSG_DATA(nlh) + GENL_HDRLEN,
	      nlh->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
	*number_of_family = number(family.at[CTRL_ATTR_FAMILY_ID]);
	errno = ENOENT;
	if (!family.at[CTRL_ATTR_MCAST_GROUPS])
		die("multicast group " DTM_GENL_GROUP);
	parse(&groups, payload(family.at[CTRL_ATTR_MCAST_GROUPS]),
	      family.at[CTRL_ATTR_MCAST_GROUPS]->nla_len - NLA_HDRLEN);
	/* There is one group; groups are numbered from 1. */
	if (!groups.at[1])
		die("multicast group " DTM_GENL_GROUP);
	parse(&group, payload(groups.at[1]), groups.at[1]->nla_len - NLA_HDRLEN);
	return number(group.at[CTRL_ATTR_MCAST_GRP_ID]);
}

static void subscribe(struct recorder *recorder)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	int group, size = RECEIVE_BUFFER;

	if (fd < 0)
		die("generic netlink");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	group = find_group(fd, &recorder->family);
	if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
		die("multicast group " DTM_GENL_GROUP);
	recorder->fd = fd;
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
	fprintf(out, "%" PRIu64 ",%s,%x:,%s,%u,%u,%u,%" PRIu64 ",%u\n",
		number(event->at[DTM_A_TIME]), name, handle >> 16,
		cause < sizeof(causes) / sizeof(causes[0]) ? causes[cause] : "unknown",
		(unsigned int)number(event->at[DTM_A_FROM]),
		(unsigned int)number(event->at[DTM_A_TO]),
		(unsigned int)number(event->at[DTM_A_WANTED]),
		number(event->at[DTM_A_ESTIMATE]), (unsigned int)number(event->at[DTM_A_BACKLOG]));
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
	parse(&found, (const char *)genl + GENL_HDRLEN,
	      nlh->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
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
		ssize_t size = recv(recorder->fd, message, sizeof(message), MSG_DONTWAIT);
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
	const struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
	} request = {
		.nlh = { .nlmsg_len = sizeof(request), .nlmsg_type = recorder->family,
			 .nlmsg_flags = NLM_F_REQUEST },
		.genl = { .cmd = DTM_CMD_SYNC, .version = DTM_GENL_VERSION },
	};

	recorder->answered = false;
	for (int tries = 0; tries < 3 && !recorder->answered; tries++) {
		if (send(recorder->fd, &request, sizeof(request), 0) < 0)
			die("generic netlink");
		write_received(recorder);
	}
	if (!recorder->answered)
		recorder->overrun = true;
}

/* Write events until told to stop, and all that happened before. */
static void record(struct recorder *recorder, const sigset_t *while_waiting)
{
	struct pollfd ready = { .fd = recorder->fd, .events = POLLIN };

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
		fprintf(stderr, "dtm-events: %" PRIu64 " events were lost\n", recorder->lost);
	else if (recorder->overrun)
		fprintf(stderr, "dtm-events: events were lost\n");
	return recorder->lost || recorder->overrun;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "out", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static const char usage[] =
		"usage: dtm-events [--out FILE]\n"
		"Writes a row of CSV for each reallocation of the DTM channels of this network\n"
		"namespace, until interrupted.\n";
	struct sigaction action = { .sa_handler = stop };
	sigset_t stops, before;
	struct recorder recorder = { 0 };
	FILE *out = stdout;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c != 'o') {
			fputs(usage, stderr);
			return 2;
		}
		out = fopen(optarg, "w");
		if (!out)
			die(optarg);
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return 2;
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
	fputs("# tool: dtm-events\n"
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
