/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Links: a pool of slots with its lock, named and shared, or one channel's own.
 *
 * A named pool is made and removed through generic netlink (dtm_netlink.c), and belongs to the
 * network namespace in which that was asked. Channels of that namespace join it by its name, others
 * by the namespace (named_net.h) and the name: the nodes of a DTM bus have a namespace each, and
 * the bus's slots in common. When its namespace ends a pool loses its name, and goes with its last
 * channel.
 *
 * Locking: names, memberships and the memory of heaps are protected by dtm_links_lock; the pool and
 * its channels by the link's lock, which is taken inside the root lock of any qdisc. The clock is
 * read under the link's lock, so that a pool's time never goes back.
 */
#ifndef DTM_LINK_H
#define DTM_LINK_H

#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>

#include "dtm_core.h"

/* A link. */
struct dtm_link {
	struct list_head list;		/* of all named pools */
	char name[TC_DTM_POOL_NAME];	/* empty for a channel's own */
	/* where it was made; NULL: a channel's own pool, or that namespace has ended */
	struct net *net;
	unsigned int users;		/* channels, and the name */
	unsigned int room;		/* places in the heap of @pool */
	spinlock_t lock;		/* protects @pool and its channels */
	struct dtm_pool pool;		/* slots and channels */
	struct dtm_channel *only;	/* the heap of a channel's own pool */
};

extern struct mutex dtm_links_lock;
extern struct list_head dtm_links;
/* Rises when a pool is made or removed, by which a dump notices that. */
extern u32 dtm_links_changes;

/* Holds of a link's lock in a row, while softirqs are off: 0.7 ms, or 2 ms with 8000 channels. */
#define DTM_MOST_HOLDS	16

/*
 * Lock a link and handle due events. Returns the time; if the pool is still behind, the time up to
 * which events have been handled. For packets' paths, where softirqs are off.
 */
u64 dtm_link_lock(struct dtm_link *link) __acquires(&link->lock);

/* The same where softirqs may be on, and run in between: on return the pool is not behind. */
u64 dtm_link_lock_bh(struct dtm_link *link) __acquires(&link->lock);

/* Under dtm_links_lock */

int dtm_link_add(struct net *net, const char *name, u32 size, struct netlink_ext_ack *extack);
int dtm_link_remove(struct net *net, const char *name, struct netlink_ext_ack *extack);
/* A new channel's link, with a free place for it: the named pool, or one of its own. */
struct dtm_link *dtm_link_get(struct net *net, const char *name, struct netlink_ext_ack *extack);
void dtm_link_put(struct dtm_link *link);

/* From here on a network namespace that ends takes its pools' names with it. */
int dtm_links_register(void);
void dtm_links_unregister(void);

#endif /* DTM_LINK_H */
