/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's answers to requests, and its dumps of qdiscs. */
#ifndef ANSWERS_H
#define ANSWERS_H

#include <errno.h>
#include <linux/gen_stats.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "requests.h"

#define MOST_OUTCOMES 512
#define MOST_SHOWN 16
#define REPLY_BYTES (1 << 20)

/* How requests ended, and how many of them. */
struct outcome {
	unsigned long count;
	int error;
	char how[8];
	char text[160];
};

/* A qdisc of the tested kind, as a dump shows it. */
struct shown {
	struct tcmsg tc;
	const struct nlattr *options;
	const struct nlattr *by_type[MOST_TYPES];
	const void *state;	/* of its own statistics */
	uint64_t packets;	/* that ever came: sent, queued or dropped */
	uint32_t queued;
};

static struct outcome outcomes[MOST_OUTCOMES];
static unsigned int n_outcomes;
static uint8_t reply[REPLY_BYTES];
static unsigned long done;
static int rtnl;

static void fail(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "qdisc_fuzz: after %lu requests: ", done);
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

/* Wait for the answers to `n` requests, numbered from `first` on; report wordless refusals. */
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

static uint64_t number_of(const struct nlattr *const *by_type, uint16_t type)
{
	const struct nlattr *a = by_type[type];
	uint64_t value = 0;

	if (a)
		memcpy(&value, a + 1, a->nla_len - NLA_HDRLEN);
	return value;
}

static void parse(struct shown *now, const struct nlmsghdr *h)
{
	const struct nlattr *tca[TCA_MAX + 1] = {}, *stats[TCA_STATS_MAX + 1] = {};
	const uint8_t *at = (const uint8_t *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct tcmsg));
	struct gnet_stats_queue queue;
	struct gnet_stats_basic basic;

	memset(now, 0, sizeof(*now));
	memcpy(&now->tc, NLMSG_DATA(h), sizeof(now->tc));
	index_attributes(tca, TCA_MAX, at, (const uint8_t *)h + h->nlmsg_len - at);
	if (!tca[TCA_KIND] || strcmp((const char *)(tca[TCA_KIND] + 1), tested->kind))
		return;
	index_attributes(stats, TCA_STATS_MAX, tca[TCA_STATS2] + 1,
			 tca[TCA_STATS2]->nla_len - NLA_HDRLEN);
	now->state = stats[TCA_STATS_APP] + 1;
	memcpy(&basic, stats[TCA_STATS_BASIC] + 1, sizeof(basic));
	memcpy(&queue, stats[TCA_STATS_QUEUE] + 1, sizeof(queue));
	now->packets = (uint64_t)basic.packets + queue.qlen + queue.drops;
	now->queued = queue.qlen;
	now->options = tca[TCA_OPTIONS];
	index_attributes(now->by_type, tested->last, now->options + 1,
			 now->options->nla_len - NLA_HDRLEN);
}

/* Copy every qdisc of the tested kind out of a dump. */
static unsigned int dump(struct shown *shown, uint8_t *copies, size_t copy_bytes)
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
			if (h->nlmsg_type == NLMSG_DONE) {
				if (tested->check)
					tested->check(shown, n);
				return n;
			}
			if (h->nlmsg_type != RTM_NEWQDISC)
				fail("message %u instead of a qdisc", h->nlmsg_type);
			if (n == MOST_SHOWN || h->nlmsg_len > copy_bytes)
				fail("more qdiscs than there can be");
			memcpy(copies, h, h->nlmsg_len);
			parse(&shown[n], (const struct nlmsghdr *)copies);
			if (!shown[n].options)
				continue;
			n++;
			copies += NLMSG_ALIGN(h->nlmsg_len);
			copy_bytes -= NLMSG_ALIGN(h->nlmsg_len);
		}
	}
}

static bool only_dumped(uint16_t type)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(tested->dumped); i++)
		if (type && type == tested->dumped[i])
			return true;
	return false;
}

/* Copy options and lists' entries without the padding, which only receivers may see. */
static unsigned int without_padding(uint8_t *to, const struct nlattr *options, uint16_t pad)
{
	const uint8_t *at = (const uint8_t *)(options + 1);
	const uint8_t *end = (const uint8_t *)options + options->nla_len;
	uint8_t *start = to;

	for (; at + NLA_HDRLEN <= end; at += NLA_ALIGN(((const struct nlattr *)at)->nla_len)) {
		const struct nlattr *a = (const struct nlattr *)at;
		unsigned int bytes;

		if (pad == tested->pad && only_dumped(a->nla_type))
			continue;
		if (a->nla_type & NLA_F_NESTED) {
			bytes = without_padding(to + NLA_HDRLEN, a, tested->entry_pad);
			put(to, a->nla_type, NULL, 0, NLA_HDRLEN + bytes);
			to += NLA_HDRLEN + bytes;
		} else if (a->nla_type != pad || a->nla_len > NLA_HDRLEN) {
			to = put(to, a->nla_type, a + 1, a->nla_len - NLA_HDRLEN, a->nla_len);
		}
	}
	return to - start;
}

#endif /* ANSWERS_H */
