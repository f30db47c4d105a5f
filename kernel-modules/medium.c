// SPDX-License-Identifier: GPL-2.0-only
/* The turns of a half-duplex medium; see medium.h. */

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "medium.h"

void medium_begin(struct medium_turns *m, u64 gap, u32 turn_packets)
{
	*m = (struct medium_turns) { .gap = gap, .turn_packets = turn_packets, .end = 1,
				     .sent = turn_packets };
}

u64 medium_bits(u32 bytes, u64 rate)
{
	return div64_u64(bytes * (u64)NSEC_PER_SEC + rate - 1, rate);
}

void medium_arrive(struct medium_turns *m, int end, u64 now)
{
	if (!m->waiting[0] && !m->waiting[1])
		m->start_at = max(m->end_at, now);
	m->waiting[end]++;
}

/* Whether a packet of an end would be one more of the last turn. */
static bool medium_goes_on(const struct medium_turns *m, int end)
{
	return end == m->end && m->start_at == m->end_at && m->sent < m->turn_packets;
}

int medium_next(const struct medium_turns *m)
{
	int other = !m->end;

	if (m->waiting[m->end] && (!m->waiting[other] || medium_goes_on(m, m->end)))
		return m->end;
	return m->waiting[other] ? other : MEDIUM_NO_END;
}

u64 medium_leaves(const struct medium_turns *m, int end, u64 bits)
{
	return m->start_at + (medium_goes_on(m, end) ? 0 : m->gap) + bits;
}

u64 medium_send(struct medium_turns *m, int end, u64 bits)
{
	u64 leaves_at = medium_leaves(m, end, bits);

	m->sent = medium_goes_on(m, end) ? m->sent + 1 : 1;
	m->end = end;
	m->waiting[end]--;
	m->start_at = leaves_at;
	m->end_at = leaves_at;
	return leaves_at;
}

void medium_clear(struct medium_turns *m, int end, u64 now)
{
	m->waiting[end] = 0;
	if (m->end == end && m->end_at > now) {
		m->end_at = now;
		m->start_at = now;
	}
}
