// SPDX-License-Identifier: GPL-2.0-only
/*
 * dtm_fuzz - random and broken netlink requests for dtm, with traffic and time in between
 *
 *	dtm_fuzz SEED REQUESTS LONE PARENT
 *
 * LONE is a device whose root qdisc may be replaced, PARENT one with three classes 1:1 to 1:3,
 * which share a pool. Requests go out in batches; after each the kernel's dump of every channel
 * is held against what must always be true, now and then one is given its own dump as a change
 * (which must be taken and change nothing), packets are sent and time passes.
 *
 * A refusal must say why. One that does not is sent once more, to tbf instead of dtm: if it ends
 * in the same way, then it does so before any qdisc is asked ("core"), else it is "ours".
 *
 * Prints a table: count, errno, "said"|"core"|"ours", the kernel's sentence or the mutations.
 * Exit status 1 and a sentence on standard error if anything that must hold does not. A seed
 * makes the same requests each time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "dtm_requests.h"

#define BATCH 32
#define MOST_OUTCOMES 512
#define MOST_CHANNELS 16
#define REPLY_BYTES (1 << 20)

/* What came of requests. */
struct outcome {
	unsigned long count;
	int error;
	char how[8];
	char text[160];
};

/* A channel in a dump. */
struct channel {
	struct tcmsg tc;
	const struct nlattr *options;
	const struct nlattr *by_type[TCA_DTM_MAX + 1];
	struct tc_dtm_xstats state;
};

static struct outcome outcomes[MOST_OUTCOMES];
static unsigned int n_outcomes;
static unsigned long accepted, intact_accepted, intact;
static uint8_t batch[4 << 20];
static uint8_t reply[REPLY_BYTES];
static unsigned long done;
static int rtnl;

static void fail(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "dtm_fuzz: after %lu requests: ", done);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* The kernel's answers */

/* Returns: the kernel's sentence, or NULL. */
static const char *sentence(const struct nlmsghdr *header)
{
	const struct nlmsgerr *error = NLMSG_DATA(header);
	const uint8_t *at = (const uint8_t *)(error + 1);
	const uint8_t *end = (const uint8_t *)header + header->nlmsg_len;

	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(header->nlmsg_flags & NLM_F_CAPPED))
		at += error->msg.nlmsg_len - NLMSG_HDRLEN;
	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const struct nlattr *)at;

		if ((a->nla_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_MSG)
			return (const char *)at + NLA_HDRLEN;
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static void count(int error, const char *how, const char *text)
{
	struct outcome *outcome;

	for (outcome = outcomes; outcome < outcomes + n_outcomes; outcome++)
		if (outcome->error == error && !strcmp(outcome->how, how) &&
		    !strncmp(outcome->text, text, sizeof(outcome->text) - 1)) {
			outcome->count++;
			return;
		}
	if (n_outcomes == MOST_OUTCOMES)
		fail("more than %u different outcomes", MOST_OUTCOMES);
	outcome = &outcomes[n_outcomes++];
	outcome->count = 1;
	outcome->error = error;
	snprintf(outcome->how, sizeof(outcome->how), "%s", how);
	snprintf(outcome->text, sizeof(outcome->text), "%s", text);
}

static ssize_t receive(void)
{
	ssize_t got = recv(rtnl, reply, sizeof(reply), 0);

	if (got < 0)
		fail("recv: %s", strerror(errno));
	return got;
}

struct answer {
	int error;
	bool said;
};

/* Wait for the answers to `n` requests, numbered from `first` on; tell those without a word. */
static void collect(uint32_t first, unsigned int n, struct answer *answers, bool tally)
{
	unsigned int seen = 0;

	while (seen < n) {
		ssize_t left = receive();
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;

		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlmsgerr *error = NLMSG_DATA(h);
			const char *text;

			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			if (h->nlmsg_seq - first >= n)
				fail("an answer to request %u", h->nlmsg_seq);
			text = sentence(h);
			answers[h->nlmsg_seq - first] = (struct answer){
				-error->error, text && *text
			};
			if (tally && error->error && text && *text)
				count(-error->error, "said", text);
			seen++;
		}
	}
}

/* What must always be true */

static uint64_t u(const struct channel *ch, uint16_t type)
{
	const struct nlattr *a = ch->by_type[type];
	uint64_t value = 0;

	if (a)
		memcpy(&value, a + 1, a->nla_len - NLA_HDRLEN);
	return value;
}

static void index_attributes(const struct nlattr **by_type, unsigned int most,
			     const void *start, unsigned int bytes)
{
	const uint8_t *at = start, *end = at + bytes;

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const struct nlattr *)at;

		if ((a->nla_type & NLA_TYPE_MASK) <= most)
			by_type[a->nla_type & NLA_TYPE_MASK] = a;
		at += NLA_ALIGN(a->nla_len);
	}
}

