// SPDX-License-Identifier: GPL-2.0-only
/*
 * q_dualpi2.so - what tc before 6.17 needs to know about the kernel's queueing discipline dualpi2
 *
 * tc loads $TC_LIB_DIR/q_dualpi2.so when it meets the kind "dualpi2". This knows only its option
 * limit and its statistic ecn_mark; a newer tc knows all.
 */
#include <limits.h>
#include <string.h>

#include "quantity.h"
#include "tc_exports.h"

#define MESSAGE_BYTES 1024
/* As linux/pkt_sched.h has it since 6.17. */
#define TCA_DUALPI2_LIMIT 1
#define MARKS_AT 24 /* of struct tc_dualpi2_xstats: ecn_mark */

static int dualpi2_parse_opt(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			     const char *dev)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS | NLA_F_NESTED);
	int64_t packets;
	uint32_t limit;

	(void)qu;
	(void)dev;
	if (argc && (argc != 2 || strcmp(argv[0], "limit") ||
		     !read_quantity(argv[1], counts, &packets) || packets < 1 ||
		     packets > UINT32_MAX)) {
		fprintf(stderr, "Usage: ... dualpi2 [ limit PACKETS ]\n");
		return -1;
	}
	if (argc) {
		limit = packets;
		addattr_l(n, MESSAGE_BYTES, TCA_DUALPI2_LIMIT, &limit, sizeof(limit));
	}
	addattr_nest_end(n, nest);
	return 0;
}

static int dualpi2_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *attr;
	uint32_t limit;
	int left;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	left = RTA_PAYLOAD(opt);
	for (attr = RTA_DATA(opt); RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if ((attr->rta_type & NLA_TYPE_MASK) != TCA_DUALPI2_LIMIT ||
		    RTA_PAYLOAD(attr) != sizeof(limit))
			continue;
		memcpy(&limit, RTA_DATA(attr), sizeof(limit));
		print_color_u64(PRINT_ANY, COLOR_NONE, "limit", "limit %llup ", limit);
	}
	return 0;
}

static int dualpi2_print_xstats(struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	uint32_t marks;

	(void)qu;
	(void)f;
	if (!xstats || RTA_PAYLOAD(xstats) < MARKS_AT + sizeof(marks))
		return 0;
	memcpy(&marks, (const char *)RTA_DATA(xstats) + MARKS_AT, sizeof(marks));
	print_color_u64(PRINT_ANY, COLOR_NONE, "ecn_mark", " ecn_mark %llu", marks);
	return 0;
}

struct qdisc_util dualpi2_qdisc_util = {
	.id		= "dualpi2",
	.parse_qopt	= dualpi2_parse_opt,
	.print_qopt	= dualpi2_print_opt,
	.print_xstats	= dualpi2_print_xstats,
};
