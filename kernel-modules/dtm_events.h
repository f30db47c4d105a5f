/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way of a reallocation to user space: recorded where it happens, sent from a work item.
 *
 * A channel changes under its link's spinlock, mostly also under the root lock of its qdisc, and
 * often in a softirq. Netlink must not be called there: it allocates, it wakes readers, and it
 * hands a copy of each message to the nlmon devices of the namespace. One of those may have a dtm
 * channel of its own, so that sending would enter the qdisc again and wait for a lock that this
 * processor already holds. Instead
 *
 *	dtm_events_record()   copies an event into the link's ring, and queues the link's work;
 *	the work	      takes events out of the ring, one by one, and multicasts each of
 *			      them in process context, with none of our locks held.
 *
 * An operator's request ends with dtm_events_flush(), so that many requests in a row cannot overrun
 * the ring. Events that packets or the clock cause can: a full ring drops its oldest event.
 *
 * Events have sequence numbers, counted for each network namespace. They are given as events leave
 * the ring, to dropped ones as well, by works that run one after another: a listener sees them rise
 * by one, and a gap is as many events as it has missed. The newest event of a ring is never
 * dropped, so that each gap is followed by an event that shows it.
 *
 * Lifetimes: an event names its device and its qdisc by numbers. The ring points to the network
 * namespace, but holds no reference to it: a device loses its qdiscs before it leaves its
 * namespace, and each channel calls dtm_events_flush() after it has left its link for good.
 */
#ifndef DTM_EVENTS_H
#define DTM_EVENTS_H

#include <linux/build_bug.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "pkt_dtm.h"

/*
 * Events that a link's ring holds, a power of two. All steps of a trace (DTM_MAX_STEPS) may happen
 * under one hold of the link's lock, if nobody looked at the channel meanwhile; twice as many fit.
 */
#define DTM_EVENTS	512

struct dtm_event {
	u64 time_ns;		/* CLOCK_REALTIME, of the change itself */
	u64 estimate;		/* bit/s */
	u32 handle;		/* of the channel's qdisc */
	u32 backlog;		/* bytes on the link */
	u16 from;		/* slots before */
	u16 to;			/* slots after */
	u16 wanted;		/* slots asked for */
	u8 cause;		/* enum tc_dtm_cause */
};

static_assert(DTM_MAX_SLOTS <= U16_MAX);
static_assert(DTM_EVENTS >= 2 * DTM_MAX_STEPS && !(DTM_EVENTS & (DTM_EVENTS - 1)));

/* Events of one link, and so of one device. */
struct dtm_events {
	struct net *net;
	u32 ifindex;
	struct work_struct work;	/* queued whenever an event is recorded */
	spinlock_t lock;		/* all below; taken inside the link's lock, with BH off */
	u32 recorded;			/* events so far; % DTM_EVENTS: place of the next */
	u32 taken;			/* events that have left the ring, sent or dropped */
	struct dtm_event ring[DTM_EVENTS];
};

void dtm_events_init(struct dtm_events *events, struct net *net, u32 ifindex);

/* Note an event, if anybody listens. The caller has BH off, and may hold any lock. */
void dtm_events_record(struct dtm_events *events, const struct dtm_event *event);

/* Wait until all events recorded before this call have been sent. May sleep; RTNL may be held. */
void dtm_events_flush(struct dtm_events *events);

int dtm_events_register(void);
/* There must be no link left. */
void dtm_events_unregister(void);

#endif /* DTM_EVENTS_H */
