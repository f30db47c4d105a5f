/* SPDX-License-Identifier: GPL-2.0-only */
/* What must always be true of dtm's channels, pools and events. */
#ifndef DTM_CHECKS_H
#define DTM_CHECKS_H

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "answers.h"
#include "dtm_requests.h"

/* Slots of a pool: the sum of its channels', or those in its own dump. */
struct pool {
	bool exists;
	uint64_t size;
	uint64_t used;
	uint64_t guaranteed;
	uint64_t channels;
	uint64_t waiting;
};

static unsigned long seen;	/* events */
static char tracing[64];	/* the folder of their buffer */
static FILE *events;
static int genl;
static uint16_t family;

static const struct tc_dtm_xstats *state_of(const struct shown *ch)
{
	return ch->state;
}

static void check_channel(const struct shown *ch)
{
	const struct tc_dtm_xstats *now = state_of(ch);
	__uint128_t held = (__uint128_t)now->slot_seconds * 1000000000 + now->slot_ns;
	uint64_t owned = number_of(ch->by_type, TCA_DTM_OWNED);
	uint64_t least = number_of(ch->by_type, TCA_DTM_MIN_SLOTS);
	uint64_t most = number_of(ch->by_type, TCA_DTM_MAX_SLOTS);

	if (now->slots < least || now->slots > most)
		fail("%x holds %u slots, not %lu..%lu", ch->tc.tcm_handle, now->slots,
		     least, most);
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

/* Add up what the channels of the pool hold. */
static struct pool add_up(const struct shown *channels, unsigned int n)
{
	struct pool pool = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct shown *ch = &channels[i];
		uint64_t min = number_of(ch->by_type, TCA_DTM_MIN_SLOTS);
		uint64_t owned = number_of(ch->by_type, TCA_DTM_OWNED);

		if (!ch->by_type[TCA_DTM_POOL])
			continue;
		pool.used += state_of(ch)->slots;
		pool.guaranteed += owned > min ? owned : min;
		pool.channels++;
	}
	return pool;
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
				true, number_of(by_type, DTM_A_POOL_SLOTS),
				number_of(by_type, DTM_A_POOL_USED),
				number_of(by_type, DTM_A_POOL_GUARANTEED),
				number_of(by_type, DTM_A_POOL_CHANNELS),
				number_of(by_type, DTM_A_POOL_WAITING),
			};
		}
	}
}

