// SPDX-License-Identifier: GPL-2.0-only
/*
 * dtm_fuzz - random and broken netlink requests for dtm, with traffic and time in between
 *
 *	dtm_fuzz SEED REQUESTS LONE PARENT
 *
 * LONE is a device whose root qdisc may be replaced, PARENT one with three classes 1:1 to 1:3, of
 * which some share a pool. Requests go out in batches, one of the generic netlink family after
 * each; then the kernel's dumps of channels and pools are compared with what must always be true.
 * Now and then a channel is given its own dump as a change, which must be taken and change nothing.
 * Packets are sent, and must enter channels, GSO buffers in pieces; and time passes.
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

#include "dtm_requests.h"

#define BATCH 32
#define MOST_OUTCOMES 512
#define MOST_CHANNELS 16
/* Where time passes while the kernel works: not in virtual time. */
#ifndef CLOCK_GOES_ON
#define CLOCK_GOES_ON 0
#endif
#define MOST_LOOKS 1000	/* of 10 ms, in which a channel is to send its queue */
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
	uint64_t packets;	/* that ever came: sent, queued or dropped */
	uint32_t queued;
};

/* Slots of a pool, as its channels or as its dump has them. */
struct pool {
	bool exists;
	uint64_t size;
	uint64_t used;
	uint64_t guaranteed;
	uint64_t channels;
	uint64_t waiting;
};

static struct outcome outcomes[MOST_OUTCOMES];
static unsigned int n_outcomes;
static unsigned long accepted, intact_accepted, intact;
static uint8_t batch[4 << 20];
static uint8_t reply[REPLY_BYTES];
static unsigned long done, entered, cut_up, given_up, given_back, seen;
static int rtnl, genl, events;
static uint16_t family;

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

static ssize_t receive(int fd)
{
	ssize_t got = recv(fd, reply, sizeof(reply), 0);

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
		ssize_t left = receive(rtnl);
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

static uint64_t u(const struct channel *ch, uint16_t type)
{
	const struct nlattr *a = ch->by_type[type];
	uint64_t value = 0;

	if (a)
		memcpy(&value, a + 1, a->nla_len - NLA_HDRLEN);
	return value;
}

static void check_channel(const struct channel *ch)
{
	const struct tc_dtm_xstats *now = &ch->state;
	__uint128_t held = (__uint128_t)now->slot_seconds * 1000000000 + now->slot_ns;
	uint64_t owned = u(ch, TCA_DTM_OWNED);

	if (now->slots < u(ch, TCA_DTM_MIN_SLOTS) || now->slots > u(ch, TCA_DTM_MAX_SLOTS))
		fail("%x holds %u slots, not %lu..%lu", ch->tc.tcm_handle, now->slots,
		     u(ch, TCA_DTM_MIN_SLOTS), u(ch, TCA_DTM_MAX_SLOTS));
	if (now->reserved)
		fail("%x has %u where 0 is reserved", ch->tc.tcm_handle, now->reserved);
	if (ch->by_type[TCA_DTM_N_STEPS])
		fail("%x is dumped without its steps", ch->tc.tcm_handle);
	if (now->lower > now->upper)
		fail("%x has a corridor of %llu..%llu", ch->tc.tcm_handle, now->lower, now->upper);
	if (held < now->age_ns || held > (__uint128_t)now->age_ns * TC_DTM_MAX_SLOTS)
		fail("%x held %llu slot-seconds in %llu ns", ch->tc.tcm_handle, now->slot_seconds,
		     now->age_ns);
	if (!ch->by_type[TCA_DTM_POOL] || now->slots < owned)
		owned = now->slots;
	if (now->borrowed != now->slots - owned)
		fail("%x says it borrows %u of %u slots", ch->tc.tcm_handle, now->borrowed,
		     now->slots);
}

/* What the channels of the pool hold, added up. */
static struct pool add_up(const struct channel *channels, unsigned int n)
{
	struct pool pool = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct channel *ch = &channels[i];
		uint64_t min = u(ch, TCA_DTM_MIN_SLOTS), owned = u(ch, TCA_DTM_OWNED);

		if (!ch->by_type[TCA_DTM_POOL])
			continue;
		pool.used += ch->state.slots;
		pool.guaranteed += owned > min ? owned : min;
		pool.channels++;
	}
	return pool;
}

