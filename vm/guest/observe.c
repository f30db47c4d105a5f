// SPDX-License-Identifier: GPL-2.0-only
/*
 * observe - sample TCP_INFO and queue lengths in several network namespaces.
 *
 *   observe --start NS --stop NS --interval NS --progress-interval NS --out FOLDER
 *           [--sockets NAMESPACE]... [--sockets6 NAMESPACE]...
 *           [--queue NAMESPACE/INTERFACE]...
 *
 * Namespaces are names under /run/netns. Times are ns on the plan's clock (plan_clock.h). Writes
 * FOLDER/tcp-info.csv (one row per established connection and sample, of IPv4 or, with
 * --sockets6, of IPv6),
 * FOLDER/queues.csv (one row per queue and sample), and rewrites the one line of
 * FOLDER/progress.json, which is how the host knows that virtual time moves.
 *
 * One process for all namespaces, two system calls per namespace and sample: in
 * virtual time those, not packets, are what a run costs.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/gen_stats.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plan_clock.h"

#define MAX_PLACES	 256
#define TCP_ESTABLISHED	 1
#define FILE_BUFFER	 (1 << 20)
#define MESSAGES	 4
#define MESSAGE_BYTES	 (1 << 16)

struct place {
	const char *name;		/* namespace, for the rows */
	int family;			/* sockets only */
	const char *interface;		/* queues only */
	int ifindex;			/* queues only */
	int netlink;
};

static struct place sockets[MAX_PLACES], queues[MAX_PLACES];
static int n_sockets, n_queues;
static uint64_t acked_bytes;		/* of all connections, at this sample */
static uint32_t queued_packets;		/* in all queues, at this sample */
static char buffers[MESSAGES][MESSAGE_BYTES];
static struct iovec iovecs[MESSAGES];
static struct mmsghdr messages[MESSAGES];

static void die(const char *what)
{
	fprintf(stderr, "observe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void enter(const char *namespace)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die(path);
	close(fd);
}

static void add_sockets(const char *namespace, int family)
{
	struct place *place = &sockets[n_sockets++];

	if (n_sockets >= MAX_PLACES)
		die("too many --sockets");
	enter(namespace);
	place->name = namespace;
	place->family = family;
	place->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (place->netlink < 0)
		die("sock_diag");
}

static void add_queue(char *where)
{
	struct place *place = &queues[n_queues++];
	char *slash = strchr(where, '/');

	if (n_queues >= MAX_PLACES || !slash)
		die("--queue NAMESPACE/INTERFACE");
	*slash = '\0';
	enter(where);
	place->name = where;
	place->interface = slash + 1;
	place->ifindex = if_nametoindex(place->interface);
	place->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (!place->ifindex || place->netlink < 0)
		die(place->interface);
}

/* Hand the parts of one netlink message to use(); true at the end of the dump. */
static bool use_message(const struct place *place, const void *message, ssize_t size,
			void (*use)(const struct place *, const struct nlmsghdr *, FILE *),
			FILE *out)
{
	for (const struct nlmsghdr *nlh = message; NLMSG_OK(nlh, size);
	     nlh = NLMSG_NEXT(nlh, size)) {
		if (nlh->nlmsg_type == NLMSG_DONE)
			return true;
		if (nlh->nlmsg_type == NLMSG_ERROR) {
			errno = -((const struct nlmsgerr *)NLMSG_DATA(nlh))->error;
			die("netlink");
		}
		use(place, nlh, out);
	}
	return false;
}

/*
 * Send a dump request and hand each message of the answer to use(). The kernel
 * sends its end mark as a message of its own; recvmmsg takes both in one call.
 */
static void dump(const struct place *place, const void *request, size_t size,
		 void (*use)(const struct place *, const struct nlmsghdr *, FILE *), FILE *out)
{
	bool done = false;

	if (send(place->netlink, request, size, 0) < 0)
		die("netlink send");
	while (!done) {
		int n = recvmmsg(place->netlink, messages, MESSAGES, MSG_WAITFORONE, NULL);

		if (n < 0)
			die("netlink recv");
		for (int i = 0; i < n; i++)
			done |= use_message(place, buffers[i], messages[i].msg_len, use, out);
	}
}

static int64_t sample_ns;

static void write_socket(const struct place *place, const struct nlmsghdr *nlh, FILE *out)
{
	const struct inet_diag_msg *msg = NLMSG_DATA(nlh);
	const struct rtattr *attr = (const struct rtattr *)(msg + 1);
	int left = nlh->nlmsg_len - NLMSG_LENGTH(sizeof(*msg));
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	inet_ntop(msg->idiag_family, msg->id.idiag_src, src, sizeof(src));
	inet_ntop(msg->idiag_family, msg->id.idiag_dst, dst, sizeof(dst));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		struct tcp_info info = { 0 };
		size_t size = RTA_PAYLOAD(attr);

		if (attr->rta_type != INET_DIAG_INFO)
			continue;
		memcpy(&info, RTA_DATA(attr), size < sizeof(info) ? size : sizeof(info));
		acked_bytes += info.tcpi_bytes_acked;
		fprintf(out, "%" PRId64 ",%s,%s,%u,%s,%u,%u,%d,%u,%u,%u,%u,%u,%" PRIu64 ",%u\n",
			sample_ns, place->name, src, ntohs(msg->id.idiag_sport), dst,
			ntohs(msg->id.idiag_dport), info.tcpi_snd_cwnd,
			info.tcpi_snd_ssthresh > INT32_MAX / 2 ? -1 : (int)info.tcpi_snd_ssthresh,
			info.tcpi_rtt, info.tcpi_rttvar, info.tcpi_unacked,
			info.tcpi_total_retrans, info.tcpi_ca_state,
			(uint64_t)info.tcpi_bytes_acked, info.tcpi_rto);
	}
}

