// SPDX-License-Identifier: GPL-2.0-only
/*
 * q_timetable.so - what tc needs to know about the queueing discipline timetable
 *
 * tc loads $TC_LIB_DIR/q_timetable.so when it meets the kind "timetable". A value that would have
 * to be rounded is refused. A table longer than a message is added in parts, each by a `change`.
 */
#include <linux/pkt_timetable.h>
#include <stdlib.h>

#include "quantity.h"
#include "tc_exports.h"

/* What tc's buffer has room for, behind the headers. */
#define MESSAGE_BYTES (64 * 1024)

static const struct table {
	const char *name;
	const struct unit *units;
	int64_t divisor;		/* from the smallest unit to that of the kernel */
} tables[] = {
	[TC_TIMETABLE_RATE] = { "rates", rates, 8 },
	[TC_TIMETABLE_OPPORTUNITY] = { "opportunities", counts, 1 },
	[TC_TIMETABLE_DELAY] = { "delays", times, 1 },
};

static void explain(void)
{
	fprintf(stderr, "Usage: ... timetable { rates | opportunities | delays } AT:VALUE,...\n"
			"\t[ period TIME ] [ start TIME ] [ limit PACKETS ] [ overhead BYTES ]\n"
			"AT and delays are times (s, ms, us, ns), rates are bit, kbit, Mbit or Gbit,\n"
			"opportunities bytes; start is of CLOCK_REALTIME. A table starts at 0 and, with a\n"
			"period, again after it. The steps of a change are added if the first is not at 0.\n");
}

static bool refuse(const char *name, const char *wanted, const char *got)
{
	fprintf(stderr, "timetable: \"%s\" must be %s, got \"%.60s\"\n", name, wanted, got);
	return false;
}

static bool parse_steps(struct nlmsghdr *n, uint8_t kind, char *text)
{
	struct rtattr *list = addattr_nest(n, MESSAGE_BYTES, TCA_TIMETABLE_STEPS | NLA_F_NESTED);
	const struct table *table = &tables[kind];
	unsigned int count = 0;

	for (char *item; (item = strsep(&text, ","));) {
		char *value = item, *at = strsep(&value, ":");
		struct rtattr *entry;
		int64_t at_ns, number;

		if (count++ == TC_TIMETABLE_MESSAGE_STEPS)
			return refuse(table->name, "2000 steps at most, the rest in changes", at);
		if (!value || !read_quantity(at, times, &at_ns) || at_ns < 0 ||
		    !read_quantity(value, table->units, &number) || number < 0 ||
		    number % table->divisor)
			return refuse(table->name, "AT:VALUE,...", at);
		number /= table->divisor;
		entry = addattr_nest(n, MESSAGE_BYTES, TCA_TIMETABLE_ENTRY | NLA_F_NESTED);
		addattr_l(n, MESSAGE_BYTES, TCA_TIMETABLE_STEP_AT, &at_ns, sizeof(at_ns));
		addattr_l(n, MESSAGE_BYTES, TCA_TIMETABLE_STEP_VALUE, &number, sizeof(number));
		addattr_nest_end(n, entry);
	}
	addattr_nest_end(n, list);
	addattr_l(n, MESSAGE_BYTES, TCA_TIMETABLE_KIND, &kind, sizeof(kind));
	return true;
}

static bool parse_number(struct nlmsghdr *n, const char *name, const char *text)
{
	int64_t value;
	int32_t number;

	if (!strcmp(name, "period") || !strcmp(name, "start")) {
		if (!read_quantity(text, times, &value) || value < 0)
			return refuse(name, "a time", text);
		addattr_l(n, MESSAGE_BYTES,
			  *name == 'p' ? TCA_TIMETABLE_PERIOD : TCA_TIMETABLE_START, &value,
			  sizeof(value));
		return true;
	}
	if (strcmp(name, "limit") && strcmp(name, "overhead"))
		return refuse("timetable", "options of `tc qdisc add timetable help`", name);
	if (!read_quantity(text, counts, &value) || value < (*name == 'l' ? 1 : -64) ||
	    value > (*name == 'l' ? INT32_MAX : 1024))
		return refuse(name, *name == 'l' ? "a number of packets" : "-64..1024", text);
	number = value;
	addattr_l(n, MESSAGE_BYTES, *name == 'l' ? TCA_TIMETABLE_LIMIT : TCA_TIMETABLE_OVERHEAD,
		  &number, sizeof(number));
	return true;
}

static int timetable_parse_opt(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			       const char *dev)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS | NLA_F_NESTED);
	bool good = true;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc -= 2, argv += 2) {
		uint8_t kind = 0;

		if (!strcmp(argv[0], "help") || argc < 2) {
			explain();
			return -1;
		}
		while (kind <= TC_TIMETABLE_KIND_MAX && strcmp(argv[0], tables[kind].name))
			kind++;
		good &= kind <= TC_TIMETABLE_KIND_MAX ? parse_steps(n, kind, argv[1]) :
							parse_number(n, argv[0], argv[1]);
	}
	addattr_nest_end(n, nest);
	return good ? 0 : -1;
}

static uint64_t read_attribute(const struct rtattr *attr)
{
	uint64_t value = 0;

	if (attr && RTA_PAYLOAD(attr) <= sizeof(value))
		memcpy(&value, RTA_DATA(attr), RTA_PAYLOAD(attr));
	return value;
}

static int timetable_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *tb[TCA_TIMETABLE_MAX + 1] = { 0 }, *attr;
	uint64_t kind;
	int left;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	left = RTA_PAYLOAD(opt);
	for (attr = RTA_DATA(opt); RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if ((attr->rta_type & NLA_TYPE_MASK) <= TCA_TIMETABLE_MAX)
			tb[attr->rta_type & NLA_TYPE_MASK] = attr;
	kind = read_attribute(tb[TCA_TIMETABLE_KIND]);
	print_color_string(PRINT_ANY, COLOR_NONE, "table", "%s ",
			   kind <= TC_TIMETABLE_KIND_MAX ? tables[kind].name : "?");
	print_color_u64(PRINT_ANY, COLOR_NONE, "steps", "(%" PRIu64 " steps, ",
			read_attribute(tb[TCA_TIMETABLE_N_STEPS]));
	print_color_u64(PRINT_ANY, COLOR_NONE, "digest", "digest %" PRIx64 ") ",
			read_attribute(tb[TCA_TIMETABLE_DIGEST]));
	print_color_u64(PRINT_ANY, COLOR_NONE, "period_ns", "period %" PRIu64 "ns ",
			read_attribute(tb[TCA_TIMETABLE_PERIOD]));
	print_color_u64(PRINT_ANY, COLOR_NONE, "start_ns", "start %" PRIu64 "ns ",
			read_attribute(tb[TCA_TIMETABLE_START]));
	print_color_u64(PRINT_ANY, COLOR_NONE, "limit", "limit %" PRIu64 " ",
			read_attribute(tb[TCA_TIMETABLE_LIMIT]));
	print_color_s64(PRINT_ANY, COLOR_NONE, "overhead", "overhead %" PRId64 " ",
			(int32_t)read_attribute(tb[TCA_TIMETABLE_OVERHEAD]));
	return 0;
}

struct qdisc_util timetable_qdisc_util = {
	.id		= "timetable",
	.parse_qopt	= timetable_parse_opt,
	.print_qopt	= timetable_print_opt,
};
