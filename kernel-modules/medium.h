/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who has a half-duplex medium that two ends share, and until when, in whole numbers.
 *
 * One packet is sent at a time. An end that has its turn holds the medium for the gap (access time,
 * preamble, space between frames) once, and then for the bits of each packet of the turn:
 *
 *	end of a packet = its start + (gap if it is the first of its turn) + ceil(bytes / rate)
 *
 * A turn goes on while the end has a packet waiting at the time at which the one before has been
 * sent, up to a number of packets. Then, and when a packet comes to an idle medium, a turn begins:
 * of the end that did not have the last turn if a packet waits there, else of the same again. At
 * first it is the turn of end 0. Nothing is random.
 *
 * A packet that arrives at the very time at which a transmission starts counts as waiting then: the
 * caller books a packet (medium_send) only when the clock has passed its start. So the order in
 * which it handles events of one time does not matter.
 *
 * Pure: no locks, no time source; shared by sch_medium and its test in user space.
 */
#ifndef MEDIUM_H
#define MEDIUM_H

#include <linux/pkt_medium.h>
#include <linux/types.h>

/* Instead of an end. */
#define MEDIUM_NO_END (-1)

/* The medium's turns so far. */
struct medium_turns {
	u64 gap;		/* ns before the first bit of a turn */
	u32 turn_packets;	/* packets of a turn at most, from 1 */
	u32 waiting[2];		/* packets of each end that have not had the medium yet */
	u64 start_at;		/* when the next transmission starts, if a packet waits, ns */
	u64 end_at;		/* when the last transmission ends, ns */
	int end;		/* which had the last turn */
	u32 sent;		/* packets of that turn so far */
};

void medium_begin(struct medium_turns *m, u64 gap, u32 turn_packets);
/* The time that a packet takes at a rate in bytes/s, ns: at least 1. */
u64 medium_bits(u32 bytes, u64 rate);
/* A packet starts to wait at an end; what started before now has been booked. */
void medium_arrive(struct medium_turns *m, int end, u64 now);
/* The end whose packet is the next. */
int medium_next(const struct medium_turns *m);
/* When the packet of the next end would have been sent, if it takes `bits` ns. */
u64 medium_leaves(const struct medium_turns *m, int end, u64 bits);
/* The same, and book the packet. */
u64 medium_send(struct medium_turns *m, int end, u64 bits);
/* All packets of an end are gone, the one being sent too; what started before now was booked. */
void medium_clear(struct medium_turns *m, int end, u64 now);

#endif /* MEDIUM_H */
