// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order of events is that at the sender of the data. Near it, that is the order at the tap.
 * Elsewhere an ACK waits in its direction's queue until data come that passed the tap no earlier
 * than the ACK reaches their sender, and time counts up to the last data.
 *
 *	packet  ---->  data of its own direction?      decide the time since the last data
 *	        ---->  ACK of the opposite direction?  pure, or riding on data or on a FIN
 *
 * Between two events the state says which time passes (enum ca_open); the next data say why.
 */
#include <stdbool.h>

#include "half.h"
#include "limits.h"

/* The loop from the tap to the sender and back takes up to this multiple of its shortest time. */
#define LATER 1.1
#define LATER_NS 1e6
#define SOONER 0.9
/* A sender reacts to an ACK within this share of the round trip, and these bounds. */
#define REACTS 0.02
#define REACTS_LEAST_NS 1e5
#define REACTS_MOST_NS 1e6
/* A sender that paces its window has gaps of up to this share of the round trip, at least this. */
#define PACED 0.1
#define PACED_NS 1e6
/* The flight of a window that grows reaches a new peak before this multiple of it was sent. */
#define STAGNANT 4
#define LAN_NS 1e6		/* of facts.py */
#define LONGEST_UNKNOWN 9216	/* longest_bytes without an announced MSS, of facts.py */
#define SEGMENT_LEAST 536	/* RFC 9293 */
#define PAUSE_NS 1000000000	/* of tally.py */
#define TIMEOUT_NS 200000000
#define UNRELEASED 3		/* a delayed ACK releases data for two segments, at once */
#define SHIFT_MAX 14		/* RFC 7323, 2.3 */
#define OPTIONS_BYTES 40	/* a full segment lacks at most these to the announced MSS */
#define DELAYED_NS 10000000	/* a receiver delays an ACK by this, or more */
#define BYTES_MAX ((int64_t)1 << 44)

/* What a function needs besides the packet. */
struct walk {
	const struct ca_block *block;
	const struct ca_facts *facts;
	struct ca_all_coming *coming;
	const struct ca_waited *waited;
	int64_t taken;
};

static double within(double least, double value, double most)
{
	return value > most ? most : value > least ? value : least;
}

/* The time from the tap to the sender and back; 0 if unknown. The tap is anywhere on a LAN. */
static double loop_ns(const struct ca_facts *facts, size_t direction)
{
	double ns = facts->round_trip_ns[direction];

	if (!(ns < LAN_NS))
		ns *= facts->tap_at[direction];
	return ns > 0 ? ns : 0;
}

/* The least time from the tap to the sender and back: none on a LAN. */
static double least_loop_ns(const struct ca_facts *facts, size_t direction)
{
	return facts->round_trip_ns[direction] < LAN_NS ? 0 : SOONER * loop_ns(facts, direction);
}

static bool is_near(const struct ca_facts *facts, size_t direction)
{
	return facts->tap_at[direction] <= NEAR;
}

/* Whether a direction is to be taken; one at an unknown place is not, unless that is on a LAN. */
static bool takes(const struct walk *walk, size_t direction)
{
	double tap_at = walk->facts->tap_at[direction];

	return tap_at == tap_at || walk->facts->round_trip_ns[direction] < LAN_NS;
}

/* The scale of windows; if it is unknown, the least with which they allowed what was sent. */
static int64_t shift_of(const struct ca_facts *facts, size_t direction, const struct ca_waits *kept)
{
	return most(most(facts->window_shift[direction], kept->shift), 0);
}

static int64_t told_edge(const struct ca_waits *kept, int64_t shift)
{
	return kept->told_acked + kept->told_window * ((int64_t)1 << shift);
}

static int64_t in_flight(const struct ca_waits *kept)
{
	return most(minus(kept->sent, kept->acked), 0);
}

/* Which time passes in this state. */
static enum ca_open passing(const struct ca_facts *facts, size_t direction,
			    const struct ca_waits *kept)
{
	if (kept->acked < kept->repaired)
		return OPEN_RECOVERY;
	if (kept->edge >= 0 && kept->edge == kept->acked)
		return OPEN_SHUT;
	if (kept->edge >= 0 &&
	    most(kept->sent, kept->acked) + facts->segment_bytes[direction] > kept->edge)
		return OPEN_FULL;
	return in_flight(kept) ? OPEN_WAIT : OPEN_IDLE;
}

