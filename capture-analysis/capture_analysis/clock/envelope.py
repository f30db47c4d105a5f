"""Bounds of the offset between two clocks over time, in constant memory."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray

INTERVALS = 4096
_FIRST_WIDTH_NS = 1_000_000
UNBOUNDED = np.iinfo(np.int64).max
# Columns of the table: the tightest bound from above and its time; the same from below; the loosest
# bounds from above and from below.
_ABOVE, _ABOVE_AT, _BELOW, _BELOW_AT, _MOST, _LEAST = range(6)


@dataclass(frozen=True)
class Bounds:
    """Bounds of the offset in each interval of time; columns of shape (k,).

    Attributes:
        above, below: smallest upper and largest lower bound, ns; UNBOUNDED and -UNBOUNDED without
            one.
        above_at, below_at: time at which the packet that gives the bound passed A, ns.
        most, least: the loosest bounds, by the slowest packets; -UNBOUNDED and UNBOUNDED without
            such a packet.
    """

    above: IntArray
    above_at: IntArray
    below: IntArray
    below_at: IntArray
    most: IntArray
    least: IntArray

    def where(self, rows: slice) -> "Bounds":
        """Select some of the intervals."""
        return Bounds(*(getattr(self, f.name)[rows] for f in fields(self)))


class Envelope:
    """Tightest bounds per interval; intervals double when there are too many.

    A packet that passes A before B bounds B's clock minus A's from above by the difference of its
    time stamps; a packet that passes B first bounds it from below.
    """

    def __init__(self) -> None:
        self._table = _unbounded(0)
        self._start_ns = 0
        self.width_ns = _FIRST_WIDTH_NS

    def add(self, a_ns: IntArray, difference_ns: IntArray, a_first: BoolArray) -> None:
        """Take packets.

        Args:
            a_ns: shape (n,), time at which each packet passed A.
            difference_ns: shape (n,), time stamp of B minus that of A.
            a_first: shape (n,), True if the packet passed A before B.
        """
        if not len(a_ns):
            return
        if not len(self._table):
            self._start_ns = int(a_ns.min())
            self._table = _unbounded(INTERVALS)
        self._make_room(int(a_ns.min()), int(a_ns.max()))
        interval = (a_ns - self._start_ns) // self.width_ns
        for rows, value, at, slowest, sign in (
            (a_first, _ABOVE, _ABOVE_AT, _MOST, 1),
            (~a_first, _BELOW, _BELOW_AT, _LEAST, -1),
        ):
            which, bound, loose, when = _extremes(
                interval[rows], sign * difference_ns[rows], a_ns[rows]
            )
            table = self._table
            table[which, slowest] = sign * np.maximum(sign * table[which, slowest], loose)
            tighter = bound < sign * table[which, value]
            which = which[tighter]
            table[which, value] = sign * bound[tighter]
            table[which, at] = when[tighter]

    def bounds(self) -> Bounds:
        """Return the intervals in which a packet bounds the offset."""
        used = (self._table[:, _ABOVE] < UNBOUNDED) | (self._table[:, _BELOW] > -UNBOUNDED)
        table = self._table[used]
        return Bounds(*table.T)

    def _make_room(self, first_ns: int, last_ns: int) -> None:
        """Widen the intervals until the table covers two times."""
        while first_ns < self._start_ns or last_ns >= self._start_ns + INTERVALS * self.width_ns:
            # The old table becomes the second half of the new one, or the first.
            if first_ns < self._start_ns:
                self._start_ns -= INTERVALS * self.width_ns
                parts = _unbounded(INTERVALS // 2), _halve(self._table)
            else:
                parts = _halve(self._table), _unbounded(INTERVALS // 2)
            self._table = np.concatenate(parts)
            self.width_ns *= 2


def _unbounded(rows: int) -> NDArray[np.int64]:
    table = np.zeros((rows, 6), dtype=np.int64)
    table[:, [_ABOVE, _LEAST]], table[:, [_BELOW, _MOST]] = UNBOUNDED, -UNBOUNDED
    return table


def _halve(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Merge each pair of intervals into one."""
    even, odd = table[::2], table[1::2]
    halved = even.copy()
    later = odd[:, _ABOVE] < even[:, _ABOVE]
    halved[later, _ABOVE], halved[later, _ABOVE_AT] = odd[later, _ABOVE], odd[later, _ABOVE_AT]
    later = odd[:, _BELOW] > even[:, _BELOW]
    halved[later, _BELOW], halved[later, _BELOW_AT] = odd[later, _BELOW], odd[later, _BELOW_AT]
    halved[:, _MOST] = np.maximum(even[:, _MOST], odd[:, _MOST])
    halved[:, _LEAST] = np.minimum(even[:, _LEAST], odd[:, _LEAST])
    return halved


def _extremes(
    interval: IntArray, bound: IntArray, at_ns: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return each interval's number, smallest and largest bound, and time.

    The time is that of the smallest bound's first packet.
    """
    if (interval[1:] < interval[:-1]).any():
        order = np.argsort(interval, kind="stable")
        interval, bound, at_ns = interval[order], bound[order], at_ns[order]
    starts = np.flatnonzero(np.diff(interval, prepend=-1))
    if not len(starts):
        return interval, bound, bound, at_ns
    least = np.minimum.reduceat(bound, starts)
    hits = np.flatnonzero(bound == np.repeat(least, np.diff(starts, append=len(bound))))
    first = hits[np.searchsorted(hits, starts)]
    return interval[starts], least, np.maximum.reduceat(bound, starts), at_ns[first]