static uint64_t member(const struct nlattr **by_type, uint16_t type)
{
	uint32_t value = 0;

	if (by_type[type])
		memcpy(&value, by_type[type] + 1, sizeof(value));
	return value;
}

/* The pool of the fuzzer as the kernel dumps it. */
static struct pool dump_pool(void)
{
	struct {
		struct nlmsghdr header;
		struct genlmsghdr genl;
	} request = {
		{ sizeof(request), family, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 },
		{ .cmd = DTM_CMD_POOL_GET, .version = 1 },
	};
	struct pool pool = { 0 };

	if (send(genl, &request, sizeof(request), 0) < 0)
		fail("send: %s", strerror(errno));
	for (;;) {
		ssize_t left = receive(genl);
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;

		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlattr *by_type[DTM_A_MAX + 1] = {};

			if (h->nlmsg_type == NLMSG_DONE)
				return pool;
			if (h->nlmsg_type != family)
				fail("message %u instead of a pool", h->nlmsg_type);
			index_attributes(by_type, DTM_A_MAX,
					 (const uint8_t *)NLMSG_DATA(h) + GENL_HDRLEN,
					 h->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
			if (strcmp((const char *)(by_type[DTM_A_POOL] + 1), pool_name))
				continue;
			pool = (struct pool){
				true, member(by_type, DTM_A_POOL_SLOTS),
				member(by_type, DTM_A_POOL_USED),
				member(by_type, DTM_A_POOL_GUARANTEED),
				member(by_type, DTM_A_POOL_CHANNELS),
				member(by_type, DTM_A_POOL_WAITING),
			};
		}
	}
}

/* The caller has just dumped the channels; time has moved by microseconds since. */
static void check_pool(const struct channel *channels, unsigned int n)
{
	struct pool sum = add_up(channels, n), pool = dump_pool();

	if (!pool.exists) {
		if (sum.channels)
			fail("%lu channels are in no pool", sum.channels);
		return;
	}
	if (pool.used > pool.size || pool.guaranteed > pool.size)
		fail("a pool of %lu slots has %lu in use, %lu guaranteed", pool.size, pool.used,
		     pool.guaranteed);
	if (pool.guaranteed != sum.guaranteed || pool.channels != sum.channels)
		fail("%lu channels are guaranteed %lu slots, the pool says %lu, %lu",
		     sum.channels, sum.guaranteed, pool.channels, pool.guaranteed);
	if (pool.waiting > pool.channels || (pool.waiting && pool.used < pool.size))
		fail("%lu channels wait for %lu free slots", pool.waiting,
		     pool.size - pool.used);
}

static void parse_channel(struct channel *ch, const struct nlmsghdr *h)
{
	const struct nlattr *tca[TCA_MAX + 1] = {}, *stats[TCA_STATS_MAX + 1] = {};
	const uint8_t *at = (const uint8_t *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct tcmsg));
	struct gnet_stats_queue queue;
	struct gnet_stats_basic basic;

	memset(ch, 0, sizeof(*ch));
	memcpy(&ch->tc, NLMSG_DATA(h), sizeof(ch->tc));
	index_attributes(tca, TCA_MAX, at, (const uint8_t *)h + h->nlmsg_len - at);
	if (!tca[TCA_KIND] || strcmp((const char *)(tca[TCA_KIND] + 1), "dtm"))
		return;
	index_attributes(stats, TCA_STATS_MAX, tca[TCA_STATS2] + 1,
			 tca[TCA_STATS2]->nla_len - NLA_HDRLEN);
	memcpy(&ch->state, stats[TCA_STATS_APP] + 1, sizeof(ch->state));
	memcpy(&basic, stats[TCA_STATS_BASIC] + 1, sizeof(basic));
	memcpy(&queue, stats[TCA_STATS_QUEUE] + 1, sizeof(queue));
	ch->packets = (uint64_t)basic.packets + queue.qlen + queue.drops;
	ch->queued = queue.qlen;
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
		ssize_t left = receive(rtnl);
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