/*
 * Counts the time up to an event, in which an ACK was held for a part; returns the time. A clock
 * that was set back costs the time up to this event and no other.
 */
static int64_t spend(const struct ca_facts *facts, size_t direction, struct ca_waits *kept,
		     int64_t time_ns, int64_t held_ns, struct ca_spent *spent)
{
	int64_t wait_ns = kept->last_ns >= 0 ? most(minus(time_ns, kept->last_ns), 0) : 0;
	enum ca_open open = passing(facts, direction, kept);

	/* Times of a file may be any: sums stay in range. */
	wait_ns = least(wait_ns, INT64_MAX - spent->whole_ns);
	held_ns = least(held_ns, wait_ns);
	spent->whole_ns += wait_ns;
	spent->open_ns[open] += wait_ns;
	if (open == OPEN_WAIT || open == OPEN_FULL) {
		spent->open_ns[open] -= held_ns;
		spent->open_ns[open + 1] += held_ns;
	}
	kept->last_ns = time_ns;
	return wait_ns;
}

/* The time for which a pure ACK was held on its path, less a tick of its time stamps. */
static int64_t held_on_path_ns(const struct ca_block *block, size_t row, size_t direction,
			       struct ca_waits *kept)
{
	int64_t tick_ns = block->facts.tick_whole_ns[direction], before = kept->stamp;
	int64_t gap_ns = block->tracked.gap_ns[row], sent_ns;
	uint32_t stamp = block->packets.ts_value[row];

	kept->stamp = block->packets.marks[row] & MARK_TIMESTAMPS ? (int64_t)stamp : -1;
	if (tick_ns <= 0 || before < 0 || kept->stamp < 0 || gap_ns < 0)
		return 0;
	sent_ns = (int32_t)(stamp - (uint32_t)before) * tick_ns;
	return sent_ns < 0 ? 0 : most(gap_ns - sent_ns - tick_ns, 0);
}

/* Lets an ACK reach the sender. */
static void hear(struct ca_waits *kept, int64_t acked, int64_t edge, int64_t time_ns)
{
	kept->ack_ns = time_ns;
	kept->unreleased += kept->unreleased >= 0 && acked > kept->acked;
	if (acked < kept->acked)
		return;			/* it was overtaken */
	kept->acked = acked;
	kept->edge = edge;
}

/* Puts an ACK into its direction's queue. */
static void expect(struct walk *walk, size_t direction, struct ca_waits *kept, struct ca_coming ack)
{
	int64_t at = walk->coming->free;

	ack.time_ns = plus(ack.time_ns, whole_ns(LATER * loop_ns(walk->facts, direction) + LATER_NS));
	ack.next = -1;
	walk->coming->free = walk->coming->rows[at].next;
	walk->coming->rows[at] = ack;
	if (kept->oldest < 0)
		kept->oldest = at;
	else
		walk->coming->rows[kept->newest].next = at;
	kept->newest = at;
	walk->taken++;
}

/* Lets the ACKs reach the sender that arrive there by a time. */
static void arrive(struct walk *walk, size_t direction, struct ca_waits *kept, int64_t time_ns,
		   struct ca_spent *spent)
{
	while (kept->oldest >= 0 && walk->coming->rows[kept->oldest].time_ns <= time_ns) {
		int64_t at = kept->oldest;
		struct ca_coming *ack = &walk->coming->rows[at];

		spend(walk->facts, direction, kept, ack->time_ns, 0, spent);
		hear(kept, ack->acked, ack->edge, ack->time_ns);
		kept->oldest = ack->next;
		ack->next = walk->coming->free;
		walk->coming->free = at;
		walk->taken--;
	}
}

/*
 * Whether an ACK tells the sender what the last one does. If it rides on data it is then not queued:
 * a half that only receives would queue an ACK for each packet of the other.
 */
static bool repeats(const struct walk *walk, const struct ca_waits *kept, int64_t acked, int64_t edge)
{
	const struct ca_coming *newest;

	if (kept->oldest < 0)
		return acked <= kept->acked && edge == kept->edge;
	newest = &walk->coming->rows[kept->newest];
	return acked <= newest->acked && edge == newest->edge;
}

