// SPDX-License-Identifier: GPL-2.0-only
/*
 * qdisc_fuzz - random and broken netlink requests for a qdisc, with traffic and time in between
 *
 *	qdisc_fuzz KIND SEED REQUESTS LONE PARENT [real]
 *
 * LONE is a device whose root qdisc may be replaced, PARENT one with three classes 1:1 to 1:3.
 * With `real` the clock goes on while the kernel works, unlike virtual time, and each sleep lasts a
 * millionth.
 * Requests go out in batches; then the kernel's dumps are compared with what must always be true.
 * Now and then a qdisc is given its own dump as a change, which must be taken and change nothing.
 * Packets are sent, and must enter the qdisc, GSO buffers in pieces; and time passes. LONE's qdisc
 * gets other queues inside, and loses them.
 *
 * A refusal must say why. One that does not is sent once more, to tbf instead of KIND: if it ends
 * in the same way, then it does so before any qdisc is asked ("core"), else it is "ours".
 *
 * Prints a table: count, errno, "said"|"core"|"ours", the kernel's sentence or the mutations.
 * Exit status 1 and a sentence on standard error if anything that must hold does not. A seed
 * makes the same requests each time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dtm_checks.h"
#include "medium_requests.h"
#include "mutations.h"
#include "timetable_requests.h"

#define BATCH 32
#define MOST_LOOKS 1000	/* of 10 ms, in which a qdisc is to send its queue */

/* Every qdisc of ours. */
static const struct fuzzed *const table[] = { &dtm, &medium, &timetable };

static unsigned long accepted, intact_accepted, intact, entered, cut_up, given_up, given_back;
static unsigned long put_inside;
static bool real_clock;
static uint8_t batch[4 << 20];

static void same_options(const struct shown *before, const struct shown *after)
{
	static uint8_t options[2][1 << 16];
	unsigned int bytes = without_padding(options[0], before->options, tested->pad);

	if (without_padding(options[1], after->options, tested->pad) != bytes ||
	    memcmp(options[0], options[1], bytes))
		fail("%x took its own options and shows others", before->tc.tcm_handle);
}

/* A qdisc accepts its own dump as a change, and is then as before. */
static void give_back(void)
{
	static uint8_t message[1 << 17], copies[2][1 << 18];
	struct nlmsghdr *header = (struct nlmsghdr *)message;
	struct shown shown[MOST_SHOWN], again[MOST_SHOWN];
	struct answer answer;
	uint8_t *end = message + NLMSG_HDRLEN, *nest;
	const struct shown *one;
	unsigned int i, m, n;

	if (tested->settle)
		tested->settle();
	n = dump(shown, copies[0], sizeof(copies[0]));
	if (!n)
		return;
	one = &shown[below(n)];
	memcpy(end, &one->tc, sizeof(one->tc));
	end = put(end + NLMSG_ALIGN(sizeof(one->tc)), TCA_KIND, tested->kind,
		  strlen(tested->kind) + 1, NLA_HDRLEN + strlen(tested->kind) + 1);
	nest = end;
	end += NLA_HDRLEN;
	end += without_padding(end, one->options, tested->pad);
	put(nest, TCA_OPTIONS | NLA_F_NESTED, NULL, 0, end - nest);
	*header = (struct nlmsghdr){ end - message, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK, 0, 0 };
	if (send(rtnl, message, header->nlmsg_len, 0) < 0)
		fail("send: %s", strerror(errno));
	collect(0, 1, &answer, true);
	if (answer.error)
		fail("%x refused its own options: %s", one->tc.tcm_handle, strerror(answer.error));
	m = dump(again, copies[1], sizeof(copies[1]));
	for (i = 0; i < m; i++)
		if (again[i].tc.tcm_handle == one->tc.tcm_handle &&
		    again[i].tc.tcm_ifindex == one->tc.tcm_ifindex) {
			same_options(one, &again[i]);
			if (tested->compare)
				tested->compare(one, &again[i]);
			given_back++;
			return;
		}
	fail("%x went away", one->tc.tcm_handle);
}

static bool is_lone_root(const struct shown *shown)
{
	return shown->tc.tcm_ifindex == (int)lone && shown->tc.tcm_parent == TC_H_ROOT;
}

/* Queues for the class of a qdisc; the last entry takes the queue out. */
static const char *const insides[] = { "pfifo", "fq_codel", "codel", "sfq", "cake", "fq", "" };