/* Options without padding, which only receivers may see, that of lists' entries included. */
static unsigned int without_padding(uint8_t *to, const struct nlattr *options, uint16_t pad)
{
	const uint8_t *at = (const uint8_t *)(options + 1);
	const uint8_t *end = (const uint8_t *)options + options->nla_len;
	uint8_t *start = to;

	for (; at + NLA_HDRLEN <= end; at += NLA_ALIGN(((const struct nlattr *)at)->nla_len)) {
		const struct nlattr *a = (const struct nlattr *)at;
		unsigned int bytes;

		if (a->nla_type & NLA_F_NESTED) {
			bytes = without_padding(to + NLA_HDRLEN, a, TCA_DTM_STEP_PAD);
			put(to, a->nla_type, NULL, 0, NLA_HDRLEN + bytes);
			to += NLA_HDRLEN + bytes;
		} else if (a->nla_type != pad || a->nla_len > NLA_HDRLEN) {
			to = put(to, a->nla_type, a + 1, a->nla_len - NLA_HDRLEN, a->nla_len);
		}
	}
	return to - start;
}

/* The answer to a request; its sentence is counted. */
static struct answer genl_answer(void)
{
	for (;;) {
		ssize_t left = receive(genl);
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;

		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlmsgerr *error = NLMSG_DATA(h);
			const char *text;

			if (h->nlmsg_type == NLMSG_DONE)
				return (struct answer){ 0 };
			if (h->nlmsg_type != NLMSG_ERROR)
				continue;
			text = sentence(h);
			if (error->error && text && *text)
				count(-error->error, "said", text);
			return (struct answer){ -error->error, text && *text };
		}
	}
}

/* Send a command without attributes. */
static struct answer command(uint8_t number)
{
	const struct {
		struct nlmsghdr header;
		struct genlmsghdr genl;
	} request = {
		{ sizeof(request), family, NLM_F_REQUEST | NLM_F_ACK, 0, 0 },
		{ .cmd = number, .version = 1 },
	};

	if (send(genl, &request, sizeof(request), 0) < 0)
		fail("send: %s", strerror(errno));
	return genl_answer();
}

