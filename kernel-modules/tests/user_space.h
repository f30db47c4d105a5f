/* SPDX-License-Identifier: GPL-2.0-only */
/* What files of our modules that neither lock nor read a clock use of the kernel's headers. */
#ifndef USER_SPACE_H
#define USER_SPACE_H

#include <errno.h>
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

/* linux/time64.h */

#define NSEC_PER_SEC	1000000000L
#define NSEC_PER_MSEC	1000000L

/* linux/minmax.h */

#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define clamp(x, lo, hi)	min(max(x, lo), hi)
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, x, lo, hi) clamp((type)(x), (type)(lo), (type)(hi))

/* linux/overflow.h */

#define check_mul_overflow(a, b, product)	__builtin_mul_overflow(a, b, product)

/* linux/math64.h */

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

/* linux/list.h */

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->next = list;
	entry->prev = list->prev;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

#define list_del(entry)	list_del_init(entry)

#define list_entry(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#define list_first_entry(list, type, member)	list_entry((list)->next, type, member)
#define list_for_each_entry(entry, list, member)					\
	for (entry = list_first_entry(list, typeof(*entry), member);			\
	     &entry->member != (list);							\
	     entry = list_first_entry(&entry->member, typeof(*entry), member))

/* net/netlink.h */

struct netlink_ext_ack {
	const char *sentence;
};

#define NL_SET_ERR_MSG_ATTR(extack, attr, text) ((void)(attr), (extack)->sentence = (text))

#endif /* USER_SPACE_H */
