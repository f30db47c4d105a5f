// SPDX-License-Identifier: GPL-2.0-only
/*
 * What packets carry beside their bytes when they arrive at an interface: how many came, and how
 * many had a socket's hash, a mark, a priority, a socket or a time stamp. As parameters, to read.
 */

#include <linux/module.h>
#include <linux/netdevice.h>

static unsigned int packets, hashes, marks, priorities, sockets, stamps;
module_param(packets, uint, 0444);
module_param(hashes, uint, 0444);
module_param(marks, uint, 0444);
module_param(priorities, uint, 0444);
module_param(sockets, uint, 0444);
module_param(stamps, uint, 0444);

static int carried_arrives(struct sk_buff *skb, struct net_device *dev, struct packet_type *hook,
			   struct net_device *original)
{
	if (!(dev->flags & IFF_LOOPBACK)) {
		packets++;
		hashes += skb->hash || skb->l4_hash || skb->sw_hash;
		marks += !!skb->mark;
		priorities += !!skb->priority;
		sockets += !!skb->sk;
		stamps += !!skb->tstamp;
	}
	kfree_skb(skb);
	return 0;
}

static struct packet_type carried_hook __read_mostly = {
	.type = htons(ETH_P_ALL),
	.func = carried_arrives,
	.ignore_outgoing = true,
};

static int __init carried_init(void)
{
	dev_add_pack(&carried_hook);
	return 0;
}

static void __exit carried_exit(void)
{
	dev_remove_pack(&carried_hook);
}

module_init(carried_init);
module_exit(carried_exit);
MODULE_DESCRIPTION("What packets carry beside their bytes");
MODULE_LICENSE("GPL");
