/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* The queueing discipline "medium" as seen from user space: options of tc. */
#ifndef _UAPI_LINUX_PKT_MEDIUM_H
#define _UAPI_LINUX_PKT_MEDIUM_H

#include <linux/types.h>

/* The highest rate in bytes/s, and the longest gap in ns: their arithmetic has 64 bits. */
#define TC_MEDIUM_MAX_RATE	(1ULL << 40)
#define TC_MEDIUM_MAX_GAP	10000000000ULL

enum {
	TCA_MEDIUM_UNSPEC,
	TCA_MEDIUM_NUMBER,	/* u32: the medium's number in its network namespace */
	TCA_MEDIUM_GAP,		/* u64: ns that a turn holds the medium before its first bit */
	TCA_MEDIUM_TURN,	/* u32: packets of a turn at most */
	TCA_MEDIUM_RATE,	/* u64: of this end, bytes/s */
	TCA_MEDIUM_OVERHEAD,	/* s32: bytes that this end adds to a packet */
	TCA_MEDIUM_LIMIT,	/* u32: packets in this end's queue, the one being sent included */
	TCA_MEDIUM_PAD,
	/* The network namespace of the medium, if another than the device's */
	TCA_MEDIUM_NETNS_FD,	/* u32, never dumped: by an open file */
	TCA_MEDIUM_NETNSID,	/* s32: by its number in the device's; -1: it has ended */
	__TCA_MEDIUM_MAX
};

#define TCA_MEDIUM_MAX (__TCA_MEDIUM_MAX - 1)

#endif /* _UAPI_LINUX_PKT_MEDIUM_H */
