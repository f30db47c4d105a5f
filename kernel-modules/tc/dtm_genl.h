/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family "dtm", for the tool dtm: a socket, attributes, requests. */
#ifndef DTM_GENL_H
#define DTM_GENL_H

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/pkt_dtm.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MESSAGE_BYTES	(1 << 16)

/* Attributes by number; NULL: not there. */
struct attributes {
	const struct nlattr *at[64];
};

/**
 * struct genl - a socket
 * @fd: descriptor
 * @family: number of "dtm", which differs from boot to boot
 */
struct genl {
	int fd;
	uint16_t family;
};

/* A request without attributes; genl_add() appends them. */
struct genl_request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	char attributes[128];
};

/* Say what failed, and errno, on standard error; exit with status 1. */
void __attribute__((noreturn)) die(const char *what);

/* A number of 16 or 32 bits; 0 if there is none. */
uint32_t number(const struct nlattr *attr);
/* A text; empty if there is none. */
const char *text(const struct nlattr *attr);

/* Called for a message of an answer or a dump. */
typedef void genl_each(const struct attributes *found, void *context);

/* Exits with a sentence if sch_dtm is not loaded. */
void genl_open(struct genl *genl);
void genl_begin(struct genl_request *request, const struct genl *genl, uint8_t command,
		uint16_t flags);
void genl_add(struct genl_request *request, uint16_t type, const void *data, size_t bytes);
void genl_send(const struct genl *genl, const struct genl_request *request);
/*
 * Receive until the answer to a request is complete, or the dump has ended, and call `each` for
 * each message that is part of it. Returns 0, or an errno; then *sentence is the kernel's, or NULL.
 */
int genl_receive(const struct genl *genl, genl_each *each, void *context, const char **sentence);

/* dtm_events.c: `dtm events`; the exit status. */
int events_main(int argc, char **argv);

#endif /* DTM_GENL_H */
