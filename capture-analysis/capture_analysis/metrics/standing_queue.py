"""Standing queue: how much of the time a queue on the path never emptied.

Near the data's sender a queue shows in round trips; elsewhere in the time from the stamp that the
sender gives a segment to its passing: only its growth is known. Delays are taken sixteen
at a time, because delayed ACKs and receivers that look for data now and then make some of them
long, hardly ever all. If even the shortest of sixteen exceeds the shortest so far by a fifth of the
path's round trip and 1 ms, a queue stood meanwhile; near the sender also if it so exceeds the
handshake's round trip and the time from one to the next:

    standing_queue = time of sixteens in which a queue stood / time of all but the first

Unit 1. Of a silence the round trip alone counts as time with a queue. The first sixteen have the
path without the queue, which they build. By time stamps two of their ticks and a ten thousandth of
the time, by which clocks may drift apart, are added. The queue may be of others' packets; by round
trips it may be on the ACKs' way. A link whose queue stands is busy all the time: it is full,
whatever its rate. A queue that was never empty in the capture, from the handshake on, is not seen.

Vantage: any with packets of both ways; beyond the sender only with time stamps.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from capture_analysis.columns import IntArray, Mark
from capture_analysis.definition import Definition
from capture_analysis.facts.blocks import Block, View
from capture_analysis.facts.facts import NEAR, Facts, FloatArray, opposite
from capture_analysis.facts.lanes import LaneArray, ends_of
from capture_analysis.one_capture.evidence import NO_PLACE
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import NEVER, Tally

TOGETHER = 16
_LONGER, _LONGER_NS = 0.2, 1_000_000
_TICKS, _DRIFT = 2, 1e-4
NO_STAMPS = "not captured near the data's sender, and its time stamps' tick is not known"
TOO_FEW = f"fewer than {2 * TOGETHER} delays"

STANDING_QUEUE = Definition(
    "standing_queue", "1", "share of time in which a queue on the path never emptied", most=1
)


class StandingQueue(FromOne):
    """Share of each direction's time with a queue that stands."""

    title = "Standing queue"
    picture = "rtt"
    per_direction: ClassVar[Sequence[Definition]] = (STANDING_QUEUE,)

    def __init__(self) -> None:
        # Of each direction: the first stamped data's time and stamp; the time in all, and with a
        # queue; how many delays, the shortest, and the time of the last.
        self._origin = LaneArray(np.minimum, NEVER, 2)
        self._ns = LaneArray(np.add, 0, 2)
        self._count, self._shortest = LaneArray(np.add, 0), LaneArray(np.minimum, NEVER)
        self._last_ns = LaneArray(np.maximum, -1)
        # Of its open sixteen: the shortest, its time, and the part that a queue explains.
        self._floor, self._open = LaneArray(np.minimum, NEVER), LaneArray(np.add, 0, 2)

    @override
    def add(self, block: Block) -> None:
        facts = block.facts
        near, far = facts.tap_at <= NEAR, facts.tap_at > NEAR
        timed = block.is_ack & (block.tracked.rtt_ns >= 0) & near.take(block.direction)
        view = View(block, np.flatnonzero(timed))
        self._take(view, view["rtt_ns"], facts)
        far &= opposite(facts.tick_whole_ns) > 0
        stamped = block.is_data & ((block.packets.marks & Mark.TIMESTAMPS) != 0)
        view = View(block, np.flatnonzero(stamped & far.take(block.direction)))
        self._take(view, self._since_sent_ns(view, facts), facts)

    def _since_sent_ns(self, view: View, facts: Facts) -> IntArray:
        """Return the time since each segment was sent, less that of its direction's first."""
        time_ns, stamp = view["time_ns"], view["ts_value"]
        fresh = self._origin.at(view.directions)[:, 0] == NEVER
        first = view.starts[fresh]
        self._origin.add(view.directions[fresh], np.stack((time_ns[first], stamp[first]), axis=1))
        origin = np.repeat(self._origin.at(view.directions), view.counts, axis=0)
        ticks = (stamp - origin[:, 1]).astype(np.int32).astype(np.int64)  # stamps wrap
        tick_ns = view.spread(opposite(facts.tick_whole_ns))
        return np.asarray(time_ns - origin[:, 0] - ticks * tick_ns)

    def _take(self, view: View, delay_ns: IntArray, facts: Facts) -> None:
        """Take the delay of each packet of a view, (n,)."""
        if not len(view):
            return
        directions, starts, time_ns = view.directions, view.starts, view["time_ns"]
        shortest_ns = self._shortest_so_far(view, delay_ns)
        before_ns = np.concatenate(([0], time_ns[:-1]))
        last_ns = self._last_ns.replace(directions, time_ns[view.ends])
        before_ns[starts] = np.where(last_ns < 0, time_ns[starts], last_ns)
        spent_ns = np.maximum(time_ns - before_ns, 0)
        # A queue explains no more silence than the round trip that it makes.
        path_ns = view.spread(facts.round_trip_ns).astype(np.int64)
        far = view.spread(facts.tap_at) > NEAR
        queue_ns = np.minimum(spent_ns, np.where(far, path_ns + delay_ns - shortest_ns, delay_ns))
        count = self._count.replace(directions, self._count.at(directions) + view.counts)
        place = np.arange(len(view)) - np.repeat(starts - count, view.counts)
        opens = place % TOGETHER == 0
        opens[starts] = True
        first = np.flatnonzero(opens)
        floor = np.minimum.reduceat(delay_ns, first)
        times = np.add.reduceat(np.stack((spent_ns, queue_ns), axis=1), first)
        at_start = np.searchsorted(first, starts)
        floor[at_start] = np.minimum(floor[at_start], self._floor.at(directions))
        times[at_start] += self._open.at(directions)
        last = ends_of(at_start, len(first))
        end = ends_of(first, len(view))
        is_open = np.zeros(len(first), dtype=np.bool_)
        is_open[last] = place[view.ends] % TOGETHER != TOGETHER - 1
        self._floor.replace(directions, np.where(is_open[last], floor[last], NEVER))
        self._open.replace(directions, times[last] * is_open[last, np.newaxis])
        # The first sixteen build the queue.
        done = np.flatnonzero(~is_open & (place[first] >= TOGETHER))
        end = end[done]
        direction = view.direction[end]
        margin_ns = self._margin_ns(direction, time_ns[end], facts)
        stands = floor[done] > shortest_ns[end] + margin_ns
        # A segment's transmission time, which the handshake's packets lack, is no longer than it
        # takes from one to the next.
        segment_ns = times[done, 0] / TOGETHER
        opening_ns = facts.handshake_ns[direction] + segment_ns
        stands |= ~far[end] & (floor[done] > opening_ns + margin_ns)
        counted = np.stack((times[done, 0], times[done, 1] * stands), axis=1)
        self._ns.add_rows(direction, counted)

    def _shortest_so_far(self, view: View, delay_ns: IntArray) -> IntArray:
        """Return the shortest delay of each direction until each, (n,)."""
        delay_ns = delay_ns.copy()
        before_ns = self._shortest.at(view.directions)
        delay_ns[view.starts] = np.minimum(delay_ns[view.starts], before_ns)
        # Directions are kept apart by an offset that no delay reaches.
        offset = np.repeat(np.arange(len(view.directions)) << 46, view.counts)
        limited = np.clip(delay_ns, -(1 << 44), 1 << 44) - offset
        shortest: IntArray = np.minimum.accumulate(limited) + offset
        self._shortest.add(view.directions, shortest[view.ends])
        return shortest

    def _margin_ns(self, direction: IntArray, time_ns: IntArray, facts: Facts) -> FloatArray:
        """Return by how much longer delays show a queue."""
        margin = np.maximum(_LONGER * facts.round_trip_ns[direction], _LONGER_NS)
        far = facts.tap_at[direction] > NEAR
        since_ns = np.where(far, time_ns - self._origin.at(direction)[:, 0], 0)
        ticks_ns = _TICKS * facts.tick_whole_ns[direction ^ 1]
        return np.asarray(margin + far * (ticks_ns + _DRIFT * since_ns))

    @override
    def merge(self, other: Self) -> None:
        self._ns.merge(other._ns)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        whole_ns, standing_ns = (int(n) for n in self._ns.of(direction))
        if whole_ns:
            return {STANDING_QUEUE: standing_ns / whole_ns}
        at = facts.tap_at[direction]
        known = at <= NEAR or facts.tick_whole_ns[direction ^ 1] > 0
        return {STANDING_QUEUE: NO_PLACE if np.isnan(at) else TOO_FEW if known else NO_STAMPS}
