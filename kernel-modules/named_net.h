/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The network namespace whose pool or medium a qdisc joins: that of its device, or one that a
 * request names, by a file descriptor or by its number in the device's namespace, as of a link.
 */
#ifndef NAMED_NET_H
#define NAMED_NET_H

#include <net/net_namespace.h>
#include <net/sch_generic.h>

/*
 * The namespace, held until put_net(). It must be of the user namespace of the device's own, or of
 * one below.
 */
struct net *named_net_get(struct Qdisc *sch, const struct nlattr *fd, const struct nlattr *nsid,
			  struct netlink_ext_ack *extack);
/* 1 if a request names `net` or no namespace, 0 if it names another, or an error. */
int named_net_is(struct Qdisc *sch, const struct nlattr *fd, const struct nlattr *nsid,
		 const struct net *net, struct netlink_ext_ack *extack);
/* Dump its number, -1 if it has ended, unless it is the device's namespace. May sleep. */
int named_net_dump(struct sk_buff *skb, struct Qdisc *sch, struct net *net, int nsid);

#endif /* NAMED_NET_H */
