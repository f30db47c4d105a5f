"""Find streaks, maximal runs of packets, block by block.

In C (clib/streaks.c), by ctypes.

Bunches, compression events and busy periods are streaks.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import BoolArray, IntArray

MOST_VALUES = 4  # CA_STREAK_VALUES of clib/streaks.h


@dataclass(frozen=True)
class Streaks:
    """Columns of shape (k,), one row per streak.

    Attributes:
        lane: number of the sequence with the streak, see `StreakFinder`.
        rows: number of packets in the streak.
        first_ns, last_ns: time of its first and of its last packet.
        total: sum over its packets of the value given to `StreakFinder.add`; shape (values, k) for
            several values.
    """

    lane: IntArray
    rows: IntArray
    first_ns: IntArray
    last_ns: IntArray
    total: IntArray

    def where(self, which: BoolArray | IntArray) -> "Streaks":
        """Select streaks by a mask or by row numbers."""
        return Streaks(
            self.lane[which],
            self.rows[which],
            self.first_ns[which],
            self.last_ns[which],
            self.total[..., which],
        )


class _Packets(ctypes.Structure):
    """Laid out as struct ca_streak_packets in clib/streaks.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("lane", "joined", "time_ns")),
        ("value_count", ctypes.c_size_t),
        ("values", ctypes.c_void_p * MOST_VALUES),
    ]


class _Streaks(ctypes.Structure):
    """Laid out as struct ca_streaks in clib/streaks.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("lane", "rows", "first_ns", "last_ns", "total")),
        ("stride", ctypes.c_size_t),
    ]

    @classmethod
    def from_streaks(cls, streaks: Streaks) -> "_Streaks":
        """Return the addresses of the columns, which must outlive them."""
        return cls(*(column.ctypes.data for column in vars(streaks).values()), len(streaks.lane))


class StreakFinder:
    """Find the streaks of each lane, whose packets come in blocks.

    A lane is the number of a sequence of packets: a direction (2 * flow + half), or a queue. The
    result does not depend on block ends.

    Args:
        values: number of values that `Streaks.total` sums; 0 for one value without an axis of its
            own.
        least_rows: shorter streaks are not returned.
    """

    def __init__(self, values: int = 0, least_rows: int = 1) -> None:
        self._values, self._least_rows = values, least_rows
        # The open streak of each lane, which the next packet may continue; 0 rows without one.
        self._open = self._no_streaks()
        # Output columns of the library, reused by every call.
        self._over = self._no_streaks()

    def add(
        self,
        lane: IntArray,
        joined: BoolArray,
        time_ns: IntArray,
        value: IntArray | Sequence[IntArray | BoolArray],
    ) -> Streaks:
        """Take packets; return the streaks that ended, by lane and time.

        Args:
            lane: shape (n,), not descending; the packets of a lane are in order.
            joined: shape (n,), True if the packet continues the streak of the lane's packet before
                it, which may be in an earlier block; ignored for a lane's very first packet.
            time_ns: shape (n,).
            value: shape (n,), the value that `Streaks.total` sums; or a sequence of such columns.
        """
        if not len(lane):
            return self._no_streaks()
        self._grow(int(lane[-1]) + 1)
        if len(self._over.lane) < len(lane):
            self._over = self._no_streaks(len(lane))
        columns = (
            np.ascontiguousarray(lane, dtype=np.int64),
            np.ascontiguousarray(joined, dtype=np.bool_),
            np.ascontiguousarray(time_ns, dtype=np.int64),
            *(np.ascontiguousarray(column, dtype=np.int64) for column in self._several(value)),
        )
        values = len(columns) - 3
        if values > MOST_VALUES or any(column.shape != (len(lane),) for column in columns):
            raise ValueError(f"columns must be of one length, and {MOST_VALUES} values at most")
        addresses = [column.ctypes.data for column in columns]
        ended: int = clib.load().ca_streaks_add(
            ctypes.byref(_Packets(*addresses[:3], values, tuple(addresses[3:]))),
            len(lane),
            self._least_rows,
            ctypes.byref(_Streaks.from_streaks(self._open)),
            ctypes.byref(_Streaks.from_streaks(self._over)),
        )
        kept = vars(self._over).items()
        return Streaks(**{name: column[..., :ended].copy() for name, column in kept})

    def finish(self) -> Streaks:
        """Return the streaks that were still open when the packets ended."""
        rest, self._open = self._open, self._no_streaks()
        return rest.where(np.flatnonzero(rest.rows >= self._least_rows))

    def _several(
        self, value: IntArray | Sequence[IntArray | BoolArray]
    ) -> Sequence[IntArray | BoolArray]:
        return value if self._values else (value,)  # type: ignore[return-value] # then one column

    def _grow(self, lanes: int) -> None:
        known = len(self._open.lane)
        if lanes > known:
            size = max(lanes, 2 * known)
            more = self._no_streaks(size - known)
            self._open = _join_streaks(self._open, more)
            self._open.lane[:] = np.arange(size)

    def _no_streaks(self, rows: int = 0) -> Streaks:
        shape = (self._values, rows) if self._values else (rows,)
        lane, count, first_ns, last_ns = np.zeros((4, rows), dtype=np.int64)
        return Streaks(lane, count, first_ns, last_ns, np.zeros(shape, dtype=np.int64))


def _join_streaks(first: Streaks, second: Streaks) -> Streaks:
    return Streaks(
        np.concatenate((first.lane, second.lane)),
        np.concatenate((first.rows, second.rows)),
        np.concatenate((first.first_ns, second.first_ns)),
        np.concatenate((first.last_ns, second.last_ns)),
        np.concatenate((first.total, second.total), axis=-1),
    )
