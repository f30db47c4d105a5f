"""Bounds of the offset between two clocks over time, in constant memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray

INTERVALS = 4096
_FIRST_WIDTH_NS = 1_000_000
UNBOUNDED = np.iinfo(np.int64).max
# Columns of the table: the tightest bound from above and when, from below and when.
_ABOVE, _ABOVE_AT, _BELOW, _BELOW_AT = range(4)


@dataclass(frozen=True)
class Bounds:
    """In each interval, what the offset is at most and at least; columns of shape (k,).

    Attributes:
        above, below: ns; UNBOUNDED and -UNBOUNDED where no packet says.
        above_at, below_at: when the packet that says so passed the first tap, ns.
    """

    above: IntArray
    above_at: IntArray
    below: IntArray
    below_at: IntArray


class Envelope:
    """Tightest bounds per interval; intervals double when there are too many.

    A packet that passes A before B bounds B's clock less A's from above by the difference of its
    time stamps; one that passes B first bounds it from below.
    """

    def __init__(self) -> None:
        self._table = np.zeros((0, 4), dtype=np.int64)
        self._start_ns = 0
        self._width_ns = _FIRST_WIDTH_NS

    def add(self, a_ns: IntArray, difference_ns: IntArray, a_first: BoolArray) -> None:
        """Take packets.

        Args:
            a_ns: shape (n,), when each passed A.
            difference_ns: time stamp of B less that of A.
            a_first: whether it passed A before B.
        """
        if not len(a_ns):
            return
        if not len(self._table):
            self._start_ns = int(a_ns.min())
            self._table = _unbounded(INTERVALS)
        self._make_room(int(a_ns.min()), int(a_ns.max()))
        interval = (a_ns - self._start_ns) // self._width_ns
        for rows, value, at, sign in (
            (a_first, _ABOVE, _ABOVE_AT, 1),
            (~a_first, _BELOW, _BELOW_AT, -1),
        ):
            which, bound, when = _tightest(
                interval[rows], sign * difference_ns[rows], a_ns[rows]
            )
            tighter = bound < sign * self._table[which, value]
            which = which[tighter]
            self._table[which, value] = sign * bound[tighter]
            self._table[which, at] = when[tighter]

    def bounds(self) -> Bounds:
        """The intervals in which a packet bounds the offset."""
        used = (self._table[:, _ABOVE] < UNBOUNDED) | (self._table[:, _BELOW] > -UNBOUNDED)
        table = self._table[used]
        return Bounds(*(table[:, column] for column in (_ABOVE, _ABOVE_AT, _BELOW, _BELOW_AT)))

    def _make_room(self, first_ns: int, last_ns: int) -> None:
        """Widen the intervals until they span from one time to another."""
        while first_ns < self._start_ns or last_ns >= self._start_ns + INTERVALS * self._width_ns:
            # The old table becomes the second half of the new one, or the first.
            if first_ns < self._start_ns:
                self._start_ns -= INTERVALS * self._width_ns
                parts = _unbounded(INTERVALS // 2), _halve(self._table)
            else:
                parts = _halve(self._table), _unbounded(INTERVALS // 2)
            self._table = np.concatenate(parts)
            self._width_ns *= 2


def _unbounded(rows: int) -> NDArray[np.int64]:
    table = np.zeros((rows, 4), dtype=np.int64)
    table[:, _ABOVE], table[:, _BELOW] = UNBOUNDED, -UNBOUNDED
    return table


def _halve(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Two intervals become one."""
    even, odd = table[::2], table[1::2]
    halved = even.copy()
    later = odd[:, _ABOVE] < even[:, _ABOVE]
    halved[later, _ABOVE], halved[later, _ABOVE_AT] = odd[later, _ABOVE], odd[later, _ABOVE_AT]
    later = odd[:, _BELOW] > even[:, _BELOW]
    halved[later, _BELOW], halved[later, _BELOW_AT] = odd[later, _BELOW], odd[later, _BELOW_AT]
    return halved


def _tightest(
    interval: IntArray, bound: IntArray, at_ns: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Least bound of each interval, and when it was seen first."""
    if (interval[1:] < interval[:-1]).any():
        order = np.argsort(interval, kind="stable")
        interval, bound, at_ns = interval[order], bound[order], at_ns[order]
    starts = np.flatnonzero(np.diff(interval, prepend=-1))
    if not len(starts):
        return interval, bound, at_ns
    least = np.minimum.reduceat(bound, starts)
    sizes = np.diff(starts, append=len(bound))
    hits = np.flatnonzero(bound == np.repeat(least, sizes))
    first = hits[np.searchsorted(hits, starts)]
    return interval[starts], least, at_ns[first]
