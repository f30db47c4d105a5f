/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel versions, for netlink policies; and refusals. */
#ifndef TWOWAY_COMPAT_NETLINK_H
#define TWOWAY_COMPAT_NETLINK_H

#include <linux/version.h>
#include <net/netlink.h>

/* Before 6.7 a netlink policy's ranges are not constant. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define TWOWAY_RANGE	struct netlink_range_validation
#else
#define TWOWAY_RANGE	const struct netlink_range_validation
#endif

/* Refuse with a sentence, which is a literal: NL_SET_ERR_MSG_FMT() came with 6.2. */
#define twoway_refuse_as(errno, extack, attr, sentence) ({	\
	NL_SET_ERR_MSG_ATTR(extack, attr, sentence);		\
	errno;							\
})

#define twoway_refuse_attr(...) twoway_refuse_as(-EINVAL, __VA_ARGS__)
#define twoway_refuse(extack, sentence) twoway_refuse_attr(extack, NULL, sentence)

#endif /* TWOWAY_COMPAT_NETLINK_H */