/* Takes the acknowledgement of a packet, for the data of the other half. */
static void take_ack(struct walk *walk, size_t row, size_t direction, struct ca_waits *kept,
		     struct ca_spent *spent)
{
	const struct ca_block *block = walk->block;
	int64_t acked = least(block->tracked.ack_bytes[row], BYTES_MAX);
	int64_t shift = shift_of(walk->facts, direction, kept), window = block->packets.window[row];
	int64_t edge = acked + (window << shift);
	int64_t time_ns = block->packets.time_ns[row];
	bool pure = block_is_ack(block, row);

	if (window && edge >= told_edge(kept, shift)) {
		kept->told_acked = acked;
		kept->told_window = window;
	}
	if (block_is_data(block, row) && acked >= kept->sent)
		kept->heard_ns = time_ns;
	/* What is acknowledged arrived: the capture lacks it, and the path did not lose it. */
	if (block->tracked.unseen_bytes[row] && !is_near(walk->facts, direction)) {
		kept->sent = most(kept->sent, acked);
		kept->repaired = 0;
	}
	if (!pure && repeats(walk, kept, acked, edge))
		return;
	if (!is_near(walk->facts, direction)) {
		expect(walk, direction, kept, (struct ca_coming){ time_ns, acked, edge, -1 });
		return;
	}
	/* Time begins with the first data or pure ACK. */
	if (pure || kept->last_ns >= 0)
		spend(walk->facts, direction, kept, time_ns,
		      pure ? held_on_path_ns(block, row, direction, kept) : 0, spent);
	hear(kept, acked, edge, time_ns);
}

/* Whether the sender reacts to the other end's data: it was silent, and then answers. */
static bool answers(const struct ca_facts *facts, size_t direction, const struct ca_waits *kept,
		    int64_t time_ns)
{
	return kept->heard_ns >= 0 && kept->heard_ns >= kept->data_ns &&
	       (double)minus(time_ns, kept->heard_ns) >= least_loop_ns(facts, direction);
}

/* Whether a window that is full would have grown: nothing was lost, and four of it were sent. */
static bool stagnates(const struct ca_waits *kept)
{
	return kept->lossy < 0 && kept->sent - kept->peak_at > STAGNANT * kept->peak;
}

/* Whether the sender of data near the tap waited for a window, and not for its application. */
static bool released(const struct ca_facts *facts, size_t direction, const struct ca_waits *kept,
		     int64_t time_ns)
{
	double round_trip_ns = within(0, facts->round_trip_ns[direction], 1e18);
	double soon_ns = LATER * loop_ns(facts, direction) +
			 within(REACTS_LEAST_NS, REACTS * round_trip_ns, REACTS_MOST_NS);
	double since_data_ns = (double)minus(time_ns, kept->data_ns);
	double since_ack_ns = (double)minus(time_ns, kept->ack_ns);

	if (since_data_ns <= soon_ns || (kept->ack_ns >= kept->data_ns && since_ack_ns <= soon_ns))
		return true;
	return !stagnates(kept) && since_data_ns <= within(PACED_NS, PACED * round_trip_ns, 1e18);
}

/*
 * The part of the time with nothing outstanding in which the application paused. The half that
 * opened the connection asks, so that the time from its data to the answer is the other's.
 */
static int64_t paused_since_ns(const struct ca_waits *kept, size_t direction, int64_t time_ns,
			       int64_t idle_ns)
{
	int64_t thinks_ns = most(minus(time_ns, kept->heard_ns), 0);

	if (kept->heard_ns < 0 || kept->heard_ns < kept->data_ns)
		return idle_ns;
	return direction & 1 ? most(idle_ns - thinks_ns, 0) : least(idle_ns, thinks_ns);
}

/* Payload of a full segment: the announced MSS, or the size that every host must accept. */
static int64_t full_bytes(const struct ca_facts *facts, size_t direction)
{
	int64_t longest = facts->longest_bytes[direction];

	return longest < LONGEST_UNKNOWN ? longest : SEGMENT_LEAST;
}

/*
 * The cause of a wait away from the sender. A segment with PSH that could hold more emptied the
 * buffer: then the application waits, unless the data come a loop after the ACK of all that was sent.
 * An ACK that its receiver delayed did release them, another one may have.
 */
