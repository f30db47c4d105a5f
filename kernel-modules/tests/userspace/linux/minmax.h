/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef USERSPACE_LINUX_MINMAX_H
#define USERSPACE_LINUX_MINMAX_H

#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define clamp(x, lo, hi)	min(max(x, lo), hi)
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, x, lo, hi) clamp((type)(x), (type)(lo), (type)(hi))

#endif