static void sample_sockets(FILE *out)
{
	struct {
		struct nlmsghdr nlh;
		struct inet_diag_req_v2 diag;
	} request = {
		.nlh = { .nlmsg_len = sizeof(request), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.diag = { .sdiag_protocol = IPPROTO_TCP,
			  .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			  .idiag_states = 1 << TCP_ESTABLISHED },
	};

	for (int i = 0; i < n_sockets; i++) {
		request.diag.sdiag_family = sockets[i].family;
		dump(&sockets[i], &request, sizeof(request), write_socket, out);
	}
}

static void write_queue(const struct place *place, const struct nlmsghdr *nlh, FILE *out)
{
	const struct tcmsg *msg = NLMSG_DATA(nlh);
	const struct rtattr *attr = (const struct rtattr *)(msg + 1);
	int left = nlh->nlmsg_len - NLMSG_LENGTH(sizeof(*msg));

	if (msg->tcm_ifindex != place->ifindex || msg->tcm_parent != TC_H_ROOT)
		return;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		const struct rtattr *stat = RTA_DATA(attr);
		int stats_left = RTA_PAYLOAD(attr);

		if (attr->rta_type != TCA_STATS2)
			continue;
		for (; RTA_OK(stat, stats_left); stat = RTA_NEXT(stat, stats_left)) {
			const struct gnet_stats_queue *q = RTA_DATA(stat);

			if (stat->rta_type != TCA_STATS_QUEUE)
				continue;
			queued_packets += q->qlen;
			fprintf(out, "%" PRId64 ",%s,%u,%u,%u,", sample_ns,
				place->interface, q->qlen, q->backlog, q->drops);
		}
	}
}

static void sample_queues(FILE *out)
{
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tc;
	} request = {
		.nlh = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETQDISC,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.tc = { .tcm_family = AF_UNSPEC },
	};

	for (int i = 0; i < n_queues; i++) {
		request.tc.tcm_ifindex = queues[i].ifindex;
		dump(&queues[i], &request, sizeof(request), write_queue, out);
		fprintf(out, "%" PRId64 "\n", plan_now_ns());
	}
}