static enum ca_cause cause_afar(const struct walk *walk, size_t direction,
				const struct ca_waits *kept, int64_t time_ns)
{
	double loop = loop_ns(walk->facts, direction);
	const struct ca_coming *ack;
	double delayed_ns;
	int64_t heard_ns;

	if (kept->emptied)
		return CAUSE_CONGESTION;
	if (kept->newest < 0 || kept->oldest < 0)
		return CAUSE_APPLICATION;
	ack = &walk->coming->rows[kept->newest];
	heard_ns = minus(ack->time_ns, whole_ns(LATER * loop + LATER_NS));
	if (ack->acked < kept->sent ||
	    (double)minus(time_ns, heard_ns) < least_loop_ns(walk->facts, direction))
		return CAUSE_APPLICATION;
	/* The rest of the path delays no ACK. */
	delayed_ns = (double)minus(heard_ns, kept->data_ns) - walk->facts->round_trip_ns[direction] + loop;
	return kept->lossy < 0 && delayed_ns >= DELAYED_NS ? CAUSE_NAGLE : CAUSE_CONGESTION;
}

/*
 * Whether data with PSH are less than a segment; those that an offload merged are no segments, unless
 * the window would have grown.
 */
static bool empties(const struct ca_facts *facts, size_t direction, const struct ca_waits *kept,
		    int64_t payload)
{
	int64_t full = full_bytes(facts, direction);

	return !kept->unreleased && payload + OPTIONS_BYTES < full &&
	       (facts->segment_bytes[direction] <= full || stagnates(kept));
}

/* The cause of a wait for an ACK that the next data end. */
static enum ca_cause cause_of_wait(const struct walk *walk, size_t direction,
				   const struct ca_waits *kept, int64_t time_ns, bool again)
{
	const struct ca_facts *facts = walk->facts;

	if (again)
		return CAUSE_RECOVERY;
	if (answers(facts, direction, kept, time_ns))
		return CAUSE_APPLICATION;
	if (!is_near(facts, direction))
		return cause_afar(walk, direction, kept, time_ns);
	if ((!kept->emptied && in_flight(kept)) || !released(facts, direction, kept, time_ns))
		return CAUSE_APPLICATION;
	if (kept->lossy < 0 && kept->ack_ns >= kept->data_ns && !in_flight(kept) &&
	    kept->outstanding < full_bytes(facts, direction))
		return CAUSE_NAGLE;
	return kept->unreleased >= UNRELEASED ? CAUSE_BUFFER : CAUSE_CONGESTION;
}

/*
 * The cause of a time with nothing outstanding. Away from the sender a queue on the path looks like
 * such a time, unless the last data had PSH or the sender answers: then its application waited. It
 * has more to send without PSH: if losses were seen, a silence as long as a timer is for data lost
 * before the tap.
 */
static enum ca_cause cause_of_idle(const struct ca_facts *facts, size_t direction,
				   const struct ca_waits *kept, int64_t time_ns, int64_t idle_ns)
{
	bool waited = is_near(facts, direction) || kept->unreleased >= 0 ||
		      answers(facts, direction, kept, time_ns);

	if (waited)
		return CAUSE_APPLICATION;
	return !kept->lossy && idle_ns >= TIMEOUT_NS ? CAUSE_RECOVERY : CAUSE_CONGESTION;
}

/* Adds the time since the last data to its causes, and writes its length and main cause. */
static void decide(struct walk *walk, size_t row, bool near, enum ca_cause wait, enum ca_cause idle,
		   bool again, int64_t paused_ns, struct ca_spent *spent)
{
	int64_t *open_ns = spent->open_ns, decided_ns[CAUSES] = { 0 }, whole_ns = 0;
	enum ca_cause full = again ? CAUSE_RECOVERY : CAUSE_RECEIVER, main = CAUSE_APPLICATION;

	paused_ns = paused_ns >= PAUSE_NS ? paused_ns : 0;
	decided_ns[CAUSE_PAUSE] += paused_ns;
	decided_ns[idle] += open_ns[OPEN_IDLE] - paused_ns;
	decided_ns[wait] += open_ns[OPEN_WAIT];
	decided_ns[wait == CAUSE_CONGESTION ? CAUSE_ACKS : wait] += open_ns[OPEN_HELD];
	decided_ns[full] += open_ns[OPEN_FULL];
	decided_ns[CAUSE_ACKS] += open_ns[OPEN_FULL_HELD];
	decided_ns[CAUSE_SHUT] += open_ns[OPEN_SHUT];
	decided_ns[CAUSE_RECOVERY] += open_ns[OPEN_RECOVERY];
	for (size_t cause = 0; cause < CAUSES; cause++) {
		spent->cause_ns[cause] += decided_ns[cause];
		whole_ns += decided_ns[cause];
		if (decided_ns[cause] > decided_ns[main])
			main = (enum ca_cause)cause;
	}
	for (size_t open = 0; open < OPENS; open++)
		open_ns[open] = 0;
	if (walk->waited && near) {
		walk->waited->ns[row] = whole_ns;
		walk->waited->cause[row] = main;
	}
}

