/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every module here needs of any kernel. The files of this folder are the one place that knows
 * kernel versions: compat.h for the qdisc, tcp.h for the congestion controls. The modules are
 * written for 6.12.
 *
 * Built without a warning on Debian's 6.1, 6.12, 7.2 and 7.3 and on user-mode Linux 6.12
 * (tests/guest/test_module_builds.py at the top). A newer kernel is not refused: its compiler knows
 * better than a number here.
 */
#ifndef TWOWAY_COMPAT_COMMON_H
#define TWOWAY_COMPAT_COMMON_H

#include <linux/module.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "twoway's modules need Linux 6.1 or newer, the oldest kernel that they are tested on"
#endif

/* What the module was built from, for modinfo: Kbuild knows. */
MODULE_INFO(revision, TWOWAY_REVISION);

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#endif /* TWOWAY_COMPAT_COMMON_H */