/* One line of constant length, rewritten in place: a reader never sees half of two. */
static void write_progress(int fd)
{
	char line[128];
	int n = snprintf(line, sizeof(line),
			 "{\"time_ns\": %20" PRId64 ", \"acked_bytes\": %20" PRIu64
			 ", \"queued_packets\": %10u}\n",
			 sample_ns, acked_bytes, queued_packets);

	/* A stock kernel tells of progress over a serial port, which has no places to seek. */
	if ((lseek(fd, 0, SEEK_SET) < 0 && errno != ESPIPE) || write(fd, line, n) != n)
		die("progress.json");
}

static FILE *create(const char *folder, const char *name, const char *header)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file || setvbuf(file, NULL, _IOFBF, FILE_BUFFER) != 0)
		die(path);
	fputs(header, file);
	return file;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "start", required_argument, NULL, 's' },
		{ "stop", required_argument, NULL, 'e' },
		{ "interval", required_argument, NULL, 'i' },
		{ "progress-interval", required_argument, NULL, 'p' },
		{ "out", required_argument, NULL, 'o' },
		{ "sockets", required_argument, NULL, 't' },
		{ "sockets6", required_argument, NULL, '6' },
		{ "queue", required_argument, NULL, 'q' },
		{ 0 },
	};
	int64_t start = 0, stop = 0, interval = 0, progress_interval = 0;
	const char *folder = NULL;
	char path[512];
	FILE *tcp, *queue, *rehearsal;
	int c, progress;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 's': start = atoll(optarg); break;
		case 'e': stop = atoll(optarg); break;
		case 'i': interval = atoll(optarg); break;
		case 'p': progress_interval = atoll(optarg); break;
		case 'o': folder = optarg; break;
		case 't': add_sockets(optarg, AF_INET); break;
		case '6': add_sockets(optarg, AF_INET6); break;
		case 'q': add_queue(optarg); break;
		default: return 2;
		}
	}
	if (!start || stop <= start || interval <= 0 || progress_interval <= 0 || !folder) {
		fputs("usage: observe --start NS --stop NS --interval NS --progress-interval NS\n"
		      "               --out FOLDER [--sockets NAMESPACE]... [--sockets6 NAMESPACE]...\n"
		      "               [--queue NAMESPACE/INTERFACE]...\n",
		      stderr);
		return 2;
	}
	tcp = create(folder, "tcp-info.csv",
		     "# clock: CLOCK_REALTIME, ns\n"
		     "# cwnd, ssthresh, unacked: segments (ssthresh -1: infinite); rtt, rttvar, rto: us\n"
		     "time_ns,node,source,source_port,destination,port,cwnd,ssthresh,rtt_us,rttvar_us,"
		     "unacked,retransmits,ca_state,bytes_acked,rto_us\n");
	queue = create(folder, "queues.csv",
		       "# clock: CLOCK_REALTIME, ns\n"
		       "# the kernel's own count, the packet in service included, read by read_ns\n"
		       "time_ns,interface,packets,bytes,drops,read_ns\n");
	snprintf(path, sizeof(path), "%s/progress.json", folder);
	progress = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (progress < 0)
		die(path);

	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		die("mlockall");
	for (int i = 0; i < MESSAGES; i++) {
		iovecs[i] = (struct iovec){ buffers[i], MESSAGE_BYTES };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &iovecs[i], .msg_iovlen = 1 };
	}
	/* The first dumps may load modules, which takes a stock kernel a while: rehearse. */
	rehearsal = fopen("/dev/null", "w");
	if (!rehearsal)
		die("/dev/null");
	sample_sockets(rehearsal);
	sample_queues(rehearsal);
	fclose(rehearsal);
	for (int64_t at = start, sample = start, report = start; at < stop;
	     at = sample < report ? sample : report) {
		plan_sleep_until(at);
		sample_ns = at;
		if (at == sample) {
			acked_bytes = 0;
			queued_packets = 0;
			sample_sockets(tcp);
			sample_queues(queue);
			sample += interval;
		}
		if (at == report) {
			write_progress(progress);
			report += progress_interval;
		}
	}
	if (fclose(tcp) || fclose(queue))
		die("samples");
	return 0;
}
