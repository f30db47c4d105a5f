/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one place that knows kernel versions. The modules are written for mainline.
 */
#ifndef TWOWAY_COMPAT_H
#define TWOWAY_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#error "twoway's modules need Linux 6.12 or newer: tcp_congestion_ops.cong_control has another signature before 6.10"
#endif

/* skb_gso_segment() moved out of linux/netdevice.h in 6.5. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#endif /* TWOWAY_COMPAT_H */
