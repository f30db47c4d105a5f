/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef USERSPACE_LINUX_LIST_H
#define USERSPACE_LINUX_LIST_H

#include <linux/types.h>

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

#endif
