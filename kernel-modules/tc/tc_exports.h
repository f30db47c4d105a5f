/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tc exports to its plugins, as far as ours need it: iproute2 installs no headers. Unchanged
 * from 5.10 on; a first argument became const in 6.10, which makes no difference to a caller. All
 * cases have been run with the tc of Debian 12, which is 6.1.
 */
#ifndef TC_EXPORTS_H
#define TC_EXPORTS_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_qopt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_copt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(struct qdisc_util *qu, struct rtattr *opt, uint32_t block, bool *p);
};

enum { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
enum { COLOR_NONE = 6 };

struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int length);
int print_color_string(int type, int color, const char *key, const char *format,
		       const char *value);
int print_color_s64(int type, int color, const char *key, const char *format, int64_t value);
int print_color_u64(int type, int color, const char *key, const char *format, uint64_t value);
int print_color_bool(int type, int color, const char *key, const char *format, bool value);
void open_json_array(int type, const char *key);
void close_json_array(int type, const char *delimiter);
void open_json_object(const char *key);
void close_json_object(void);
bool is_json_context(void);
int netns_get_fd(const char *name);
struct json_writer *get_json_writer(void);
void jsonw_name(struct json_writer *json, const char *name);
void __attribute__((format(printf, 2, 3)))
jsonw_printf(struct json_writer *json, const char *format, ...);

/* A network namespace by its name, or the path of a file; false if there is none. */
static inline bool add_netns(struct nlmsghdr *n, int maxlen, int attribute, const char *name)
{
	/* Stays open: the kernel reads it when the request is sent, after this returns. */
	static int fd = -1;

	if (fd >= 0)
		close(fd);
	fd = netns_get_fd(name);
	return fd >= 0 && !addattr_l(n, maxlen, attribute, &fd, sizeof(fd));
}

#endif /* TC_EXPORTS_H */
