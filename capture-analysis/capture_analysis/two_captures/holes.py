"""Packets that the second tap does not have: lost on the way, or missed by its capture?

If the receiver acknowledges bytes that the second tap has not seen, they did pass it: its capture
missed them. If the bytes are seen there later, they were sent again and the first copy was lost.
What comes first decides; with neither a packet counts as lost. ACKs leave no such trace.
"""

import numpy as np

from capture_analysis.columns import FLAG_ACK, IntArray
from capture_analysis.two_captures.crossings import ABSENT, CROSSING, Crossings, View
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
        seen_ns = _first_seen(order, crossings.arrived_data)
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


class _Order:
    """Puts bytes of several directions on one scale: by direction, then by sequence number.

    Numbers are relative to the direction's first hole, of which others are less than 2^31 off.
    What has no hole in its direction is far from all.
    """

    def __init__(self, holes: Rows) -> None:
        self.holes = holes
        view = View(holes, np.ones(len(holes), dtype=np.bool_))
        self._base = np.zeros(int(view.directions[-1]) + 1, dtype=np.int64)
        self._base[view.directions] = view["seq"][view.starts]
        # In the order of `holes`.
        self.start, self.end = np.empty((2, len(holes)), dtype=np.int64)
        self.start[view.chosen] = self.place(view, "seq")
        self.end[:] = self.start + holes["payload_bytes"]

    def place(self, view: View, column: str) -> IntArray:
        """Where sequence numbers lie on the scale, shape (len(view),)."""
        base = self._base[np.minimum(view.directions, len(self._base) - 1)]
        counts = np.diff(view.starts, append=len(view))
        after = view[column] - np.repeat(base - (1 << 31), counts)
        after &= (1 << 32) - 1
        after += view.direction << 33
        return after


def _first_seen(order: _Order, arrived: View) -> IntArray:
    """When the second tap first has a packet with each hole's first byte; FOREVER if never."""
    holes = order.holes
    result = np.full(len(holes), FOREVER)
    by_start = np.argsort(order.start, kind="stable")
    starts = order.start[by_start]
    low = order.place(arrived, "seq")
    high = low + arrived["payload_bytes"]
    first = np.searchsorted(starts, low)
    covering = np.flatnonzero(np.append(starts, FOREVER).take(first) < high)
    first = first[covering]
    count = np.searchsorted(starts, high[covering]) - first
    # One line for each hole that a packet covers.
    line = np.repeat(np.arange(len(covering)), count)
    within = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    hole = by_start[first[line] + within]
    time_ns = arrived["second_ns"][covering][line]
    later = time_ns > holes["first_ns"][hole]
    np.minimum.at(result, hole[later], time_ns[later])
    return result


def _first_acked(order: _Order, passing: Rows) -> IntArray:
    """When an ACK for each hole first passes the tap nearer the receiver; FOREVER if none does."""
    view = View(passing, passing["flags"] & FLAG_ACK != 0, turned=True)
    reached = np.maximum.accumulate(order.place(view, "ack"))
    at = np.searchsorted(reached, order.end)
    result = np.full(len(order.end), FOREVER)
    found = np.flatnonzero(at < len(reached))
    found = found[view.direction[at[found]] == order.start[found] >> 33]
    rows = view.chosen[at[found]]
    first_ns, second_ns = passing["first_ns"][rows], passing["second_ns"][rows]
    result[found] = np.where(first_ns == ABSENT, second_ns, first_ns)
    return result
