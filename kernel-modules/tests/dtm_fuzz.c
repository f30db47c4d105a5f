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
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../pkt_dtm.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BATCH 32
#define LARGEST 60000		/* bytes of an attribute that is far too long */
#define MOST_ATTRIBUTES 64
#define MOST_OUTCOMES 512
#define MOST_CHANNELS 16
#define REPLY_BYTES (1 << 20)

/* An option as pkt_dtm.h describes it. */
struct option {
	uint16_t type;
	uint8_t size;
	int64_t min;
	int64_t max;
};

static const struct option options[] = {
	{ TCA_DTM_SLOTS, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_LIMIT, 4, 1, 1000000000 },
	{ TCA_DTM_LIMIT_BYTES, 4, 0, UINT32_MAX },
	{ TCA_DTM_OVERHEAD, 4, -64, 1024 },
	{ TCA_DTM_FRAMED, 1, 0, 1 },
	{ TCA_DTM_ALLOCATOR, 1, 0, DTM_ALLOCATOR_MAX },
	{ TCA_DTM_MIN_SLOTS, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_MAX_SLOTS, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_CHANGE, 8, 0, 3600000000000 },
	{ TCA_DTM_SIGNALLING, 8, 0, 60000000000 },
	{ TCA_DTM_SAMPLE, 8, 1000000, 60000000000 },
	{ TCA_DTM_SHIFT_UP, 1, 0, 16 },
	{ TCA_DTM_SHIFT_DOWN, 1, 0, 16 },
	{ TCA_DTM_MARGIN, 4, 0, 8192000 },
	{ TCA_DTM_CORRIDOR, 4, 0, 8192000 },
	{ TCA_DTM_ROUNDING, 1, 0, DTM_ROUND_MAX },
	{ TCA_DTM_COUNT, 1, 0, DTM_COUNT_MAX },
	{ TCA_DTM_HOLD_ON_LOSS, 8, 0, 60000000000 },
	{ TCA_DTM_ESTIMATE, 8, 0, 1LL << 40 },
	{ TCA_DTM_HIGH, 4, 1, UINT32_MAX },
	{ TCA_DTM_LOW, 4, 0, UINT32_MAX },
	{ TCA_DTM_RISE, 8, 0, 60000000000 },
	{ TCA_DTM_FALL, 8, 0, 60000000000 },
	{ TCA_DTM_STEP, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_POOL, 4, 1, DTM_MAX_SLOTS },
	{ TCA_DTM_OWNED, 4, 0, DTM_MAX_SLOTS },
};

struct attribute {
	uint16_t type;
	uint16_t claims;	/* nla_len: differs from the truth in a broken one */
	uint16_t bytes;
	const void *data;
};

struct request {
	struct nlmsghdr header;
	struct tcmsg tc;
	char kind[32];
	uint16_t kind_bytes;
	bool has_options;
	struct tc_sizespec stab;
	bool has_stab;
	unsigned int cut;	/* bytes missing at the end of the message */
	struct attribute attributes[MOST_ATTRIBUTES];
	unsigned int n_attributes;
	uint64_t values[MOST_ATTRIBUTES];
	struct nlattr inner[4];
	struct tc_dtm_level levels[DTM_MAX_LEVELS + 1];
	struct tc_dtm_step steps[DTM_MAX_STEPS + 1];
	uint32_t mutations;	/* which were made, as bits */
};

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
static uint8_t noise[LARGEST];
static uint8_t batch[4 << 20];
static uint8_t reply[REPLY_BYTES];
static uint64_t state;
static unsigned long done;
static unsigned int lone, parent;
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

/* Chance */

/* splitmix64: any seed will do. */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

static bool one_in(unsigned int n)
{
	return below(n) == 0;
}

/* Small numbers as likely as large ones. */
static uint64_t any_size(void)
{
	return draw() >> below(64);
}

static int64_t within(int64_t min, int64_t max)
{
	switch (below(8)) {
	case 0:
		return min;
	case 1:
		return max;
	default:
		return min + (int64_t)(any_size() % (uint64_t)(max - min + 1));
	}
}

