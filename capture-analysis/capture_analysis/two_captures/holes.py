"""Decide whether packets were lost, or missed by the second capture.

If the receiver acknowledges bytes that the second tap has not seen, they did pass it: its capture
missed them. If the bytes are seen there later, they were sent again and the first copy was lost.
The earlier of the two events decides; with neither, a packet counts as lost. Lost ACKs leave no
such evidence.
"""

import numpy as np

from capture_analysis.columns import FLAG_ACK, IntArray
from capture_analysis.two_captures.match_rows import Rows, append_parts, select_rows
from capture_analysis.two_captures.matching import FOREVER
from capture_analysis.two_captures.packets_between import ABSENT, CROSSING, Crossings, View

# The most undecided packets to keep; beyond that the oldest count as lost.
UNDECIDED_LIMIT = 1 << 16


class Holes:
    """Data in one direction that the second tap lacks, until the cause is known."""

    def __init__(self) -> None:
        self._open = np.zeros(0, dtype=CROSSING)

    def add(self, crossings: Crossings, opposite: Crossings) -> tuple[Rows, Rows]:
        """Take packets; return data packets found lost, and found missed.

        Args:
            crossings: packets in the data's direction.
            opposite: packets in the other direction, with the ACKs.
        """
        new = crossings.lost_data
        holes = append_parts((self._open, new)) if len(self._open) else new
        if not len(holes):
            return holes, holes
        order = _Order(holes)
        seen_ns = _first_seen(order, crossings.arrived_data)
        acked_ns = _first_acked(order, opposite.sent)
        missed = acked_ns < seen_ns
        decided = missed | (seen_ns < FOREVER)
        decided[: max(int((~decided).sum()) - UNDECIDED_LIMIT, 0)] = True
        self._open = select_rows(holes, ~decided)
        return select_rows(holes, decided & ~missed), select_rows(holes, missed)

    def finish(self) -> Rows:
        """Return the packets that are undecided at the end: they count as lost."""
        rest, self._open = self._open, np.zeros(0, dtype=CROSSING)
        return rest


class _Order:
    """A scale for bytes of several directions.

    The order is by direction, then by sequence number. Numbers are relative to the direction's
    first hole, from which all differ by less than 2^31. Packets of a direction without holes are on
    the scale outside every hole.
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
        """Return the places of sequence numbers on the scale, shape (len(view),)."""
        base = self._base[np.minimum(view.directions, len(self._base) - 1)]
        counts = np.diff(view.starts, append=len(view))
        after = view[column] - np.repeat(base - (1 << 31), counts)
        after &= (1 << 32) - 1
        after += view.direction << 33
        return after


def _first_seen(order: _Order, arrived: View) -> IntArray:
    """Find the time at which the second tap first has a hole's first byte, or FOREVER."""
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
    # One entry for each pair of a packet and a hole that it covers.
    line = np.repeat(np.arange(len(covering)), count)
    within = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    hole = by_start[first[line] + within]
    time_ns = arrived["second_ns"][covering][line]
    later = time_ns > holes["first_ns"][hole]
    np.minimum.at(result, hole[later], time_ns[later])
    return result


def _first_acked(order: _Order, passing: Rows) -> IntArray:
    """Find the time at which the receiver's tap first has an ACK for a hole, or FOREVER."""
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
