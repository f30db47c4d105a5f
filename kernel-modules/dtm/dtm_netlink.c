// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family "dtm": pools, channels, and reallocations as they happen.
 *
 * A channel changes under its link's spinlock, mostly also under the root lock of its qdisc, and
 * often in a softirq. Netlink must not be called there: it allocates, it wakes readers, and it
 * hands a copy of each message to the nlmon devices of the namespace. One of those may have a dtm
 * channel of its own, so that sending would enter the qdisc again and wait for a lock that this
 * processor already holds. Instead
 *
 *	dtm_netlink_record()  copies an event into the ring of the device's network namespace, and
 *			      queues the namespace's work;
 *	the work	      takes events out of the ring, one by one, and multicasts each of
 *			      them in process context, with none of our locks held.
 *
 * An operator's request ends with dtm_netlink_flush(), so that many requests in a row cannot
 * overrun the ring. Events that packets or the clock cause can: a full ring drops its oldest event.
 * An event's sequence number is its place in the ring, counted from the first: a listener sees them
 * rise by one, and a gap is as many events as it has missed. The newest event is never dropped, so
 * each gap is followed by an event that shows it.
 */

#include <linux/module.h>
#include <net/genetlink.h>
#include <net/netns/generic.h>
#include <net/sock.h>

#include "compat/netlink.h"
#include "dtm_sched.h"
#include "named_net.h"

/*
 * Events in a ring, a power of two. All steps of a trace may happen under one hold of the link's
 * lock, if nobody looked at the channel meanwhile; twice as many fit.
 */
#define DTM_EVENTS	2048

static_assert(DTM_EVENTS >= 2 * TC_DTM_MAX_STEPS && !(DTM_EVENTS & (DTM_EVENTS - 1)));
static_assert(TC_DTM_MAX_SLOTS <= U16_MAX);

/* What is known about a reallocation. */
struct dtm_event {
	u64 time_ns;	/* CLOCK_MONOTONIC, of the change itself */
	u64 estimate;	/* bit/s */
	u64 backlog;	/* bytes on the link */
	u32 ifindex;	/* of the device */
	u32 handle;	/* of the qdisc */
	u16 from;	/* slots before */
	u16 to;		/* slots after */
	u16 wanted;	/* slots asked for */
	u8 cause;	/* enum tc_dtm_cause */
};

/* Channels and events of a network namespace. */
struct dtm_net {
	struct net *net;		/* the namespace */
	struct list_head channels;	/* under dtm_links_lock */
	struct work_struct work;	/* sends events; queued whenever one is recorded */
	/* protects the ring; taken inside links' locks, with BH off */
	spinlock_t lock;
	u32 recorded;			/* events so far; % DTM_EVENTS: place of the next */
	u32 taken;			/* events that have left the ring, sent or dropped */
	/* events below this number have been sent; written by the work */
	u32 sent;
	struct dtm_event *ring;		/* allocated for the first channel */
};

static unsigned int dtm_net_id __read_mostly;
static struct workqueue_struct *dtm_events_queue;
static struct genl_family dtm_family;

static struct dtm_net *dtm_net_of(const struct net *net)
{
	return net_generic(net, dtm_net_id);
}

/* The ring */

void dtm_netlink_record(const struct dtm_sched_data *q, u64 now, u32 from, u32 wanted,
			enum tc_dtm_cause cause)
{
	const struct net_device *dev = qdisc_dev(q->sch);
	struct dtm_net *dn = dtm_net_of(dev_net(dev));

	if (!genl_has_listeners(&dtm_family, dn->net, 0))
		return;
	spin_lock(&dn->lock);
	dn->ring[dn->recorded++ % DTM_EVENTS] = (struct dtm_event) {
		.time_ns	= now,
		.estimate	= q->channel.rate.estimate,
		.backlog	= q->channel.bytes,
		.ifindex	= dev->ifindex,
		.handle		= q->sch->handle,
		.from		= from,
		.to		= q->channel.slots,
		.wanted		= wanted,
		.cause		= cause,
	};
	spin_unlock(&dn->lock);
	/* If the work is running by now, it will run once more. */
	queue_work(dtm_events_queue, &dn->work);
}

/* Take the oldest event and its number out of the ring; false if there is none. */
static bool dtm_take_event(struct dtm_net *dn, struct dtm_event *event, u32 *sequence)
{
	u32 waiting;

	spin_lock_bh(&dn->lock);
	waiting = dn->recorded - dn->taken;
	if (waiting > DTM_EVENTS)
		dn->taken = dn->recorded - DTM_EVENTS;
	if (waiting) {
		*sequence = dn->taken++;
		*event = dn->ring[*sequence % DTM_EVENTS];
	}
	spin_unlock_bh(&dn->lock);
	return waiting;
}

