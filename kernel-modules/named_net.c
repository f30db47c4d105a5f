// SPDX-License-Identifier: GPL-2.0-only
/* Network namespaces that requests name; see named_net.h. */

#include <linux/net_namespace.h>
#include <linux/netdevice.h>
#include <linux/user_namespace.h>
#include <net/netlink.h>

#include "named_net.h"

/*
 * Rtnetlink has checked that both the sender of the request and the opener of its socket are the
 * administrators of the device's namespace, and so of those of user namespaces below. A qdisc does
 * not know the opener, and cannot ask more of it.
 */
static bool named_net_is_below(const struct net *net, const struct net *own)
{
	const struct user_namespace *ns = net->user_ns;

	while (ns && ns != own->user_ns)
		ns = ns->parent;
	return ns;
}

struct net *named_net_get(struct Qdisc *sch, const struct nlattr *fd, const struct nlattr *nsid,
			  struct netlink_ext_ack *extack)
{
	struct net *own = dev_net(qdisc_dev(sch)), *net;

	if (fd)
		net = get_net_ns_by_fd(nla_get_u32(fd));
	else if (nsid)
		net = get_net_ns_by_id(own, nla_get_s32(nsid)) ?: ERR_PTR(-ENOENT);
	else
		return get_net(own);
	if (IS_ERR(net)) {
		NL_SET_ERR_MSG_ATTR(extack, fd ?: nsid, "there is no such network namespace");
		return net;
	}
	if (!named_net_is_below(net, own)) {
		put_net(net);
		NL_SET_ERR_MSG_ATTR(extack, fd ?: nsid, "that network namespace is not yours");
		return ERR_PTR(-EPERM);
	}
	return net;
}

int named_net_is(struct Qdisc *sch, const struct nlattr *fd, const struct nlattr *nsid,
		 const struct net *net, struct netlink_ext_ack *extack)
{
	struct net *named = fd || nsid ? named_net_get(sch, fd, nsid, extack) : NULL;

	if (IS_ERR(named))
		return PTR_ERR(named);
	if (named)
		put_net(named);
	return !named || named == net;
}

int named_net_dump(struct sk_buff *skb, struct Qdisc *sch, struct net *net, int nsid)
{
	struct net *own = dev_net(qdisc_dev(sch));
	int number = NETNSA_NSID_NOT_ASSIGNED;

	if (net == own)
		return 0;
	if (net)
		number = peernet2id_alloc(own, net, GFP_KERNEL);
	return nla_put_s32(skb, nsid, number);
}