/* Put another queue inside a qdisc, or none. */
static void change_queue_inside(const struct shown *root)
{
	const char *kind = insides[below(ARRAY_SIZE(insides))];
	struct nlmsghdr header = { 0, *kind ? RTM_NEWQDISC : RTM_DELQDISC,
				   NLM_F_REQUEST | NLM_F_ACK, 0, 0 };
	uint8_t *end = batch + NLMSG_HDRLEN;
	struct tcmsg tc = root->tc;
	struct answer answer;

	tc.tcm_parent = tc.tcm_handle | 1;
	tc.tcm_handle = 0;
	memcpy(end, &tc, sizeof(tc));
	end += NLMSG_ALIGN(sizeof(tc));
	if (*kind) {
		header.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
		end = put(end, TCA_KIND, kind, strlen(kind) + 1, NLA_HDRLEN + strlen(kind) + 1);
	}
	header.nlmsg_len = end - batch;
	memcpy(batch, &header, sizeof(header));
	if (send(rtnl, batch, header.nlmsg_len, 0) < 0)
		fail("send: %s", strerror(errno));
	collect(0, 1, &answer, false);
	if (*kind && answer.error)
		fail("%x refused a %s inside: %s", root->tc.tcm_handle, kind,
		     strerror(answer.error));
	put_inside += *kind != 0;
}

static void change_queues_inside(void)
{
	static uint8_t copies[1 << 18];
	struct shown shown[MOST_SHOWN];
	unsigned int n = dump(shown, copies, sizeof(copies)), i;

	for (i = 0; i < n; i++)
		if (is_lone_root(&shown[i]))
			change_queue_inside(&shown[i]);
}

/* Traffic */

static int udp_socket(const char *device, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, address, &to.sin_addr);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, strlen(device)) ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)))
		fail("%s: %s", device, strerror(errno));
	return fd;
}

static const int priorities[] = { 0, 2, 6 };

/* The queue may drop the packet or tell the socket that it is full: neither is an error. */
static void send_packet(int fd, size_t bytes, int segment)
{
	int priority = priorities[below(ARRAY_SIZE(priorities))];
	ssize_t sent;

	setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	sent = send(fd, noise, bytes, MSG_DONTWAIT);
	if (sent != (ssize_t)bytes && (sent >= 0 || (errno != EAGAIN && errno != ENOBUFS)))
		fail("sent %zd of %zu bytes: %s", sent, bytes, strerror(errno));
}

static void send_packets(int fd)
{
	unsigned int n = below(5);

	while (n--) {
		int segment = one_in(3) ? 100 + below(1300) : 0;

		send_packet(fd, segment ? below(12) * segment + 1 : 1 + below(1400), segment);
	}
}

/*
 * Packets that came to the qdisc that is the root of LONE; false if there is none, or if it is
 * not empty on a clock that goes on: the kernel reads its counters one after the other, and a
 * packet may leave meanwhile.
 */
static bool lone_packets(uint64_t *packets)
{
	static uint8_t copies[1 << 18];
	struct shown shown[MOST_SHOWN];
	unsigned int n = dump(shown, copies, sizeof(copies)), i;

	for (i = 0; i < n; i++)
		if (is_lone_root(&shown[i])) {
			*packets = shown[i].packets;
			return !(real_clock && shown[i].queued);
		}
	return false;
}

/* A packet counts as one in a qdisc, and a GSO buffer as its number of segments. */
static void count_segments(int fd)
{
	const struct timespec a_while = { 0, 10000000 };
	unsigned int n = 1 + below(12), looks;
	int pending = 0;
	uint64_t before, after = 0;

	/* A full socket sends nothing. */
	if (ioctl(fd, SIOCOUTQ, &pending) || pending || !lone_packets(&before))
		return;
	send_packet(fd, (n - 1) * 1000 + 1, n > 1 ? 1000 : 0);
	for (looks = 0; !lone_packets(&after); looks++) {
		if (looks == MOST_LOOKS) {
			given_up++;
			return;
		}
		clock_nanosleep(CLOCK_MONOTONIC, 0, &a_while, NULL);
	}
	if (after - before != n)
		fail("%u packets of a buffer came to the qdisc as %lu", n, after - before);
	entered += n;
	cut_up += n > 1;
}

static void let_time_pass(void)
{
	uint64_t ns = any_size() % 100000000000 / (real_clock ? 1000000 : 1);
	struct timespec span = { ns / 1000000000, ns % 1000000000 };

	if (one_in(2))
		nanosleep(&span, NULL);
}