/* Check a dump of the channels, made microseconds ago. */
static void check_dtm(const struct shown *channels, unsigned int n)
{
	struct pool sum = add_up(channels, n), pool = dump_pool();

	for (unsigned int i = 0; i < n; i++)
		check_channel(&channels[i]);
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

/* Receive the answer to a request, and count its sentence. */
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

static unsigned int own_netns(void)
{
	struct stat own;

	if (stat("/proc/self/ns/net", &own))
		fail("/proc/self/ns/net: %s", strerror(errno));
	return own.st_ino;
}

/* Forget all events so far; returns how many of a channel's were an operator's or a start. */
static unsigned int take_events(const struct shown *ch, unsigned int *all)
{
	static char *line;
	static size_t room;
	unsigned int operators = 0;

	*all = 0;
	while (getline(&line, &room, events) > 0) {
		const char *event = strstr(line, "time_ns=");
		unsigned int netns, ifindex, handle, cause;

		if (!event)
			continue;
		if (sscanf(event, "time_ns=%*u netns=%u ifindex=%u dev=%*s handle=%x cause=%u",
			   &netns, &ifindex, &handle, &cause) != 4)
			fail("an event is \"%s\"", event);
		if (netns != own_netns())
			continue; /* of a fuzzer beside this one */
		++*all;
		seen++;
		operators += ch && handle == ch->tc.tcm_handle &&
			     (int)ifindex == ch->tc.tcm_ifindex &&
			     (cause == TC_DTM_CAUSE_OPERATOR || cause == TC_DTM_CAUSE_START);
	}
	clearerr(events);
	return operators;
}

static void forget_events(void)
{
	unsigned int all;

	take_events(NULL, &all);
}

static void saw_events(void)
{
	fclose(events);
	if (rmdir(tracing))
		fail("%s: %s", tracing, strerror(errno));
	if (!seen)
		fail("no events");
}

static void same_channel(const struct shown *before, const struct shown *after)
{
	const struct tc_dtm_xstats *was = state_of(before), *now = state_of(after);
	unsigned int events_since;

	if (take_events(before, &events_since))
		fail("%x was changed by its own options", before->tc.tcm_handle);
	/* Any channel may have decided something since then. */
	if (!events_since && (was->slots != now->slots ||
			      was->target != now->target ||
			      was->denied != now->denied))
		fail("%x had %u of %u slots, and has %u of %u after its own options",
		     before->tc.tcm_handle, was->slots, was->target,
		     now->slots, now->target);
}

/* Generic netlink */

static void genl_request(void)
{
	static uint8_t batch[1 << 16];
	struct answer answer;
	uint8_t *end = make_genl_request(batch, family);
	uint8_t command = ((struct genlmsghdr *)NLMSG_DATA(batch))->cmd;

	if (send(genl, batch, end - batch, 0) < 0)
		fail("send: %s", strerror(errno));
	answer = genl_answer();
	/* Generic netlink itself refuses an unknown command without a sentence. */
	if (answer.error && !answer.said)
		count(answer.error, answer.error == EOPNOTSUPP ? "core" : "ours",
		      command > DTM_CMD_POOL_GET ? "no command" : "a command");
	done++;
}

/* Make the pool that requests name, unless it exists. */
static void keep_pool(void)
{
	static uint8_t batch[1 << 10];
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

/* Trace the events of all channels into a separate buffer. */
static void open_events(void)
{
	char path[128];
	int fd;

	if (access("/sys/kernel/tracing/instances", F_OK) &&
	    mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL))
		fail("tracefs: %s", strerror(errno));
	snprintf(tracing, sizeof(tracing), "/sys/kernel/tracing/instances/fuzz-%d", getpid());
	if (mkdir(tracing, 0700))
		fail("%s: %s", tracing, strerror(errno));
	snprintf(path, sizeof(path), "%s/trace_pipe", tracing);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	events = fd < 0 ? NULL : fdopen(fd, "r");
	snprintf(path, sizeof(path), "%s/events/dtm/dtm_reallocation/enable", tracing);
	fd = open(path, O_WRONLY);
	if (!events || fd < 0 || write(fd, "1", 1) != 1)
		fail("%s: %s", path, strerror(errno));
	close(fd);
}

/* Ask for the family's number. */
static void open_genl(void)
{
	static uint8_t batch[1 << 10];
	const struct nlattr *by_type[CTRL_ATTR_MAX + 1] = {};
	struct nlmsghdr *header = (struct nlmsghdr *)batch;
	struct genlmsghdr *command = NLMSG_DATA(header);
	uint8_t *end = batch + NLMSG_LENGTH(GENL_HDRLEN);
	int on = 1;

	genl = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	if (genl < 0 || setsockopt(genl, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    setsockopt(genl, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)))
		fail("generic netlink: %s", strerror(errno));
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
}

static void open_dtm(void)
{
	pool_name[sizeof(pool_name) - 2] += state % 10;
	open_genl();
	open_events();
}

static const struct fuzzed dtm = {
	.kind		= "dtm",
	.options	= dtm_options,
	.n_options	= ARRAY_SIZE(dtm_options),
	.last		= TCA_DTM_MAX,
	.pad		= TCA_DTM_PAD,
	.entry_pad	= TCA_DTM_STEP_PAD,
	.dumped		= { TCA_DTM_N_STEPS },
	.overhead	= TCA_DTM_OVERHEAD,
	.choose		= choose_dtm_options,
	.mutations	= dtm_mutations,
	.n_mutations	= ARRAY_SIZE(dtm_mutations),
	.begin		= open_dtm,
	.prepare	= keep_pool,
	.besides	= genl_request,
	.check		= check_dtm,
	.settle		= forget_events,
	.compare	= same_channel,
	.end		= saw_events,
};

#endif /* DTM_CHECKS_H */
