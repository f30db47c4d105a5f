// SPDX-License-Identifier: GPL-2.0-only
/*
 * q_medium.so - what tc needs to know about the queueing discipline medium
 *
 * tc loads $TC_LIB_DIR/q_medium.so when it meets the kind "medium". A value that would have to be
 * rounded is refused. What show prints is what add takes.
 */
#include <linux/pkt_medium.h>
#include <stdlib.h>

#include "quantity.h"
#include "tc_exports.h"

#define MESSAGE_BYTES 1024

static const struct option {
	const char *name, *wanted;
	int attribute;
	unsigned int bytes;		/* of the attribute */
	const struct unit *units;
	int64_t divisor;		/* from the smallest unit to the kernel's */
	int64_t least, most;		/* in the kernel's unit */
	const char *key;		/* in JSON */
} options[] = {
	{ "number", "0..4294967295", TCA_MEDIUM_NUMBER, 4, counts, 1, 0, UINT32_MAX, "number" },
	{ "gap", "0..10s", TCA_MEDIUM_GAP, 8, times, 1, 0, TC_MEDIUM_MAX_GAP, "gap_ns" },
	{ "turn", "a number of packets", TCA_MEDIUM_TURN, 4, counts, 1, 1, UINT32_MAX,
	  "turn_packets" },
	{ "rate", "a rate, a multiple of 8 bit/s", TCA_MEDIUM_RATE, 8, rates, 8, 1,
	  TC_MEDIUM_MAX_RATE, "rate" },
	{ "overhead", "-64..1024", TCA_MEDIUM_OVERHEAD, 4, counts, 1, -64, 1024, "overhead" },
	{ "limit", "a number of packets", TCA_MEDIUM_LIMIT, 4, counts, 1, 1, UINT32_MAX,
	  "limit" },
	{ "netnsid", "the number of a network namespace", TCA_MEDIUM_NETNSID, 4, counts, 1, -1,
	  INT32_MAX, "netnsid" },
};

#define N_OPTIONS (sizeof(options) / sizeof(*options))

static void explain(void)
{
	fprintf(stderr, "Usage: ... medium number NUMBER rate RATE [ gap TIME ] [ turn PACKETS ]\n"
			"\t[ overhead BYTES ] [ limit PACKETS ] [ netns NAME | netnsid N ]\n"
			"TIME is in s, ms, us or ns, RATE in bit, kbit, Mbit or Gbit. Two queues may be on\n"
			"a medium; the first says gap and turn, for both.\n");
}

static bool parse_option(struct nlmsghdr *n, const char *name, const char *text)
{
	const struct option *option = options;
	int64_t value;

	if (!strcmp(name, "netns")) {
		if (add_netns(n, MESSAGE_BYTES, TCA_MEDIUM_NETNS_FD, text))
			return true;
		fprintf(stderr, "medium: there is no network namespace \"%.60s\"\n", text);
		return false;
	}
	while (option < options + N_OPTIONS && strcmp(name, option->name))
		option++;
	if (option == options + N_OPTIONS) {
		fprintf(stderr, "medium: no option \"%.60s\"; `tc qdisc add medium help` has all\n",
			name);
		return false;
	}
	if (!read_quantity(text, option->units, &value) || value % option->divisor ||
	    value / option->divisor < option->least || value / option->divisor > option->most) {
		fprintf(stderr, "medium: \"%s\" must be %s, got \"%.60s\"\n", name, option->wanted,
			text);
		return false;
	}
	value /= option->divisor;
	if (option->bytes == sizeof(uint32_t)) {
		uint32_t number = value;

		addattr_l(n, MESSAGE_BYTES, option->attribute, &number, sizeof(number));
	} else {
		addattr_l(n, MESSAGE_BYTES, option->attribute, &value, sizeof(value));
	}
	return true;
}

static int medium_parse_opt(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			    const char *dev)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS | NLA_F_NESTED);
	bool good = true;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc -= 2, argv += 2) {
		if (!strcmp(argv[0], "help") || argc < 2) {
			explain();
			return -1;
		}
		good &= parse_option(n, argv[0], argv[1]);
	}
	addattr_nest_end(n, nest);
	return good ? 0 : -1;
}

static void print_option(const struct option *option, const struct rtattr *attr)
{
	uint64_t value = 0;
	char shown[64];

	if (RTA_PAYLOAD(attr) != option->bytes)
		return;
	if (option->bytes == sizeof(uint32_t)) {
		uint32_t number;

		memcpy(&number, RTA_DATA(attr), sizeof(number));
		value = option->least < 0 ? (uint64_t)(int32_t)number : number;
	} else {
		memcpy(&value, RTA_DATA(attr), sizeof(value));
	}
	snprintf(shown, sizeof(shown), "%s %s ", option->name,
		 show_quantity(option->units, value * option->divisor).s);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", shown);
	print_color_s64(PRINT_JSON, COLOR_NONE, option->key, NULL, value);
}

static int medium_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *attr;
	int left;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	for (unsigned int i = 0; i < N_OPTIONS; i++) {
		left = RTA_PAYLOAD(opt);
		for (attr = RTA_DATA(opt); RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
			if ((attr->rta_type & NLA_TYPE_MASK) == options[i].attribute)
				print_option(&options[i], attr);
	}
	return 0;
}

struct qdisc_util medium_qdisc_util = {
	.id		= "medium",
	.parse_qopt	= medium_parse_opt,
	.print_qopt	= medium_print_opt,
};