/* Requests */

static void add(struct request *r, uint16_t type, const void *data, uint16_t bytes)
{
	if (r->n_attributes == MOST_ATTRIBUTES)
		return;
	r->attributes[r->n_attributes++] =
		(struct attribute){ type, NLA_HDRLEN + bytes, bytes, data };
}

static void add_value(struct request *r, const struct option *option, int64_t value)
{
	uint64_t *slot = &r->values[r->n_attributes];

	*slot = value;	/* little endian: the low bytes come first */
	add(r, option->type, slot, option->size);
}

static struct attribute *find(struct request *r, uint16_t type)
{
	unsigned int i;

	for (i = 0; i < r->n_attributes; i++)
		if (r->attributes[i].type == type)
			return &r->attributes[i];
	return NULL;
}

static uint32_t *value_of(struct request *r, uint16_t type)
{
	struct attribute *attribute = find(r, type);

	return attribute ? (uint32_t *)attribute->data : NULL;
}

static void order(uint32_t *low, uint32_t *high)
{
	if (low && high && *low > *high) {
		uint32_t swapped = *low;

		*low = *high;
		*high = swapped;
	}
}

static void add_levels(struct request *r)
{
	unsigned int n = 2 + below(DTM_MAX_LEVELS - 1), k;
	uint32_t slots = 1 + below(4), up = 100 + below(3000);

	for (k = 0; k < n; k++) {
		r->levels[k] = (struct tc_dtm_level){ slots, up, k ? up - 1 - below(99) : 0 };
		slots += 1 + below(200);
		up += below(3000);
	}
	/* Each must be left at less than what its predecessor is left for. */
	for (k = 1; k < n; k++)
		r->levels[k].down_bytes = below(r->levels[k - 1].up_bytes);
	add(r, TCA_DTM_LEVELS, r->levels, n * sizeof(r->levels[0]));
}

static void add_trace(struct request *r)
{
	unsigned int n = 1 + below(one_in(4) ? DTM_MAX_STEPS : 8), k;

	for (k = 0; k < n; k++)
		r->steps[k] = (struct tc_dtm_step){ 1 + any_size() % 10000000,
						    within(1, DTM_MAX_SLOTS) };
	add(r, TCA_DTM_TRACE, r->steps, n * sizeof(r->steps[0]));
}

/* The pool of PARENT's channels: mostly one number, so that they agree. */
static uint32_t pool_size(void)
{
	return one_in(10) ? within(1, DTM_MAX_SLOTS) : 100;
}

static void choose_options(struct request *r)
{
	unsigned int n = any_size() % 8, i;
	uint32_t *slots, *min, *max, *low, *high;
	bool pooled = r->tc.tcm_ifindex == (int)parent && !one_in(4);

	for (i = 0; i < n; i++) {
		const struct option *option = &options[below(ARRAY_SIZE(options))];

		if (find(r, option->type) || option->type == TCA_DTM_POOL ||
		    (option->type == TCA_DTM_OWNED && !pooled))
			continue;
		add_value(r, option, within(option->min, pooled && option->max == DTM_MAX_SLOTS ?
						60 : option->max));
	}
	if (pooled)
		add_value(r, &options[24], pool_size());
	slots = value_of(r, TCA_DTM_SLOTS);
	min = value_of(r, TCA_DTM_MIN_SLOTS);
	max = value_of(r, TCA_DTM_MAX_SLOTS);
	low = value_of(r, TCA_DTM_LOW);
	high = value_of(r, TCA_DTM_HIGH);
	order(min, max);
	order(min, slots);
	order(slots, max);
	order(low, high);
	if (one_in(8))
		add_levels(r);
	if (one_in(8))
		add_trace(r);
}