/* Rounds */

/* A refusal without a sentence: does tbf refuse in the same way? */
static void compare_with_tbf(struct request *r, int error)
{
	struct answer answer;
	uint8_t *end;

	if (!strcmp(r->kind, tested->kind))
		strcpy(r->kind, "tbf");
	end = serialise(batch, r, 0);
	if (send(rtnl, batch, end - batch, 0) < 0)
		fail("send: %s", strerror(errno));
	collect(0, 1, &answer, false);
	count(error, answer.error == error && !answer.said ? "core" : "ours",
	      mutation_names(r->mutations));
}

static void round_of_requests(unsigned int n)
{
	static struct request requests[BATCH];
	static struct answer answers[BATCH];
	uint8_t *end = batch;
	unsigned int i;

	for (i = 0; i < n; i++) {
		make_request(&requests[i]);
		mutate(&requests[i]);
		end = serialise(end, &requests[i], i);
	}
	if (send(rtnl, batch, end - batch, 0) < 0)
		fail("send: %s", strerror(errno));
	collect(0, n, answers, true);
	for (i = 0; i < n; i++) {
		intact += !requests[i].mutations;
		if (!answers[i].error) {
			accepted++;
			intact_accepted += !requests[i].mutations;
		} else if (!answers[i].said) {
			compare_with_tbf(&requests[i], answers[i].error);
		}
	}
	done += n;
}

static void open_rtnetlink(void)
{
	int on = 1, bytes = 8 << 20;

	rtnl = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (rtnl < 0 ||
	    setsockopt(rtnl, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    setsockopt(rtnl, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) ||
	    setsockopt(rtnl, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(rtnl, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		fail("rtnetlink: %s", strerror(errno));
}

static void open_tested(const char *kind)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i]->kind, kind))
			tested = table[i];
	if (!tested)
		fail("no qdisc of ours is called %s", kind);
	open_rtnetlink();
	if (tested->begin)
		tested->begin();
}

/* Send a batch and one more request, then traffic, and let time pass. */
static void round_with_traffic(unsigned long left, int lone_traffic, int parent_traffic)
{
	static uint8_t copies[1 << 18];
	struct shown shown[MOST_SHOWN];
	unsigned int n = BATCH / 2 + below(BATCH / 2);

	if (tested->prepare)
		tested->prepare();
	round_of_requests(n < left ? n : left);
	if (tested->besides && n < left)
		tested->besides();
	if (one_in(2))
		change_queues_inside();
	send_packets(lone_traffic);
	send_packets(parent_traffic);
	count_segments(lone_traffic);
	let_time_pass();
	if (dump(shown, copies, sizeof(copies)) && one_in(4))
		give_back();
}

int main(int argc, char **argv)
{
	unsigned long requests;
	int lone_traffic, parent_traffic;
	struct outcome *outcome;
	size_t i;

	real_clock = argc == 7 && !strcmp(argv[6], "real");
	if (argc != 6 && !real_clock)
		fail("usage: qdisc_fuzz KIND SEED REQUESTS LONE PARENT [real]");
	state = strtoull(argv[2], NULL, 0);
	requests = strtoul(argv[3], NULL, 0);
	lone = if_nametoindex(argv[4]);
	parent = if_nametoindex(argv[5]);
	if (!lone || !parent)
		fail("no such device");
	open_tested(argv[1]);
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = draw();
	lone_traffic = udp_socket(argv[4], "10.9.0.2");
	parent_traffic = udp_socket(argv[5], "10.9.1.2");
	while (done < requests)
		round_with_traffic(requests - done, lone_traffic, parent_traffic);
	if (tested->end)
		tested->end();
	if (!entered || !cut_up || !given_back || !put_inside)
		fail("%lu packets in, %lu buffers cut, %lu dumps given back, %lu queues put inside",
		     entered, cut_up, given_back, put_inside);
	printf("%lu\t0\tdone\taccepted %lu; intact %lu, accepted of those %lu; "
	       "%lu packets counted in, %lu buffers cut, %lu of a qdisc too slow; "
	       "%lu dumps given back, %lu queues put inside\n", done, accepted, intact,
	       intact_accepted, entered, cut_up, given_up, given_back, put_inside);
	for (outcome = outcomes; outcome < outcomes + n_outcomes; outcome++)
		printf("%lu\t%d\t%s\t%s\n", outcome->count, outcome->error, outcome->how,
		       outcome->text);
	return 0;
}
