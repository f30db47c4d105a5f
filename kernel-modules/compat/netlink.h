/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel versions, for netlink policies. */
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

/* Refuse with a sentence that is no literal. NL_SET_ERR_MSG_FMT() came with 6.2. */
static inline void twoway_refuse(struct netlink_ext_ack *extack, const char *sentence)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	if (extack)
		extack->_msg = sentence;
#else
	NL_SET_ERR_MSG_FMT(extack, "%s", sentence);
#endif
}

#endif /* TWOWAY_COMPAT_NETLINK_H */
