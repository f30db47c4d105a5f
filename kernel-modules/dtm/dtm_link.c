// SPDX-License-Identifier: GPL-2.0-only
/* Links and their names; see dtm_link.h. */

#include <linux/netdevice.h>
#include <linux/slab.h>

#include "compat/netlink.h"
#include "dtm_link.h"

LIST_HEAD(dtm_links);
/* Not 0, which stands for the beginning of a dump. */
u32 dtm_links_changes = 1;
/* Protects names, memberships and the memory of heaps. */
DEFINE_MUTEX(dtm_links_lock);

u64 dtm_link_lock(struct dtm_link *link)
	__acquires(&link->lock)
{
	u32 holds = 1;
	u64 now;

	spin_lock(&link->lock);
	while (!dtm_pool_advance(&link->pool, now = ktime_get_ns())) {
		if (holds++ == DTM_MOST_HOLDS)
			return link->pool.now;
		/* Give the lock to others who wait for it. */
		spin_unlock(&link->lock);
		spin_lock(&link->lock);
	}
	return now;
}

u64 dtm_link_lock_bh(struct dtm_link *link)
	__acquires(&link->lock)
{
	u64 now;

	local_bh_disable();
	while (now = dtm_link_lock(link), link->pool.behind) {
		spin_unlock_bh(&link->lock);
		local_bh_disable();
	}
	return now;
}

static struct dtm_link *dtm_link_find(const struct net *net, const char *name)
{
	struct dtm_link *link;

	list_for_each_entry(link, &dtm_links, list)
		if (link->net == net && !strcmp(link->name, name))
			return link;
	return NULL;
}

static struct dtm_link *dtm_link_alloc(u32 size)
{
	struct dtm_link *link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);

	if (!link)
		return NULL;
	INIT_LIST_HEAD(&link->list);
	spin_lock_init(&link->lock);
	dtm_pool_init(&link->pool, size);
	link->pool.heap = &link->only;
	link->room = 1;
	link->users = 1;
	return link;
}

void dtm_link_put(struct dtm_link *link)
{
	if (--link->users)
		return;
	if (link->pool.heap != &link->only)
		kvfree(link->pool.heap);
	kfree(link);
}

static void dtm_link_unname(struct dtm_link *link)
{
	dtm_links_changes++;
	list_del_init(&link->list);
	link->name[0] = '\0';
	WRITE_ONCE(link->net, NULL);
	dtm_link_put(link);
}

int dtm_link_add(struct net *net, const char *name, u32 size, struct netlink_ext_ack *extack)
{
	struct dtm_link *link;

	if (!dev_valid_name(name))
		return twoway_refuse(extack,
				     "a pool's name has 1..15 characters, no blank, / or :");
	if (dtm_link_find(net, name))
		return twoway_refuse_as(-EEXIST, extack, NULL, "there is a pool of this name");
	link = dtm_link_alloc(size);
	if (!link)
		return -ENOMEM;
	strscpy(link->name, name, sizeof(link->name));
	link->net = net;
	dtm_links_changes++;
	list_add_tail(&link->list, &dtm_links);
	return 0;
}

int dtm_link_remove(struct net *net, const char *name, struct netlink_ext_ack *extack)
{
	struct dtm_link *link = dtm_link_find(net, name);

	if (!link)
		return twoway_refuse_as(-ENOENT, extack, NULL, "there is no pool of this name");
	if (link->users > 1)
		return twoway_refuse_as(-EBUSY, extack, NULL, "the pool has channels");
	dtm_link_unname(link);
	return 0;
}

/* Make room for one more channel. */
static int dtm_link_reserve(struct dtm_link *link)
{
	struct dtm_channel **heap, **before = link->pool.heap;
	unsigned int room = 2 * link->room;

	if (link->pool.members < link->room)
		return 0;
	heap = kvmalloc_array(room, sizeof(*heap), GFP_KERNEL_ACCOUNT);
	if (!heap)
		return -ENOMEM;
	spin_lock_bh(&link->lock);
	memcpy(heap, before, link->room * sizeof(*heap));
	link->pool.heap = heap;
	spin_unlock_bh(&link->lock);
	link->room = room;
	if (before != &link->only)
		kvfree(before);
	return 0;
}

struct dtm_link *dtm_link_get(struct net *net, const char *name, struct netlink_ext_ack *extack)
{
	struct dtm_link *link;

	if (!*name) {
		link = dtm_link_alloc(TC_DTM_MAX_SLOTS);
		return link ?: ERR_PTR(-ENOMEM);
	}
	link = dtm_link_find(net, name);
	if (!link) {
		NL_SET_ERR_MSG(extack, "there is no pool of this name: `dtm pool add` makes one");
		return ERR_PTR(-ENOENT);
	}
	if (dtm_link_reserve(link))
		return ERR_PTR(-ENOMEM);
	link->users++;
	return link;
}

/* Its devices are gone, and their qdiscs with them. */
static void __net_exit dtm_links_forget(struct net *net)
{
	struct dtm_link *link, *next;

	mutex_lock(&dtm_links_lock);
	list_for_each_entry_safe(link, next, &dtm_links, list)
		if (link->net == net)
			dtm_link_unname(link);
	mutex_unlock(&dtm_links_lock);
}

static struct pernet_operations dtm_links_net_ops = {
	.exit	= dtm_links_forget,
};

int __init dtm_links_register(void)
{
	return register_pernet_subsys(&dtm_links_net_ops);
}

void dtm_links_unregister(void)
{
	unregister_pernet_subsys(&dtm_links_net_ops);
}