/* Forget the events that have come; how many of a channel's were an operator's, or a start. */
static unsigned int take_events(const struct channel *ch, unsigned int *all)
{
	unsigned int operators = 0;

	*all = 0;
	/* Those that have happened, but were not sent yet, too. */
	if (command(DTM_CMD_SYNC).error)
		fail("the kernel does not synchronise");
	for (;;) {
		ssize_t left = recv(events, reply, sizeof(reply), MSG_DONTWAIT);
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;

		if (left < 0 && errno == EAGAIN)
			return operators;
		for (; left > 0 && NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlattr *by_type[DTM_A_MAX + 1] = {};
			bool is_its;
			uint8_t cause;

			index_attributes(by_type, DTM_A_MAX,
					 (const uint8_t *)NLMSG_DATA(h) + GENL_HDRLEN,
					 h->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
			cause = *(const uint8_t *)(by_type[DTM_A_CAUSE] + 1);
			++*all;
			seen++;
			is_its = ch && (int)member(by_type, DTM_A_IFINDEX) == ch->tc.tcm_ifindex &&
				 member(by_type, DTM_A_HANDLE) == ch->tc.tcm_handle;
			operators += is_its && (cause == TC_DTM_CAUSE_OPERATOR ||
						cause == TC_DTM_CAUSE_START);
		}
	}
}

static void same_channel(const struct channel *before, const struct channel *after)
{
	static uint8_t options[2][1 << 16];
	unsigned int bytes = without_padding(options[0], before->options, TCA_DTM_PAD);
	unsigned int events_since;

	if (without_padding(options[1], after->options, TCA_DTM_PAD) != bytes ||
	    memcmp(options[0], options[1], bytes))
		fail("%x took its own options and shows others", before->tc.tcm_handle);
	if (take_events(before, &events_since))
		fail("%x was changed by its own options", before->tc.tcm_handle);
	/* Meanwhile any channel may have decided something. */
	if (!events_since && (before->state.slots != after->state.slots ||
			      before->state.target != after->state.target ||
			      before->state.denied != after->state.denied))
		fail("%x had %u of %u slots, and has %u of %u after its own options",
		     before->tc.tcm_handle, before->state.slots, before->state.target,
		     after->state.slots, after->state.target);
}

/* What a channel shows, it takes; and then it is as before. */
static void give_back(void)
{
	static uint8_t message[1 << 17], copies[2][1 << 18];
	struct nlmsghdr *header = (struct nlmsghdr *)message;
	struct channel channels[MOST_CHANNELS], again[MOST_CHANNELS];
	struct answer answer;
	uint8_t *end = message + NLMSG_HDRLEN, *nest;
	const struct channel *ch;
	unsigned int i, m, n, events_before;

	/* Only then the dump: what has happened since is an event that is still to come. */
	take_events(NULL, &events_before);
	n = dump(channels, copies[0], sizeof(copies[0]));
	if (!n)
		return;
	ch = &channels[below(n)];
	memcpy(end, &ch->tc, sizeof(ch->tc));
	end = put(end + NLMSG_ALIGN(sizeof(ch->tc)), TCA_KIND, "dtm", 4, NLA_HDRLEN + 4);
	nest = end;
	end += NLA_HDRLEN;
	end += without_padding(end, ch->options, TCA_DTM_PAD);
	put(nest, TCA_OPTIONS | NLA_F_NESTED, NULL, 0, end - nest);
	*header = (struct nlmsghdr){ end - message, RTM_NEWQDISC, NLM_F_REQUEST | NLM_F_ACK, 0, 0 };
	if (send(rtnl, message, header->nlmsg_len, 0) < 0)
		fail("send: %s", strerror(errno));
	collect(0, 1, &answer, true);
	if (answer.error)
		fail("%x refused its own options: %s", ch->tc.tcm_handle, strerror(answer.error));
	m = dump(again, copies[1], sizeof(copies[1]));
	for (i = 0; i < m; i++)
		if (again[i].tc.tcm_handle == ch->tc.tcm_handle &&
		    again[i].tc.tcm_ifindex == ch->tc.tcm_ifindex) {
			same_channel(ch, &again[i]);
			given_back++;
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

static const int priorities[] = { 0, 2, 6 };

/* What becomes of a packet is the queue's affair, which may tell the socket that it is full. */
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
 * Packets that came to the channel that is the root of LONE; false if there is none, or if it is
 * not empty on a clock that goes on: the kernel reads its counters one after the other, and a
 * packet may leave meanwhile.
 */
static bool lone_packets(uint64_t *packets)
{
	static uint8_t copies[1 << 18];
	struct channel channels[MOST_CHANNELS];
	unsigned int n = dump(channels, copies, sizeof(copies)), i;

	for (i = 0; i < n; i++)
		if (channels[i].tc.tcm_ifindex == (int)lone) {
			*packets = channels[i].packets;
			return !(CLOCK_GOES_ON && channels[i].queued);
		}
	return false;
}

/* A packet enters a channel as one, and a buffer of many as many. */
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
		fail("%u packets of a buffer came to the channel as %lu", n, after - before);
	entered += n;
	cut_up += n > 1;
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

/* Generic netlink */

static void genl_request(void)
{
	struct answer answer;
	uint8_t *end = make_genl_request(batch, family);
	uint8_t command = ((struct genlmsghdr *)NLMSG_DATA(batch))->cmd;

	if (send(genl, batch, end - batch, 0) < 0)
		fail("send: %s", strerror(errno));
	answer = genl_answer();
	/* Generic netlink itself has no sentence for what is no command. */
	if (answer.error && !answer.said)
		count(answer.error, answer.error == EOPNOTSUPP ? "core" : "ours",
		      command > DTM_CMD_CHANNEL_GET ? "no command" : "a command");
	done++;
}

/* Make the pool that requests name, if it is not there. */
static void keep_pool(void)
{
	struct nlmsghdr *header = (struct nlmsghdr *)batch;
	struct genlmsghdr *command = NLMSG_DATA(header);
	uint8_t *end = batch + NLMSG_LENGTH(GENL_HDRLEN);
	uint32_t slots = POOL_SLOTS;
	struct answer answer;

	*command = (struct genlmsghdr){ .cmd = DTM_CMD_POOL_NEW, .version = 1 };
	end = put(end, DTM_A_POOL, pool_name, sizeof(pool_name), NLA_HDRLEN + sizeof(pool_name));
	end = put(end, DTM_A_POOL_SLOTS, &slots, 4, NLA_HDRLEN + 4);
	*header = (struct nlmsghdr){ end - batch, family, NLM_F_REQUEST | NLM_F_ACK, 0, 0 };
	if (send(genl, batch, end - batch, 0) < 0)
		fail("send: %s", strerror(errno));
	answer = genl_answer();
	if (answer.error && answer.error != EEXIST)
		fail("no pool: %s", strerror(answer.error));
}

static int open_genl(void)
{
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int on = 1, bytes = 8 << 20, fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);

	/* A socket without an address gets no multicasts. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		fail("generic netlink: %s", strerror(errno));
	return fd;
}

/* The family's number, and a socket that gets its events. */
static void open_family(void)
{
	const struct nlattr *by_type[CTRL_ATTR_MAX + 1] = {}, *groups[2] = {}, *group[3] = {};
	struct nlmsghdr *header = (struct nlmsghdr *)batch;
	struct genlmsghdr *command = NLMSG_DATA(header);
	uint8_t *end = batch + NLMSG_LENGTH(GENL_HDRLEN);
	uint32_t number;

	genl = open_genl();
	events = open_genl();
	*command = (struct genlmsghdr){ .cmd = CTRL_CMD_GETFAMILY, .version = 1 };
	end = put(end, CTRL_ATTR_FAMILY_NAME, DTM_GENL_NAME, sizeof(DTM_GENL_NAME),
		  NLA_HDRLEN + sizeof(DTM_GENL_NAME));
	*header = (struct nlmsghdr){ end - batch, GENL_ID_CTRL, NLM_F_REQUEST, 0, 0 };
	if (send(genl, batch, end - batch, 0) < 0)
		fail("send: %s", strerror(errno));
	receive(genl);
	header = (struct nlmsghdr *)reply;
	if (header->nlmsg_type != GENL_ID_CTRL)
		fail("the kernel has no dtm");
	index_attributes(by_type, CTRL_ATTR_MAX, (uint8_t *)NLMSG_DATA(header) + GENL_HDRLEN,
			 header->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
	memcpy(&family, by_type[CTRL_ATTR_FAMILY_ID] + 1, sizeof(family));
	index_attributes(groups, 1, by_type[CTRL_ATTR_MCAST_GROUPS] + 1,
			 by_type[CTRL_ATTR_MCAST_GROUPS]->nla_len - NLA_HDRLEN);
	index_attributes(group, 2, groups[1] + 1, groups[1]->nla_len - NLA_HDRLEN);
	number = member(group, CTRL_ATTR_MCAST_GRP_ID);
	if (setsockopt(events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &number, sizeof(number)))
		fail("events: %s", strerror(errno));
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
	pool_name[sizeof(pool_name) - 2] += state % 10;
	requests = strtoul(argv[2], NULL, 0);
	lone = if_nametoindex(argv[3]);
	parent = if_nametoindex(argv[4]);
	if (!lone || !parent)
		fail("no such device");
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = draw();
	open_rtnetlink();
	open_family();
	lone_traffic = udp_socket(argv[3], "10.9.0.2");
	parent_traffic = udp_socket(argv[4], "10.9.1.2");
	while (done < requests) {
		unsigned int n;

		n = BATCH / 2 + below(BATCH / 2);
		keep_pool();
		round_of_requests(n < requests - done ? n : requests - done);
		if (done < requests)
			genl_request();
		send_packets(lone_traffic);
		send_packets(parent_traffic);
		count_segments(lone_traffic);
		let_time_pass();
		n = dump(channels, copies, sizeof(copies));
		check_pool(channels, n);
		if (n && one_in(4))
			give_back();
	}
	if (!entered || !cut_up || !given_back || !seen)
		fail("%lu packets in channels, %lu buffers cut, %lu dumps given back, %lu events",
		     entered, cut_up, given_back, seen);
	printf("%lu\t0\tdone\tof which accepted %lu; intact %lu, of which accepted %lu; "
	       "%lu packets counted in, %lu buffers cut, %lu of a channel too slow; "
	       "%lu dumps given back\n", done, accepted, intact, intact_accepted, entered, cut_up,
	       given_up, given_back);
	for (outcome = outcomes; outcome < outcomes + n_outcomes; outcome++)
		printf("%lu\t%d\t%s\t%s\n", outcome->count, outcome->error, outcome->how,
		       outcome->text);
	return 0;
}
