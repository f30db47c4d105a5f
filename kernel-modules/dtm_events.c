// SPDX-License-Identifier: GPL-2.0-only
/* Reallocations as generic netlink messages; dtm_events.h says why they take this way. */

#include <linux/module.h>
#include <net/genetlink.h>
#include <net/netns/generic.h>

#include "dtm_events.h"

struct dtm_net {
	u32 sequence;		/* of the next event to leave a ring; written by works only */
};

static unsigned int dtm_net_id __read_mostly;

static struct pernet_operations dtm_net_ops = {
	.id	= &dtm_net_id,
	.size	= sizeof(struct dtm_net),
};

/* Ordered: the works of all links run one after another, and so share the sequence numbers. */
static struct workqueue_struct *dtm_events_queue;

static int dtm_events_sync(struct sk_buff *request, struct genl_info *info);

static const struct genl_small_ops dtm_ops[] = {
	{ .cmd = DTM_CMD_SYNC, .doit = dtm_events_sync },
};

static const struct genl_multicast_group dtm_groups[] = {
	{ .name = DTM_GENL_GROUP },
};

static struct genl_family dtm_family __ro_after_init = {
	.name		= DTM_GENL_NAME,
	.version	= DTM_GENL_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.small_ops	= dtm_ops,
	.n_small_ops	= ARRAY_SIZE(dtm_ops),
	.mcgrps		= dtm_groups,
	.n_mcgrps	= ARRAY_SIZE(dtm_groups),
};

/* The ring */

void dtm_events_record(struct dtm_events *events, const struct dtm_event *event)
{
	if (!genl_has_listeners(&dtm_family, events->net, 0))
		return;
	spin_lock(&events->lock);
	events->ring[events->recorded++ % DTM_EVENTS] = *event;
	spin_unlock(&events->lock);
	/* If the work is running by now, it will run once more. */
	queue_work(dtm_events_queue, &events->work);
}

/* Take the oldest event out of the ring; false if there is none. `dropped`: how many before it. */
static bool dtm_events_take(struct dtm_events *events, struct dtm_event *event, u32 *dropped)
{
	u32 waiting;

	spin_lock_bh(&events->lock);
	waiting = events->recorded - events->taken;
	*dropped = waiting > DTM_EVENTS ? waiting - DTM_EVENTS : 0;
	events->taken += *dropped;
	if (waiting)
		*event = events->ring[events->taken++ % DTM_EVENTS];
	spin_unlock_bh(&events->lock);
	return waiting;
}

/* Messages */

static int dtm_put_event(struct sk_buff *msg, const struct dtm_events *events,
			 const struct dtm_event *event, u32 sequence)
{
	void *header = genlmsg_put(msg, 0, 0, &dtm_family, 0, DTM_CMD_REALLOCATION);

	if (!header ||
	    nla_put_u64_64bit(msg, DTM_A_TIME, event->time_ns, DTM_A_PAD) ||
	    nla_put_u32(msg, DTM_A_IFINDEX, events->ifindex) ||
	    nla_put_u32(msg, DTM_A_HANDLE, event->handle) ||
	    nla_put_u8(msg, DTM_A_CAUSE, event->cause) ||
	    nla_put_u32(msg, DTM_A_FROM, event->from) ||
	    nla_put_u32(msg, DTM_A_TO, event->to) ||
	    nla_put_u32(msg, DTM_A_WANTED, event->wanted) ||
	    nla_put_u64_64bit(msg, DTM_A_ESTIMATE, event->estimate, DTM_A_PAD) ||
	    nla_put_u32(msg, DTM_A_BACKLOG, event->backlog) ||
	    nla_put_u32(msg, DTM_A_SEQUENCE, sequence))
		return -EMSGSIZE;
	genlmsg_end(msg, header);
	return 0;
}

static void dtm_events_send(const struct dtm_events *events, const struct dtm_event *event,
			    u32 sequence)
{
	struct sk_buff *msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg || dtm_put_event(msg, events, event, sequence)) {
		nlmsg_free(msg);
		/* As if the listeners' sockets had no room: the next message may be far away. */
		genl_set_err(&dtm_family, events->net, 0, 0, -ENOBUFS);
		return;
	}
	genlmsg_multicast_netns(&dtm_family, events->net, msg, 0, 0, GFP_KERNEL);
}

static void dtm_events_work(struct work_struct *work)
{
	struct dtm_events *events = container_of(work, struct dtm_events, work);
	struct dtm_net *dtm_net = net_generic(events->net, dtm_net_id);
	struct dtm_event event;
	u32 dropped;
	int i;

	/*
	 * No more than were in the ring at the start: sending may itself cause events, by way of
	 * nlmon. They have queued the work once more, behind those of other links.
	 */
	for (i = 0; i < DTM_EVENTS && dtm_events_take(events, &event, &dropped); i++) {
		u32 sequence = dtm_net->sequence + dropped;

		dtm_events_send(events, &event, sequence);
		/* After sending: dtm_events_sync() says that all events below it are sent. */
		WRITE_ONCE(dtm_net->sequence, sequence + 1);
	}
}

/* Answer when all events so far have been sent, with the sequence number of the next one. */
static int dtm_events_sync(struct sk_buff *request, struct genl_info *info)
{
	const struct dtm_net *dtm_net = net_generic(genl_info_net(info), dtm_net_id);
	struct sk_buff *msg;
	void *header;

	flush_workqueue(dtm_events_queue);
	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	header = genlmsg_put_reply(msg, info, &dtm_family, 0, DTM_CMD_SYNC);
	if (!header || nla_put_u32(msg, DTM_A_SEQUENCE, READ_ONCE(dtm_net->sequence))) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

/* A link's and the module's life */

void dtm_events_init(struct dtm_events *events, struct net *net, u32 ifindex)
{
	events->net = net;
	events->ifindex = ifindex;
	INIT_WORK(&events->work, dtm_events_work);
	spin_lock_init(&events->lock);
	events->recorded = 0;
	events->taken = 0;
}

void dtm_events_flush(struct dtm_events *events)
{
	flush_work(&events->work);
}

int __init dtm_events_register(void)
{
	int err;

	dtm_events_queue = alloc_ordered_workqueue("dtm_events", 0);
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

void dtm_events_unregister(void)
{
	genl_unregister_family(&dtm_family);
	unregister_pernet_subsys(&dtm_net_ops);
	destroy_workqueue(dtm_events_queue);
}
