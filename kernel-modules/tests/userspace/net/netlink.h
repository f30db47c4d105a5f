/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of the kernel's header that pure files need, for user space: refusals. */
#ifndef USERSPACE_NET_NETLINK_H
#define USERSPACE_NET_NETLINK_H

#include <errno.h>

struct netlink_ext_ack {
	const char *sentence;
};

#define NL_SET_ERR_MSG_ATTR(extack, attr, text) ((void)(attr), (extack)->sentence = (text))

#endif /* USERSPACE_NET_NETLINK_H */
