// SPDX-License-Identifier: GPL-2.0-only
/* The generic netlink family "dtm": pools. */

#include <net/genetlink.h>
#include <net/sock.h>

#include "compat/netlink.h"
#include "dtm_sched.h"

static struct genl_family dtm_family;

static int dtm_pool_new(struct sk_buff *request, struct genl_info *info)
{
	int err;

	if (GENL_REQ_ATTR_CHECK(info, DTM_A_POOL) || GENL_REQ_ATTR_CHECK(info, DTM_A_POOL_SLOTS))
		return twoway_refuse(info->extack, "a new pool needs a name and slots");
	mutex_lock(&dtm_links_lock);
	err = dtm_link_add(genl_info_net(info), nla_data(info->attrs[DTM_A_POOL]),
			   nla_get_u32(info->attrs[DTM_A_POOL_SLOTS]), info->extack);
	mutex_unlock(&dtm_links_lock);
	return err;
}

static int dtm_pool_del(struct sk_buff *request, struct genl_info *info)
{
	int err;

	if (GENL_REQ_ATTR_CHECK(info, DTM_A_POOL))
		return twoway_refuse(info->extack, "which pool?");
	mutex_lock(&dtm_links_lock);
	err = dtm_link_remove(genl_info_net(info), nla_data(info->attrs[DTM_A_POOL]),
			      info->extack);
	mutex_unlock(&dtm_links_lock);
	return err;
}

static int dtm_put_pool(struct sk_buff *msg, struct netlink_callback *cb, struct dtm_link *link)
{
	void *header = genlmsg_put(msg, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				   &dtm_family, NLM_F_MULTI, DTM_CMD_POOL_GET);
	struct list_head *entry;
	struct dtm_pool pool;
	u32 waiting = 0;

	dtm_link_lock_bh(link);
	pool = link->pool;
	list_for_each(entry, &link->pool.waiting)
		waiting++;
	spin_unlock_bh(&link->lock);
	if (!header)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, header);
	if (nla_put_string(msg, DTM_A_POOL, link->name) ||
	    nla_put_u32(msg, DTM_A_POOL_SLOTS, pool.size) ||
	    nla_put_u32(msg, DTM_A_POOL_USED, pool.used) ||
	    nla_put_u32(msg, DTM_A_POOL_GUARANTEED, pool.guaranteed) ||
	    nla_put_u32(msg, DTM_A_POOL_CHANNELS, pool.members) ||
	    nla_put_u32(msg, DTM_A_POOL_WAITING, waiting)) {
		genlmsg_cancel(msg, header);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return 0;
}

static int dtm_dump_pools(struct sk_buff *msg, struct netlink_callback *cb)
{
	const struct net *net = sock_net(msg->sk);
	struct dtm_link *link;
	long place = 0;

	mutex_lock(&dtm_links_lock);
	cb->seq = dtm_links_changes;
	list_for_each_entry(link, &dtm_links, list) {
		if (link->net != net)
			continue;
		if (place >= cb->args[0] && dtm_put_pool(msg, cb, link))
			break;
		place++;
	}
	mutex_unlock(&dtm_links_lock);
	cb->args[0] = place;
	return msg->len;
}

static TWOWAY_RANGE dtm_size_range = { .min = 1, .max = TC_DTM_MAX_SLOTS };

static const struct nla_policy dtm_pool_policy[DTM_A_POOL_SLOTS + 1] = {
	[DTM_A_POOL]		= { .type = NLA_NUL_STRING, .len = TC_DTM_POOL_NAME - 1 },
	[DTM_A_POOL_SLOTS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &dtm_size_range),
};

static const struct genl_small_ops dtm_ops[] = {
	{ .cmd = DTM_CMD_POOL_NEW, .doit = dtm_pool_new, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = DTM_CMD_POOL_DEL, .doit = dtm_pool_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = DTM_CMD_POOL_GET, .dumpit = dtm_dump_pools },
};

static struct genl_family dtm_family __ro_after_init = {
	.name		= DTM_GENL_NAME,
	.version	= DTM_GENL_VERSION,
	.maxattr	= DTM_A_POOL_SLOTS,
	.policy		= dtm_pool_policy,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.small_ops	= dtm_ops,
	.n_small_ops	= ARRAY_SIZE(dtm_ops),
};

int __init dtm_netlink_register(void)
{
	return genl_register_family(&dtm_family);
}

void dtm_netlink_unregister(void)
{
	genl_unregister_family(&dtm_family);
}