/* Raises the least scale of windows until data up to a byte were allowed, if the scale is unknown. */
static void scale(const struct ca_facts *facts, size_t direction, struct ca_waits *kept, int64_t end)
{
	int64_t shift = shift_of(facts, direction, kept);

	if (facts->window_shift[direction] >= 0 || kept->told_window <= 0 ||
	    told_edge(kept, shift) >= end)
		return;
	while (shift < SHIFT_MAX && told_edge(kept, shift) < end)
		shift++;
	kept->shift = shift;
	kept->edge = most(kept->edge, told_edge(kept, shift));
}

/* Takes data of a direction; a probe is none, and waits on. */
static void send(struct walk *walk, size_t row, size_t direction, struct ca_waits *kept,
		 struct ca_spent *spent)
{
	const struct ca_block *block = walk->block;
	int64_t time_ns = block->packets.time_ns[row];
	int64_t start = least(block->tracked.seq_bytes[row], BYTES_MAX);
	uint8_t kind = block->tracked.kind[row];
	bool near = is_near(walk->facts, direction);
	bool again = kind == KIND_RETRANSMISSION || kind == KIND_LATE_DATA;
	bool opens = !near && kept->sent >= 0 && start > kept->sent;	/* a hole */
	int64_t wait_ns = spend(walk->facts, direction, kept, time_ns, 0, spent);

	if (kept->acked < 0)
		kept->acked = most(start, 0);
	if (kind != KIND_PROBE) {
		int64_t idle_ns = spent->open_ns[OPEN_IDLE];
		enum ca_cause idle = cause_of_idle(walk->facts, direction, kept, time_ns, idle_ns);
		enum ca_cause wait = cause_of_wait(walk, direction, kept, time_ns, again);

		spent->timeouts += again && wait_ns >= TIMEOUT_NS;
		spent->nagles += wait == CAUSE_NAGLE && spent->open_ns[OPEN_WAIT] > 0;
		decide(walk, row, near, wait, idle, again,
		       idle == CAUSE_RECOVERY ? 0 : paused_since_ns(kept, direction, time_ns, idle_ns),
		       spent);
		scale(walk->facts, direction, kept, start + block->packets.payload_bytes[row]);
		kept->data_ns = time_ns;
		kept->unreleased = block->packets.flags[row] & FLAG_PSH ? 0 : -1;
		kept->emptied = empties(walk->facts, direction, kept, block->packets.payload_bytes[row]) - 1;
	}
	kept->sent = most(kept->sent, start + block->packets.payload_bytes[row]);
	kept->outstanding = in_flight(kept);
	if (again)
		kept->lossy = 0;
	if (opens || again)
		kept->repaired = kept->sent;
	if (in_flight(kept) > kept->peak) {
		kept->peak = in_flight(kept);
		kept->peak_at = kept->sent;
	}
}

int64_t ca_limits_add(const struct ca_block *block, struct ca_waits *directions,
		      struct ca_all_coming *coming, struct ca_spent *spent,
		      const struct ca_waited *waited)
{
	struct walk walk = { block, &block->facts, coming, waited, 0 };

	for (size_t row = 0; row < block->rows; row++) {
		size_t other = block_acknowledged(block, row), own = other ^ 1;

		if (block_is_data(block, row) && takes(&walk, own)) {
			arrive(&walk, own, &directions[own], block->packets.time_ns[row], &spent[own]);
			send(&walk, row, own, &directions[own], &spent[own]);
		}
		if (block_acknowledges(block, row) && takes(&walk, other))
			take_ack(&walk, row, other, &directions[other], &spent[other]);
	}
	return walk.taken;
}
