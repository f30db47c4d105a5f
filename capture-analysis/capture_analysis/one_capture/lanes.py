"""Numbers kept for each lane: arrays that grow as lanes appear, and merge."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray


class LaneArray:
    """A number per lane, int64, combined with `ufunc` as more comes.

    Args:
        ufunc: np.add, np.minimum or np.maximum.
        empty: the value of a lane of which nothing is known.
        width: how many numbers a lane has; 0 for one, without an axis of its own.
    """

    def __init__(self, ufunc: np.ufunc, empty: int, width: int = 0) -> None:
        self._ufunc, self._empty = ufunc, empty
        self._values = np.zeros((0, width) if width else 0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, lanes: IntArray, values: IntArray) -> None:
        """Combine what is there with one more value for each of several lanes.

        Args:
            lanes: shape (k,), ascending, each lane once.
            values: shape (k,), or (k, width).
        """
        if len(lanes):
            self._grow(int(lanes[-1]) + 1)
            self._values[lanes] = self._ufunc(self._values[lanes], values)

    def add_rows(self, lane: IntArray, values: IntArray) -> None:
        """Combine with a value per row, in whatever order; both of shape (n,)."""
        if len(lane):
            self._grow(int(lane.max()) + 1)
            self._ufunc.at(self._values, lane, values)

    def replace(self, lanes: IntArray, values: IntArray) -> IntArray:
        """Put new values in place, lanes ascending; return those that were there."""
        if len(lanes):
            self._grow(int(lanes[-1]) + 1)
        before = self._values[lanes]
        self._values[lanes] = values
        return before

    def merge(self, other: "LaneArray") -> None:
        """Combine with what another has."""
        self._grow(len(other))
        mine = self._values[: len(other)]
        self._ufunc(mine, other._values, out=mine)  # noqa: SLF001 - the same class

    def values(self) -> IntArray:
        """Shape (lanes,) or (lanes, width): of every lane up to the last known."""
        return self._values

    def at(self, lanes: IntArray) -> IntArray:
        """The values of several lanes, shape (k,) or (k, width)."""
        if len(lanes):
            self._grow(int(lanes.max()) + 1)
        return self._values[lanes]

    def of(self, lane: int) -> Any:
        """The value of a lane, a number or, with a width, shape (width,)."""
        if lane < len(self._values):
            value = self._values[lane]
            return int(value) if value.ndim == 0 else value
        return (
            self._empty if self._values.ndim == 1 else np.full(self._values.shape[1], self._empty)
        )

    def _grow(self, lanes: int) -> None:
        if lanes > len(self._values):
            rows = max(lanes, 2 * len(self._values)) - len(self._values)
            more = np.full((rows, *self._values.shape[1:]), self._empty, dtype=np.int64)
            self._values = np.concatenate((self._values, more))


class Previous:
    """For each row, the value of the lane's row before, which may have come in another block.

    Args:
        empty: what stands before a lane's first row.
    """

    def __init__(self, empty: int = -1) -> None:
        self._last = LaneArray(np.maximum, empty)

    def of(self, lanes: IntArray, starts: IntArray, values: IntArray) -> IntArray:
        """Take rows in lane order; return the values before them.

        Args:
            lanes: shape (k,), the lanes that have rows.
            starts: shape (k,), the first row of each.
            values: shape (n,).
        """
        before = np.empty_like(values)
        if len(values):
            before[1:] = values[:-1]
            before[starts] = self._last.replace(lanes, values[ends_of(starts, len(values))])
        return before


def starts_of(lane: NDArray[np.integer]) -> BoolArray:
    """Shape (n,): whether each of some rows in lane order is its lane's first."""
    first = np.empty(len(lane), dtype=np.bool_)
    first[:1] = True
    np.not_equal(lane[1:], lane[:-1], out=first[1:])
    return first


def ends_of(starts: IntArray, rows: int) -> IntArray:
    """Shape (k,): the last of the rows that begin at each of `starts`, of so many rows."""
    ends = np.empty_like(starts)
    np.subtract(starts[1:], 1, out=ends[:-1])
    ends[-1:] = rows - 1
    return ends


def occurrences(key: IntArray) -> tuple[IntArray, IntArray]:
    """The different keys, ascending, and how often each occurs; keys are at least 0."""
    if int(key.max(initial=0)) < 4 * len(key):
        count = np.bincount(key)
        keys = np.flatnonzero(count)
        return keys, count[keys]
    found: tuple[IntArray, IntArray] = np.unique(key, return_counts=True)
    return found
