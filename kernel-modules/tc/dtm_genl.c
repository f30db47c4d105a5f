// SPDX-License-Identifier: GPL-2.0-only
/*
 * Raw generic netlink. The kernel numbers families as they come, so the number is asked for by
 * name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "dtm_genl.h"

void die(const char *what)
{
	fprintf(stderr, "dtm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const void *payload(const struct nlattr *attr)
{
	return (const char *)attr + NLA_HDRLEN;
}

static void parse_attributes(struct attributes *found, const void *data, int length)
{
	const struct nlattr *attr = data;

	memset(found, 0, sizeof(*found));
	while (length >= NLA_HDRLEN && attr->nla_len >= NLA_HDRLEN && attr->nla_len <= length) {
		unsigned int type = attr->nla_type & NLA_TYPE_MASK;
		int size = NLA_ALIGN(attr->nla_len);

		if (type < 64)
			found->at[type] = attr;
		attr = (const void *)((const char *)attr + size);
		length -= size;
	}
}

/* The attributes of a generic netlink message. */
static void parse_message(struct attributes *found, const struct nlmsghdr *nlh)
{
	parse_attributes(found, (const char *)NLMSG_DATA(nlh) + GENL_HDRLEN,
			 (int)nlh->nlmsg_len - (int)NLMSG_LENGTH(GENL_HDRLEN));
}

uint32_t number(const struct nlattr *attr)
{
	size_t size = attr ? attr->nla_len - NLA_HDRLEN : 0;
	uint32_t u32 = 0;
	uint16_t u16 = 0;

	switch (size) {
	case sizeof(u32):
		memcpy(&u32, payload(attr), size);
		return u32;
	case sizeof(u16):
		memcpy(&u16, payload(attr), size);
		return u16;
	default:
		return 0;
	}
}

const char *text(const struct nlattr *attr)
{
	return attr ? payload(attr) : "";
}

void genl_begin(struct genl_request *request, const struct genl *genl, uint8_t command,
		uint16_t flags)
{
	*request = (struct genl_request) {
		.header = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = genl->family,
			    .nlmsg_flags = NLM_F_REQUEST | flags },
		.genl = { .cmd = command, .version = DTM_GENL_VERSION },
	};
}

void genl_add(struct genl_request *request, uint16_t type, const void *data, size_t bytes)
{
	struct nlattr attr = { NLA_HDRLEN + bytes, type };
	char *end = (char *)request + request->header.nlmsg_len;

	memcpy(end, &attr, sizeof(attr));
	memcpy(end + NLA_HDRLEN, data, bytes);
	request->header.nlmsg_len += NLA_ALIGN(attr.nla_len);
}

void genl_send(const struct genl *genl, const struct genl_request *request)
{
	if (send(genl->fd, request, request->header.nlmsg_len, 0) < 0)
		die("generic netlink");
}

/* The sentence of an extended answer (extack), which has nothing of the request but its header. */
static const char *extack(const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *error = NLMSG_DATA(nlh);
	struct attributes found;

	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	parse_attributes(&found, error + 1, nlh->nlmsg_len - NLMSG_LENGTH(sizeof(*error)));
	return found.at[NLMSGERR_ATTR_MSG] ? text(found.at[NLMSGERR_ATTR_MSG]) : NULL;
}

int genl_receive(const struct genl *genl, genl_each *each, void *context, const char **sentence)
{
	static char message[MESSAGE_BYTES];
	bool interrupted = false;

	for (;;) {
		ssize_t size = recv(genl->fd, message, sizeof(message), 0);
		const struct nlmsghdr *nlh = (const void *)message;

		if (size < 0)
			die("generic netlink");
		for (; NLMSG_OK(nlh, (size_t)size); nlh = NLMSG_NEXT(nlh, size)) {
			struct attributes found;

			interrupted |= nlh->nlmsg_flags & NLM_F_DUMP_INTR;
			if (nlh->nlmsg_type == NLMSG_ERROR) {
				*sentence = extack(nlh);
				return -((const struct nlmsgerr *)NLMSG_DATA(nlh))->error;
			}
			if (nlh->nlmsg_type == NLMSG_DONE) {
				*sentence = "the list changed: some may be missing or twice";
				return interrupted ? EINTR : 0;
			}
			parse_message(&found, nlh);
			each(&found, context);
		}
	}
}

static void take_family(const struct attributes *family, void *context)
{
	struct genl *genl = context;

	genl->family = number(family->at[CTRL_ATTR_FAMILY_ID]);
}

void genl_open(struct genl *genl)
{
	const struct genl controller = { .family = GENL_ID_CTRL };
	struct genl_request request;
	const char *sentence;
	int on = 1;

	*genl = (struct genl) {
		.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC),
	};
	if (genl->fd < 0 ||
	    setsockopt(genl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) < 0 ||
	    setsockopt(genl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)) < 0)
		die("generic netlink");
	genl_begin(&request, &controller, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	genl_add(&request, CTRL_ATTR_FAMILY_NAME, DTM_GENL_NAME, sizeof(DTM_GENL_NAME));
	genl_send(genl, &request);
	if (genl_receive(genl, take_family, genl, &sentence)) {
		fprintf(stderr, "dtm: the kernel has no dtm: load sch_dtm first\n");
		exit(1);
	}
}