static int dtm_put_event(struct sk_buff *msg, const struct dtm_event *event, u32 sequence)
{
	void *header = genlmsg_put(msg, 0, 0, &dtm_family, 0, DTM_CMD_REALLOCATION);
	u64 real_ns = ktime_to_ns(ktime_mono_to_real(ns_to_ktime(event->time_ns)));

	if (!header ||
	    nla_put_u64_64bit(msg, DTM_A_TIME, real_ns, DTM_A_PAD) ||
	    nla_put_u32(msg, DTM_A_IFINDEX, event->ifindex) ||
	    nla_put_u32(msg, DTM_A_HANDLE, event->handle) ||
	    nla_put_u8(msg, DTM_A_CAUSE, event->cause) ||
	    nla_put_u32(msg, DTM_A_FROM, event->from) ||
	    nla_put_u32(msg, DTM_A_TO, event->to) ||
	    nla_put_u32(msg, DTM_A_WANTED, event->wanted) ||
	    nla_put_u64_64bit(msg, DTM_A_ESTIMATE, event->estimate, DTM_A_PAD) ||
	    nla_put_u64_64bit(msg, DTM_A_BACKLOG, event->backlog, DTM_A_PAD) ||
	    nla_put_u32(msg, DTM_A_SEQUENCE, sequence) ||
	    nla_put_u64_64bit(msg, DTM_A_MONOTONIC, event->time_ns, DTM_A_PAD))
		return -EMSGSIZE;
	genlmsg_end(msg, header);
	return 0;
}

static void dtm_send_event(struct net *net, const struct dtm_event *event, u32 sequence)
{
	struct sk_buff *msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg || dtm_put_event(msg, event, sequence)) {
		nlmsg_free(msg);
		/* As if the listeners' sockets had no room: the next message may be far away. */
		genl_set_err(&dtm_family, net, 0, 0, -ENOBUFS);
		return;
	}
	genlmsg_multicast_netns(&dtm_family, net, msg, 0, 0, GFP_KERNEL);
}

static void dtm_send_events(struct work_struct *work)
{
	struct dtm_net *dn = container_of(work, struct dtm_net, work);
	struct dtm_event event;
	u32 sequence;
	int i;

	/*
	 * No more than were in the ring at the start: sending may itself cause events, by way of
	 * nlmon. They have queued the work once more, behind those of other namespaces.
	 */
	for (i = 0; i < DTM_EVENTS && dtm_take_event(dn, &event, &sequence); i++) {
		dtm_send_event(dn->net, &event, sequence);
		/* After sending: dtm_sync() says that all events below it are sent. */
		WRITE_ONCE(dn->sent, sequence + 1);
	}
}

void dtm_netlink_flush(struct net *net)
{
	flush_work(&dtm_net_of(net)->work);
}

/* Commands */

static struct sk_buff *dtm_reply(struct genl_info *info, u8 command, void **header)
{
	struct sk_buff *msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	*header = msg ? genlmsg_put_reply(msg, info, &dtm_family, 0, command) : NULL;
	return msg;
}