/* A request as tc would make it. */
static void make_request(struct request *r)
{
	static const uint16_t new_flags[] = {
		NLM_F_CREATE | NLM_F_EXCL, NLM_F_CREATE, NLM_F_REPLACE, 0, 0,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_REPLACE,
		NLM_F_CREATE | NLM_F_REPLACE, NLM_F_CREATE | NLM_F_REPLACE,
	};

	memset(r, 0, offsetof(struct request, levels));
	r->mutations = 0;
	r->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	r->tc.tcm_family = AF_UNSPEC;
	strcpy(r->kind, "dtm");
	r->kind_bytes = 4;
	if (one_in(2)) {
		r->tc.tcm_ifindex = lone;
		r->tc.tcm_parent = TC_H_ROOT;
		r->tc.tcm_handle = one_in(4) ? (0x10 + below(2)) << 16 : 0;
	} else {
		unsigned int band = 1 + below(3);

		r->tc.tcm_ifindex = parent;
		r->tc.tcm_parent = TC_H_MAKE(1 << 16, band);
		r->tc.tcm_handle = one_in(4) ? (0x20 + band) << 16 : 0;
	}
	switch (below(16)) {
	case 0:
		r->header.nlmsg_type = RTM_DELQDISC;
		break;
	case 1:
		r->header.nlmsg_type = RTM_GETQDISC;
		break;
	default:
		r->header.nlmsg_type = RTM_NEWQDISC;
		r->header.nlmsg_flags |= new_flags[below(ARRAY_SIZE(new_flags))];
		r->has_options = !one_in(16);
		if (r->has_options)
			choose_options(r);
	}
}

/* Mutations */

static struct attribute *any_attribute(struct request *r)
{
	if (!r->n_attributes) {
		r->has_options = true;
		add_value(r, &options[below(ARRAY_SIZE(options))], draw());
	}
	return &r->attributes[below(r->n_attributes)];
}

static void out_of_range(struct request *r)
{
	const struct option *option = &options[below(ARRAY_SIZE(options))];
	int64_t value = one_in(2) ? option->max + 1 + (int64_t)(any_size() >> 1)
				  : option->min - 1 - (int64_t)(any_size() >> 1);

	r->has_options = true;
	add_value(r, option, one_in(4) ? (int64_t)draw() : value);
}

static void wrong_length(struct request *r)
{
	struct attribute *a = any_attribute(r);

	a->data = noise + below(64);
	a->bytes = below(20);
	a->claims = NLA_HDRLEN + a->bytes;
}

static void wrong_claim(struct request *r)
{
	any_attribute(r)->claims = one_in(2) ? below(8) : draw();
}

static void wrong_flags(struct request *r)
{
	any_attribute(r)->type ^= one_in(2) ? NLA_F_NESTED : NLA_F_NET_BYTEORDER;
}

static void nested(struct request *r)
{
	struct attribute *a = any_attribute(r);

	r->inner[0] = (struct nlattr){ sizeof(r->inner), draw() };
	r->inner[1] = (struct nlattr){ below(16), draw() };
	a->data = r->inner;
	a->bytes = sizeof(r->inner);
	a->claims = NLA_HDRLEN + a->bytes;
	a->type |= NLA_F_NESTED;
}

static void twice(struct request *r)
{
	struct attribute *a = any_attribute(r);

	add(r, a->type, a->data, a->bytes);
}

static void unknown(struct request *r)
{
	r->has_options = true;
	add(r, TCA_DTM_MAX + 1 + below(100), noise, below(16));
}

static void reserved(struct request *r)
{
	r->has_options = true;
	add(r, one_in(2) ? TCA_DTM_UNSPEC : TCA_DTM_PAD, noise, below(9));
}

static void empty_array(struct request *r)
{
	r->has_options = true;
	add(r, one_in(2) ? TCA_DTM_LEVELS : TCA_DTM_TRACE, noise, 0);
}

static void huge_array(struct request *r)
{
	r->has_options = true;
	if (r->n_attributes < 4)
		add(r, one_in(2) ? TCA_DTM_LEVELS : TCA_DTM_TRACE, noise,
		    one_in(4) ? LARGEST - 4 * below(3000) : below(DTM_MAX_STEPS * 8 + 64));
}

