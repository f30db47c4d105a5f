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
 * first it is the turn of end 0. There is no chance in it.
 *
 * What arrives at the very time at which a transmission starts waits for the medium by then:
 * whoever keeps the two queues sends a packet in thought only when the clock has passed its start.
 * So the order in which events of one time are met does not matter.
 *
 * Pure: no locks, no time source; shared by sch_medium, its KUnit tests and user space.
 */
#ifndef MEDIUM_H
#define MEDIUM_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/pkt_medium.h>
#include <linux/time64.h>
#include <linux/types.h>

/* Instead of an end. */
#define MEDIUM_NO_END (-1)

/**
 * struct medium_turns - the medium, and how far it is
 * @gap: ns before the first bit of a turn
 * @turn_packets: packets of a turn at most, from 1
 * @waiting: packets of each end that have not had the medium yet
 * @start_at: when the next transmission starts, if a packet waits, ns
 * @end_at: when the last transmission ends, ns
 * @end: which had the last turn
 * @sent: packets of that turn so far
 */
struct medium_turns {
	u64 gap;
	u32 turn_packets;
	u32 waiting[2];
	u64 start_at;
	u64 end_at;
	int end;
	u32 sent;
};

static inline void medium_begin(struct medium_turns *m, u64 gap, u32 turn_packets)
{
	*m = (struct medium_turns) { .gap = gap, .turn_packets = turn_packets, .end = 1,
				     .sent = turn_packets };
}

/* What a packet takes at a rate in bytes/s, ns: at least one. */
static inline u64 medium_bits(u32 bytes, u64 rate)
{
	return div64_u64(bytes * (u64)NSEC_PER_SEC + rate - 1, rate);
}

/* A packet comes to wait at an end; what started before now has been sent. */
static inline void medium_arrive(struct medium_turns *m, int end, u64 now)
{
	if (!m->waiting[0] && !m->waiting[1])
		m->start_at = max(m->end_at, now);
	m->waiting[end]++;
}

/* Whether a packet of an end would be one more of the last turn. */
static inline bool medium_goes_on(const struct medium_turns *m, int end)
{
	return end == m->end && m->start_at == m->end_at && m->sent < m->turn_packets;
}

/* Whose packet is the next. */
static inline int medium_next(const struct medium_turns *m)
{
	int other = !m->end;

	if (m->waiting[m->end] && (!m->waiting[other] || medium_goes_on(m, m->end)))
		return m->end;
	return m->waiting[other] ? other : MEDIUM_NO_END;
}

/* When a packet of the next end, which takes so long, would have been sent. */
static inline u64 medium_leaves(const struct medium_turns *m, int end, u64 bits)
{
	return m->start_at + (medium_goes_on(m, end) ? 0 : m->gap) + bits;
}

/* The same, and it is. */
static inline u64 medium_send(struct medium_turns *m, int end, u64 bits)
{
	u64 leaves_at = medium_leaves(m, end, bits);

	m->sent = medium_goes_on(m, end) ? m->sent + 1 : 1;
	m->end = end;
	m->waiting[end]--;
	m->start_at = leaves_at;
	m->end_at = leaves_at;
	return leaves_at;
}

/* All packets of an end are gone, also the one being sent; what started before now has been. */
static inline void medium_clear(struct medium_turns *m, int end, u64 now)
{
	m->waiting[end] = 0;
	if (m->end == end && m->end_at > now) {
		m->end_at = now;
		m->start_at = now;
	}
}

#endif /* MEDIUM_H */
