"""Packets that the second tap does not have: lost on the way, or missed by its capture?

If the receiver acknowledges bytes that the second tap has not seen, they did pass it: its capture
missed them. If the bytes are seen there later, they were sent again and the first copy was lost.
What comes first decides; with neither a packet counts as lost. ACKs leave no such trace.
"""

import numpy as np

from capture_analysis.columns import FLAG_ACK, BoolArray, IntArray
from capture_analysis.two_captures.crossings import ABSENT, CROSSING, Crossings, is_data
from capture_analysis.two_captures.match_rows import Rows, joined, where
from capture_analysis.two_captures.matching import FOREVER

# More undecided ones are not kept: the oldest count as lost.
UNDECIDED_LIMIT = 1 << 16


class Holes:
    """Data of one way that the second tap lacks, until it is known why."""

    def __init__(self) -> None:
        self._open = np.zeros(0, dtype=CROSSING)

    def add(self, crossings: Crossings, opposite: Crossings) -> tuple[Rows, Rows]:
        """Take what passed next; return the data packets found lost, and found missed.

        Args:
            crossings: of the way that the data go.
            opposite: of the other, with ACKs for them.
        """
        new = crossings.lost_data
        holes = joined((self._open, new)) if len(self._open) else new
        if not len(holes):
            return holes, holes
        order = _Order(holes)
        seen_ns = _first_seen(order, crossings.arrived)
        acked_ns = _first_acked(order, opposite.sent)
        missed = acked_ns < seen_ns
        decided = missed | (seen_ns < FOREVER)
        decided[: max(int((~decided).sum()) - UNDECIDED_LIMIT, 0)] = True
        self._open = where(holes, ~decided)
        return where(holes, decided & ~missed), where(holes, missed)

    def finish(self) -> Rows:
        """What is undecided at the end: it counts as lost."""
        rest, self._open = self._open, np.zeros(0, dtype=CROSSING)
        return rest


def _direction(rows: Rows, *, turned: bool) -> IntArray:
    return np.asarray(rows["flow"].astype(np.int64) * 2 + (rows["half"] ^ turned))


class _Order:
    """Puts bytes of several directions on one scale: by direction, then by sequence number.

    Numbers are relative to the direction's first hole, of which others are less than 2^31 off.
    """

    def __init__(self, holes: Rows) -> None:
        self.holes = holes
        direction = _direction(holes, turned=False)
        first = np.full(int(direction.max()) + 1, -1)
        first[direction[::-1]] = np.arange(len(holes))[::-1]
        self._first_hole = first
        self.start = self.place(direction, holes["seq"])
        self.end = self.start + holes["payload_bytes"]

    def concerned(self, rows: Rows, which: BoolArray, *, turned: bool) -> tuple[IntArray, IntArray]:
        """Those of some rows that are of the holes' directions: numbers and directions."""
        direction = _direction(rows, turned=turned)
        known = np.minimum(direction, len(self._first_hole) - 1)
        which &= (self._first_hole[known] >= 0) & (known == direction)
        found = np.flatnonzero(which)
        return found, direction[found]

    def place(self, direction: IntArray, number: IntArray) -> IntArray:
        """Where sequence numbers lie on the scale."""
        base = self.holes["seq"][self._first_hole[direction]].astype(np.int64)
        after = (number.astype(np.int64) - base + (1 << 31)) % (1 << 32)
        return np.asarray((direction << 33) + after)


def _first_seen(order: _Order, arrived: Rows) -> IntArray:
    """When the second tap first has a packet with each hole's first byte; FOREVER if never."""
    holes = order.holes
    result = np.full(len(holes), FOREVER)
    rows, direction = order.concerned(arrived, is_data(arrived), turned=False)
    low = order.place(direction, arrived["seq"][rows])
    by_start = np.argsort(order.start, kind="stable")
    starts = order.start[by_start]
    first = np.searchsorted(starts, low)
    count = np.searchsorted(starts, low + arrived["payload_bytes"][rows]) - first
    covering = np.flatnonzero(count)
    count = count[covering]
    # One line for each hole that a packet covers.
    line = np.repeat(np.arange(len(covering)), count)
    within = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    hole = by_start[first[covering][line] + within]
    time_ns = arrived["second_ns"][rows[covering]][line]
    later = time_ns > holes["first_ns"][hole]
    np.minimum.at(result, hole[later], time_ns[later])
    return result


def _first_acked(order: _Order, passing: Rows) -> IntArray:
    """When an ACK for each hole first passes the tap nearer the receiver; FOREVER if none does."""
    rows, direction = order.concerned(passing, passing["flags"] & FLAG_ACK != 0, turned=True)
    by_direction = np.argsort(direction, kind="stable")
    rows, direction = rows[by_direction], direction[by_direction]
    first_ns, second_ns = passing["first_ns"][rows], passing["second_ns"][rows]
    time_ns = np.where(first_ns == ABSENT, second_ns, first_ns)
    reached = np.maximum.accumulate(order.place(direction, passing["ack"][rows]))
    at = np.searchsorted(reached, order.end)
    result = np.full(len(order.end), FOREVER)
    found = np.flatnonzero(at < len(reached))
    found = found[direction[at[found]] == order.start[found] >> 33]
    result[found] = time_ns[at[found]]
    return result
