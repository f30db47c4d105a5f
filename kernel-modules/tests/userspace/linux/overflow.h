/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef USERSPACE_LINUX_OVERFLOW_H
#define USERSPACE_LINUX_OVERFLOW_H

#define check_mul_overflow(a, b, product)	__builtin_mul_overflow(a, b, product)

#endif