static void random_array(struct request *r)
{
	r->has_options = true;
	if (one_in(2))
		add(r, TCA_DTM_LEVELS, noise + below(4096), 12 * below(DTM_MAX_LEVELS + 2));
	else
		add(r, TCA_DTM_TRACE, noise + below(4096), 8 * below(DTM_MAX_STEPS + 2));
}

static void contradiction(struct request *r)
{
	static const uint8_t pairs[][2] = {
		{ 6, 7 }, { 0, 7 }, { 6, 0 }, { 20, 19 }, { 0, 24 }, { 25, 24 }, { 6, 24 },
	};
	const uint8_t *pair = pairs[below(ARRAY_SIZE(pairs))];
	int64_t most = within(1, DTM_MAX_SLOTS - 1);

	r->has_options = true;
	if (one_in(8))
		r->n_attributes = 0;
	add_value(r, &options[pair[0]], most + 1);
	if (!one_in(8))
		add_value(r, &options[pair[1]], most);
}

/* Levels and steps that are in range, but do not go together. */
static void disorder(struct request *r)
{
	r->has_options = true;
	if (one_in(2)) {
		add_value(r, &options[5], DTM_HYSTERESIS);
		add_levels(r);
		if (one_in(2))
			r->levels[1].slots = r->levels[0].slots;
		else
			r->levels[1].down_bytes = r->levels[0].up_bytes;
	} else {
		add_value(r, &options[5], DTM_TRACE);
		add_trace(r);
		add_trace(r);
		r->steps[1].after_us = 0;
	}
}

static void noise_as_options(struct request *r)
{
	r->has_options = true;
	r->n_attributes = 0;
	add(r, draw(), noise + below(4096), below(300));
	add(r, draw(), noise + below(4096), below(300));
}

static void cut_short(struct request *r)
{
	r->cut = 1 + below(40);
}

static void wrong_kind(struct request *r)
{
	switch (below(4)) {
	case 0:
		r->kind_bytes = 0;
		break;
	case 1:
		r->kind_bytes = 3;	/* unterminated */
		break;
	case 2:
		memset(r->kind, 'x', sizeof(r->kind));
		r->kind_bytes = sizeof(r->kind);
		break;
	default:
		strcpy(r->kind, "dtn");
	}
}

static void wrong_place(struct request *r)
{
	switch (below(4)) {
	case 0:
		r->tc.tcm_ifindex = draw();
		break;
	case 1:
		r->tc.tcm_parent = draw();
		break;
	case 2:
		r->tc.tcm_parent = one_in(2) ? TC_H_INGRESS : 0;
		break;
	default:
		r->tc.tcm_handle = draw();
	}
}

/* A size table makes of packets' lengths whatever it likes. */
static void size_table(struct request *r)
{
	r->has_stab = true;
	r->stab = (struct tc_sizespec){
		.cell_log = below(12), .size_log = below(12), .cell_align = below(3) - 1,
		.overhead = one_in(2) ? below(100) : draw(), .mpu = any_size(),
	};
}

static const struct {
	const char *name;
	void (*make)(struct request *r);
} mutations[] = {
	{ "out of range", out_of_range },
	{ "wrong length", wrong_length },
	{ "wrong claim", wrong_claim },
	{ "wrong flags", wrong_flags },
	{ "nested", nested },
	{ "twice", twice },
	{ "unknown", unknown },
	{ "reserved", reserved },
	{ "empty array", empty_array },
	{ "huge array", huge_array },
	{ "random array", random_array },
	{ "contradiction", contradiction },
	{ "disorder", disorder },
	{ "noise", noise_as_options },
	{ "cut", cut_short },
	{ "kind", wrong_kind },
	{ "place", wrong_place },
	{ "size table", size_table },
};

static void mutate(struct request *r)
{
	static const uint8_t how_many[] = { 0, 0, 0, 1, 1, 1, 1, 2, 2, 3 };
	unsigned int n = how_many[below(ARRAY_SIZE(how_many))];

	while (n--) {
		unsigned int which = below(ARRAY_SIZE(mutations));

		mutations[which].make(r);
		r->mutations |= 1u << which;
	}
}