static void check_channel(const struct channel *ch)
{
	const struct tc_dtm_xstats *now = &ch->state;
	__uint128_t held = (__uint128_t)now->slot_seconds * 1000000000 + now->slot_ns;
	uint64_t owned = u(ch, TCA_DTM_OWNED);

	if (now->slots < u(ch, TCA_DTM_MIN_SLOTS) || now->slots > u(ch, TCA_DTM_MAX_SLOTS))
		fail("%x holds %u slots, not %lu..%lu", ch->tc.tcm_handle, now->slots,
		     u(ch, TCA_DTM_MIN_SLOTS), u(ch, TCA_DTM_MAX_SLOTS));
	if (now->lower > now->upper)
		fail("%x has a corridor of %llu..%llu", ch->tc.tcm_handle, now->lower, now->upper);
	if (held < now->age_ns || held > (__uint128_t)now->age_ns * DTM_MAX_SLOTS)
		fail("%x held %llu slot-seconds in %llu ns", ch->tc.tcm_handle, now->slot_seconds,
		     now->age_ns);
	if (now->borrowed != (u(ch, TCA_DTM_POOL) && now->slots > owned ? now->slots - owned : 0))
		fail("%x says it borrows %u of %u slots", ch->tc.tcm_handle, now->borrowed,
		     now->slots);
}

static void check_pool(const struct channel *channels, unsigned int n)
{
	uint64_t used = 0, pool = 0, unused = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (channels[i].tc.tcm_ifindex != (int)parent || !u(&channels[i], TCA_DTM_POOL))
			continue;
		if (pool && pool != u(&channels[i], TCA_DTM_POOL))
			fail("a link with pools of %lu and %lu slots", pool,
			     u(&channels[i], TCA_DTM_POOL));
		pool = u(&channels[i], TCA_DTM_POOL);
		unused = channels[i].state.pool_free;
		used += channels[i].state.slots;
	}
	if (used + unused != pool)
		fail("a pool of %lu slots has %lu in use and %lu free", pool, used, unused);
}

static void parse_channel(struct channel *ch, const struct nlmsghdr *h)
{
	const struct nlattr *tca[TCA_MAX + 1] = {}, *stats[TCA_STATS_MAX + 1] = {};
	const uint8_t *at = (const uint8_t *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct tcmsg));

	memset(ch, 0, sizeof(*ch));
	memcpy(&ch->tc, NLMSG_DATA(h), sizeof(ch->tc));
	index_attributes(tca, TCA_MAX, at, (const uint8_t *)h + h->nlmsg_len - at);
	if (!tca[TCA_KIND] || strcmp((const char *)(tca[TCA_KIND] + 1), "dtm"))
		return;
	index_attributes(stats, TCA_STATS_MAX, tca[TCA_STATS2] + 1,
			 tca[TCA_STATS2]->nla_len - NLA_HDRLEN);
	memcpy(&ch->state, stats[TCA_STATS_APP] + 1, sizeof(ch->state));
	ch->options = tca[TCA_OPTIONS];
	index_attributes(ch->by_type, TCA_DTM_MAX, ch->options + 1,
			 ch->options->nla_len - NLA_HDRLEN);
}

/* Every dtm channel there is, copied out of the dump. */
static unsigned int dump(struct channel *channels, uint8_t *copies, size_t copy_bytes)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg tc;
	} request = {
		{ sizeof(request), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 }, {},
	};
	unsigned int n = 0;

	if (send(rtnl, &request, sizeof(request), 0) < 0)
		fail("send: %s", strerror(errno));
	for (;;) {
		ssize_t left = receive();
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;

		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return n;
			if (h->nlmsg_type != RTM_NEWQDISC)
				fail("message %u instead of a qdisc", h->nlmsg_type);
			if (n == MOST_CHANNELS || h->nlmsg_len > copy_bytes)
				fail("more channels than there can be");
			memcpy(copies, h, h->nlmsg_len);
			parse_channel(&channels[n], (const struct nlmsghdr *)copies);
			if (!channels[n].options)
				continue;
			check_channel(&channels[n++]);
			copies += NLMSG_ALIGN(h->nlmsg_len);
			copy_bytes -= NLMSG_ALIGN(h->nlmsg_len);
		}
	}
}

