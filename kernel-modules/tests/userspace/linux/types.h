/* SPDX-License-Identifier: GPL-2.0-only */
/* The types and macros of the kernel that the modules' pure files use, for user space. */
#ifndef USERSPACE_LINUX_TYPES_H
#define USERSPACE_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16;
typedef uint32_t u32, __u32;
typedef uint64_t u64, __u64;
typedef int32_t s32, __s32;
typedef int64_t s64, __s64;

#define U64_MAX UINT64_MAX
#define S64_MAX INT64_MAX

#endif
