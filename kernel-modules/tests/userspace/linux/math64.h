/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef USERSPACE_LINUX_MATH64_H
#define USERSPACE_LINUX_MATH64_H

#include <linux/types.h>

#define DIV_ROUND_UP_ULL(dividend, divisor) (((dividend) + (divisor) - 1) / (divisor))

static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

#define DIV64_U64_ROUND_UP(dividend, divisor) (((dividend) + (divisor) - 1) / (divisor))

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 divisor)
{
	return (unsigned __int128)a * b / divisor;
}

#endif
