/* SPDX-License-Identifier: GPL-2.0-only */
/* What the pure headers of the modules use of the kernel, for a build in user space. */
#ifndef USERSPACE_LINUX_TYPES_H
#define USERSPACE_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8, __u8;
typedef uint32_t u32, __u32;
typedef uint64_t u64, __u64;
typedef int32_t s32, __s32;
typedef int64_t s64, __s64;

#define NSEC_PER_SEC	1000000000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_USEC	1000L

#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define clamp(x, lo, hi)	min(max(x, lo), hi)
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, x, lo, hi) clamp((type)(x), (type)(lo), (type)(hi))

#endif