/* Options without padding, which only receivers may see. */
static unsigned int without_padding(uint8_t *to, const struct nlattr *options)
{
	const uint8_t *at = (const uint8_t *)(options + 1);
	const uint8_t *end = (const uint8_t *)options + options->nla_len;
	uint8_t *start = to;

	for (; at + NLA_HDRLEN <= end; at += NLA_ALIGN(((const struct nlattr *)at)->nla_len)) {
		const struct nlattr *a = (const struct nlattr *)at;

		if (a->nla_type != TCA_DTM_PAD)
			to = put(to, a->nla_type, a + 1, a->nla_len - NLA_HDRLEN, a->nla_len);
	}
	return to - start;
}

/* What a channel shows, it takes; and then shows the same. */
static void give_back(const struct channel *channels, unsigned int n)
{
	static uint8_t message[1 << 16], copies[1 << 18], before[1 << 15], after[1 << 15];
	const struct channel *ch = &channels[below(n)];
	struct nlmsghdr *header = (struct nlmsghdr *)message;
	struct channel again[MOST_CHANNELS];
	struct answer answer;
	uint8_t *end = message + NLMSG_HDRLEN;
	unsigned int bytes = without_padding(before, ch->options), i, m;

	memcpy(end, &ch->tc, sizeof(ch->tc));
	end = put(end + NLMSG_ALIGN(sizeof(ch->tc)), TCA_KIND, "dtm", 4, NLA_HDRLEN + 4);
	end = put(end, TCA_OPTIONS, before, bytes, NLA_HDRLEN + bytes);
	*header = (struct nlmsghdr){ end - message, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK, 0, 0 };
	if (send(rtnl, message, header->nlmsg_len, 0) < 0)
		fail("send: %s", strerror(errno));
	collect(0, 1, &answer, true);
	if (answer.error)
		fail("%x refused its own options: %s", ch->tc.tcm_handle, strerror(answer.error));
	m = dump(again, copies, sizeof(copies));
	for (i = 0; i < m; i++)
		if (again[i].tc.tcm_handle == ch->tc.tcm_handle &&
		    again[i].tc.tcm_ifindex == ch->tc.tcm_ifindex) {
			if (without_padding(after, again[i].options) != bytes ||
			    memcmp(before, after, bytes))
				fail("%x took its own options and shows others",
				     ch->tc.tcm_handle);
			return;
		}
	fail("%x went away", ch->tc.tcm_handle);
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

/* What becomes of a packet is the queue's affair. */
static void send_packets(int fd)
{
	static const int priorities[] = { 0, 2, 6 };
	unsigned int n = below(5);

	while (n--) {
		int priority = priorities[below(ARRAY_SIZE(priorities))];
		int segment = one_in(3) ? 100 + below(1300) : 0;
		size_t bytes = segment ? below(12) * segment + 1 : 1 + below(1400);

		setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
		setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
		send(fd, noise, bytes, MSG_DONTWAIT);
	}
}

static void let_time_pass(void)
{
	uint64_t ns = any_size() % 100000000000;
	struct timespec span = { ns / 1000000000, ns % 1000000000 };

	if (one_in(2))
		nanosleep(&span, NULL);
}

/* Rounds */

/* A refusal without a word: does tbf get the same? */
static void compare_with_tbf(struct request *r, int error)
{
	struct answer answer;
	uint8_t *end;

	if (!strcmp(r->kind, "dtm"))
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

int main(int argc, char **argv)
{
	static uint8_t copies[1 << 18];
	struct channel channels[MOST_CHANNELS];
	unsigned long requests;
	int lone_traffic, parent_traffic;
	struct outcome *outcome;
	size_t i;

	if (argc != 5)
		fail("usage: dtm_fuzz SEED REQUESTS LONE PARENT");
	state = strtoull(argv[1], NULL, 0);
	requests = strtoul(argv[2], NULL, 0);
	lone = if_nametoindex(argv[3]);
	parent = if_nametoindex(argv[4]);
	if (!lone || !parent)
		fail("no such device");
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = draw();
	open_rtnetlink();
	lone_traffic = udp_socket(argv[3], "10.9.0.2");
	parent_traffic = udp_socket(argv[4], "10.9.1.2");
	while (done < requests) {
		unsigned int n;

		n = BATCH / 2 + below(BATCH / 2);
		round_of_requests(n < requests - done ? n : requests - done);
		send_packets(lone_traffic);
		send_packets(parent_traffic);
		let_time_pass();
		n = dump(channels, copies, sizeof(copies));
		check_pool(channels, n);
		if (n && one_in(4))
			give_back(channels, n);
	}
	printf("%lu\t0\tdone\tof which accepted %lu; intact %lu, of which accepted %lu\n", done,
	       accepted, intact, intact_accepted);
	for (outcome = outcomes; outcome < outcomes + n_outcomes; outcome++)
		printf("%lu\t%d\t%s\t%s\n", outcome->count, outcome->error, outcome->how,
		       outcome->text);
	return 0;
}
