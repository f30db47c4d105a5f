/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every module here needs, whatever the kernel's version. Only the files of this folder name
 * kernel versions: compat.h for the qdiscs, tcp.h for the congestion controls. The modules are
 * written for 6.12.
 *
 * Built without a warning on Debian's 6.1, 6.12, 7.2 and 7.3 and on user-mode Linux 6.12
 * (tests/guest/test_module_builds.py at the top). A newer kernel is not refused: compiling the
 * modules shows whether they fit it.
 */
#ifndef TWOWAY_COMPAT_COMMON_H
#define TWOWAY_COMPAT_COMMON_H

#include <linux/module.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "twoway's modules need Linux 6.1 or newer, the oldest kernel that they are tested on"
#endif

/* The revision that the module was built from, for modinfo; Kbuild sets it. */
MODULE_INFO(revision, TWOWAY_REVISION);

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#endif /* TWOWAY_COMPAT_COMMON_H */
