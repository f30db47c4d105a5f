/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A shaper: a list of packets whose departures are computed, and the queue before it. What all
 * queueing disciplines here have in common.
 *
 *	enqueue --> GSO cut up --> size --> limit --> serve() --> list --> leaves() --> dequeue
 *				     |			 ^
 *				     +--> child qdisc ---+  when the link takes a packet
 *
 * A qdisc supplies when a packet leaves. Its private data begin with a struct departures, and its
 * struct Qdisc_ops have the functions below. One meaning, whichever the qdisc:
 *
 * - The list is a drop-tail queue of at most sch->limit packets, the one being sent included.
 * - A child at class 1 takes the queue's place, as in tbf and netem: it chooses which packet comes
 *   next, and which is dropped. Its next packet enters the list when the one before has left; a
 *   delay, which carries many packets at once, takes each at once. The limit is the child's own.
 * - Each packet of a GSO buffer takes its own time. A stab does not size them, though it would size
 *   single packets (modules cannot call it): give their framing as overhead.
 * - A packet of more than DEPARTURES_LARGEST bytes, or without a departure, is dropped.
 * - A reset also frees the link: it spends no more time on the packets that were discarded.
 * - A qdisc that was never set up, as the kernel makes it by default, may be reset and destroyed.
 *
 * Compiled into each module (Kbuild): none has to be loaded before another.
 */
#ifndef DEPARTURES_H
#define DEPARTURES_H

#include <net/pkt_sched.h>

/* The largest packet on a link: the most that a stab can make of one in the newest kernels. */
#define DEPARTURES_LARGEST	1048576
#define DEPARTURES_NEVER	U64_MAX

/* What a link adds to a packet, bytes. */
#define DEPARTURES_OVERHEAD_POLICY	NLA_POLICY_RANGE(NLA_S32, -64, 1024)

/**
 * struct departures_ops - when packets leave
 * @begin: lock what others share, handle due events, return the time. NULL: nothing is shared
 * @end: unlock
 * @has_room: whether the list takes a packet of @bytes bytes; NULL: up to its limit
 * @serve: a packet, which came at a time, is going to be the last of the list: its departure;
 *	false: it is dropped. Those of a child count as if they had come when it got the first of
 *	those that have waited since
 * @is_pipe: the link takes packets while it carries others; NULL: it does not
 * @leaves: when the first packet leaves, as things stand; DEPARTURES_NEVER: not known, and the
 *	qdisc will be woken. @look_at may be set to an earlier time at which to look again. NULL: at
 *	the time that @serve stored
 * @arrived: a packet of @bytes bytes has been queued, or dropped on its arrival; NULL: nothing
 * @changed: packets have come, left or been dropped, and the backlog is another; NULL: nothing
 * @clear: all packets are gone
 * @dump: put its options into a nest
 *
 * All but @dump are called with softirqs off, under the qdisc's root lock; the others, but
 * @is_pipe, between begin and end.
 */
struct departures_ops {
	u64 (*begin)(struct Qdisc *sch);
	void (*end)(struct Qdisc *sch, u64 now);
	bool (*has_room)(struct Qdisc *sch, u32 bytes);
	bool (*serve)(struct Qdisc *sch, struct sk_buff *skb, u64 came);
	bool (*is_pipe)(struct Qdisc *sch);
	u64 (*leaves)(struct Qdisc *sch, const struct sk_buff *skb, u64 *look_at);
	void (*arrived)(struct Qdisc *sch, u32 bytes, bool queued, u64 now);
	void (*changed)(struct Qdisc *sch, u64 now);
	void (*clear)(struct Qdisc *sch, u64 now);
	int (*dump)(struct Qdisc *sch, struct sk_buff *skb);
};

/* The beginning of a qdisc's private data. */
struct departures {
	/* when packets leave; NULL until the qdisc has been set up */
	const struct departures_ops *ops;
	struct qdisc_watchdog watchdog;	/* for the first packet */
	struct Qdisc *child;	/* the queue before the list; NULL: the list is the queue */
	/* from when on the child has had packets for the link, ns; DEPARTURES_NEVER: it has none */
	u64 waits_since;
	s32 overhead;	/* of each packet, bytes; under the root lock */
};

/* What the list stores with a packet. */
struct departure {
	u64 at;		/* when it leaves, ns, or the qdisc's own mark for that */
	u32 bytes;	/* on the link */
};

static inline struct departure *departure(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct departure));
	return (struct departure *)qdisc_skb_cb(skb)->data;
}

/* The one class, and its leaf. */
extern const struct Qdisc_class_ops departures_class_ops;

/* Members of struct Qdisc_ops that are the same in each; init, destroy and change are its own. */
#define DEPARTURES_QDISC_OPS(_id, _data)		\
	.id		= _id,				\
	.cl_ops		= &departures_class_ops,	\
	.priv_size	= sizeof(_data),		\
	.enqueue	= departures_enqueue,		\
	.dequeue	= departures_dequeue,		\
	.peek		= qdisc_peek_dequeued,		\
	.reset		= departures_reset,		\
	.dump		= departures_dump,		\
	.owner		= THIS_MODULE

/* Call first in init. @limit: the most packets of the list. */
void departures_init(struct Qdisc *sch, u32 limit);
/* Call last in destroy, also after an init that failed. */
void departures_destroy(struct Qdisc *sch);
int departures_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *departures_dequeue(struct Qdisc *sch);
void departures_reset(struct Qdisc *sch);
/* The packets that wait or are being sent, and their bytes on the link. */
u32 departures_backlog(struct Qdisc *sch, u64 *bytes);
int departures_dump(struct Qdisc *sch, struct sk_buff *skb);

/* The number of entries of a list. */
u32 departures_count(const struct nlattr *list);
/* Limit and overhead from a request's attributes, if they are given, and into a dump. */
void departures_set(struct Qdisc *sch, const struct nlattr *limit, const struct nlattr *overhead);
int departures_put(struct sk_buff *skb, struct Qdisc *sch, int limit, int overhead);

#endif /* DEPARTURES_H */