/* Wire format */

static uint8_t *put(uint8_t *end, uint16_t type, const void *data, uint16_t bytes,
		    uint16_t claims)
{
	struct nlattr header = { claims, type };

	memcpy(end, &header, sizeof(header));
	memset(end + NLA_HDRLEN, 0, NLA_ALIGN(bytes));
	memcpy(end + NLA_HDRLEN, data, bytes);
	return end + NLA_HDRLEN + NLA_ALIGN(bytes);
}

/* Returns: the end of the message, aligned for the next one. */
static uint8_t *serialise(uint8_t *start, struct request *r, uint32_t sequence)
{
	uint8_t *end = start + NLMSG_HDRLEN, *nest;
	unsigned int i, length;

	memcpy(end, &r->tc, sizeof(r->tc));
	end += NLMSG_ALIGN(sizeof(r->tc));
	if (r->kind_bytes)
		end = put(end, TCA_KIND, r->kind, r->kind_bytes, NLA_HDRLEN + r->kind_bytes);
	if (r->has_stab) {
		nest = end;
		end = put(nest + NLA_HDRLEN, TCA_STAB_BASE, &r->stab, sizeof(r->stab),
			  NLA_HDRLEN + sizeof(r->stab));
		put(nest, TCA_STAB, NULL, 0, end - nest);
	}
	if (r->has_options) {
		nest = end;
		end += NLA_HDRLEN;
		for (i = 0; i < r->n_attributes; i++) {
			const struct attribute *a = &r->attributes[i];

			if (end - nest + NLA_HDRLEN + NLA_ALIGN(a->bytes) > UINT16_MAX)
				break;
			end = put(end, a->type, a->data, a->bytes, a->claims);
		}
		put(nest, TCA_OPTIONS, NULL, 0, end - nest);
	}
	length = end - start;
	/* Less than a tcmsg's family is not a request at all, and never answered. */
	length -= r->cut < length - 20 ? r->cut : length - 20;
	r->header.nlmsg_len = length;
	r->header.nlmsg_seq = sequence;
	memcpy(start, &r->header, sizeof(r->header));
	return start + NLMSG_ALIGN(length);
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
	unsigned __int128 held = (unsigned __int128)now->slot_seconds * 1000000000 + now->slot_ns;
	uint64_t owned = u(ch, TCA_DTM_OWNED);

	if (now->slots < u(ch, TCA_DTM_MIN_SLOTS) || now->slots > u(ch, TCA_DTM_MAX_SLOTS))
		fail("%x holds %u slots, not %lu..%lu", ch->tc.tcm_handle, now->slots,
		     u(ch, TCA_DTM_MIN_SLOTS), u(ch, TCA_DTM_MAX_SLOTS));
	if (now->lower > now->upper)
		fail("%x has a corridor of %llu..%llu", ch->tc.tcm_handle, now->lower, now->upper);
	if (held < now->age_ns || held > (unsigned __int128)now->age_ns * DTM_MAX_SLOTS)
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
		fail("dump: %s", strerror(errno));
	for (;;) {
		ssize_t left = receive();
		const struct nlmsghdr *h = (const struct nlmsghdr *)reply;

		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return n;
			if (h->nlmsg_type != RTM_NEWQDISC)
				fail("a dump with message %u", h->nlmsg_type);
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

static const char *mutation_names(uint32_t made)
{
	static char names[160];
	unsigned int i;

	names[0] = '\0';
	for (i = 0; i < ARRAY_SIZE(mutations); i++)
		if (made & 1u << i) {
			strncat(names, mutations[i].name, sizeof(names) - strlen(names) - 1);
			strncat(names, ";", sizeof(names) - strlen(names) - 1);
		}
	return names;
}

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

		round_of_requests(requests - done < BATCH ? requests - done : BATCH / 2 + below(BATCH / 2));
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