static int dtm_sync(struct sk_buff *request, struct genl_info *info)
{
	struct dtm_net *dn = dtm_net_of(genl_info_net(info));
	struct sk_buff *msg;
	void *header;

	flush_work(&dn->work);
	msg = dtm_reply(info, DTM_CMD_SYNC, &header);
	if (!header || nla_put_u32(msg, DTM_A_SEQUENCE, READ_ONCE(dn->sent))) {
		nlmsg_free(msg);
		return -ENOMEM;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

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

static void *dtm_put_header(struct sk_buff *msg, struct netlink_callback *cb, u8 command)
{
	void *header = genlmsg_put(msg, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				   &dtm_family, NLM_F_MULTI, command);

	if (header)
		genl_dump_check_consistent(cb, header);
	return header;
}

static int dtm_put_pool(struct sk_buff *msg, struct netlink_callback *cb, struct dtm_link *link)
{
	void *header = dtm_put_header(msg, cb, DTM_CMD_POOL_GET);
	struct list_head *entry;
	struct dtm_pool pool;
	u32 waiting = 0;

	dtm_link_lock_bh(link);
	pool = link->pool;
	list_for_each(entry, &link->pool.waiting)
		waiting++;
	spin_unlock_bh(&link->lock);
	if (!header ||
	    nla_put_string(msg, DTM_A_POOL, link->name) ||
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

static int dtm_put_channel(struct sk_buff *msg, struct netlink_callback *cb,
			   struct dtm_net *dn, struct dtm_sched_data *q)
{
	void *header = dtm_put_header(msg, cb, DTM_CMD_CHANNEL_GET);
	u32 slots, wanted, sequence;
	u64 estimate, backlog;

	dtm_link_lock_bh(q->link);
	slots = q->channel.slots;
	wanted = q->channel.target;
	estimate = q->channel.rate.estimate;
	backlog = q->channel.bytes;
	/* Under this lock no event of the channel is between its state and the ring. */
	spin_lock(&dn->lock);
	sequence = dn->recorded;
	spin_unlock(&dn->lock);
	spin_unlock_bh(&q->link->lock);
	if (!header ||
	    nla_put_u32(msg, DTM_A_IFINDEX, qdisc_dev(q->sch)->ifindex) ||
	    nla_put_u32(msg, DTM_A_HANDLE, q->sch->handle) ||
	    nla_put_string(msg, DTM_A_POOL, q->link->name) ||
	    (q->link->net && named_net_dump(msg, q->sch, q->link->net, DTM_A_POOL_NETNSID)) ||
	    nla_put_u32(msg, DTM_A_TO, slots) ||
	    nla_put_u32(msg, DTM_A_WANTED, wanted) ||
	    nla_put_u64_64bit(msg, DTM_A_ESTIMATE, estimate, DTM_A_PAD) ||
	    nla_put_u64_64bit(msg, DTM_A_BACKLOG, backlog, DTM_A_PAD) ||
	    nla_put_u32(msg, DTM_A_SEQUENCE, sequence)) {
		genlmsg_cancel(msg, header);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return 0;
}

static int dtm_dump_channels(struct sk_buff *msg, struct netlink_callback *cb)
{
	struct dtm_net *dn = dtm_net_of(sock_net(msg->sk));
	struct dtm_sched_data *q;
	long place = 0;

	mutex_lock(&dtm_links_lock);
	cb->seq = dtm_links_changes;
	list_for_each_entry(q, &dn->channels, list) {
		if (place >= cb->args[0] && dtm_put_channel(msg, cb, dn, q))
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
	{ .cmd = DTM_CMD_SYNC, .doit = dtm_sync },
	{ .cmd = DTM_CMD_POOL_NEW, .doit = dtm_pool_new, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = DTM_CMD_POOL_DEL, .doit = dtm_pool_del, .flags = GENL_UNS_ADMIN_PERM },
	{ .cmd = DTM_CMD_POOL_GET, .dumpit = dtm_dump_pools },
	{ .cmd = DTM_CMD_CHANNEL_GET, .dumpit = dtm_dump_channels },
};

static const struct genl_multicast_group dtm_groups[] = {
	{ .name = DTM_GENL_GROUP },
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
	.mcgrps		= dtm_groups,
	.n_mcgrps	= ARRAY_SIZE(dtm_groups),
};

/* Channels, namespaces and the module come and go */

int dtm_netlink_add(struct net *net, struct dtm_sched_data *q)
{
	struct dtm_net *dn = dtm_net_of(net);

	if (!dn->ring)
		dn->ring = kvmalloc_array(DTM_EVENTS, sizeof(*dn->ring), GFP_KERNEL_ACCOUNT);
	if (!dn->ring)
		return -ENOMEM;
	dtm_links_changes++;
	list_add_tail(&q->list, &dn->channels);
	return 0;
}

void dtm_netlink_remove(struct dtm_sched_data *q)
{
	dtm_links_changes++;
	list_del(&q->list);
}

static int __net_init dtm_net_init(struct net *net)
{
	struct dtm_net *dn = dtm_net_of(net);

	dn->net = net;
	INIT_LIST_HEAD(&dn->channels);
	INIT_WORK(&dn->work, dtm_send_events);
	spin_lock_init(&dn->lock);
	return 0;
}

/* Its devices are gone, and their qdiscs with them. */
static void __net_exit dtm_net_exit(struct net *net)
{
	struct dtm_net *dn = dtm_net_of(net);

	dtm_links_forget(net);
	cancel_work_sync(&dn->work);
	kvfree(dn->ring);
}

static struct pernet_operations dtm_net_ops = {
	.init	= dtm_net_init,
	.exit	= dtm_net_exit,
	.id	= &dtm_net_id,
	.size	= sizeof(struct dtm_net),
};

int __init dtm_netlink_register(void)
{
	int err;

	dtm_events_queue = alloc_workqueue("dtm_events", WQ_UNBOUND, 0);
	if (!dtm_events_queue)
		return -ENOMEM;
	err = register_pernet_subsys(&dtm_net_ops);
	if (err)
		goto free_queue;
	err = genl_register_family(&dtm_family);
	if (err)
		goto unregister_net;
	return 0;
unregister_net:
	unregister_pernet_subsys(&dtm_net_ops);
free_queue:
	destroy_workqueue(dtm_events_queue);
	return err;
}

void dtm_netlink_unregister(void)
{
	genl_unregister_family(&dtm_family);
	unregister_pernet_subsys(&dtm_net_ops);
	destroy_workqueue(dtm_events_queue);
}
