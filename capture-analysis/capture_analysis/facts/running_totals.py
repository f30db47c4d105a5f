"""Numbers kept for each lane: arrays that grow with the lanes and can be merged.

A lane is the number of a sequence, mostly of a direction (2 * flow + half).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray


class LaneArray:
    """A number per lane, int64, which `ufunc` combines with each new value.

    Args:
        ufunc: np.add, np.minimum or np.maximum.
        empty: the value of a lane without values.
        width: number of numbers per lane; 0 for one, without an axis of its own.
    """

    def __init__(self, ufunc: np.ufunc, empty: int, width: int = 0) -> None:
        self._ufunc, self._empty, self.width = ufunc, empty, width
        self._values = np.zeros((0, width) if width else 0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, lanes: IntArray, values: IntArray) -> None:
        """Combine the numbers of several lanes with one more value for each.

        Args:
            lanes: shape (k,), ascending, each lane once.
            values: shape (k,), or (k, width).
        """
        if len(lanes):
            self._grow(int(lanes[-1]) + 1)
            self._values[lanes] = self._ufunc(self._values[lanes], values)

    def add_rows(self, lane: IntArray, values: IntArray) -> None:
        """Combine numbers of lanes with a value per row, in any order; (n,)."""
        if len(lane):
            self._grow(int(lane.max()) + 1)
            self._ufunc.at(self._values, lane, values)

    def replace(self, lanes: IntArray, values: IntArray) -> IntArray:
        """Replace the values of ascending lanes; return the old ones."""
        if len(lanes):
            self._grow(int(lanes[-1]) + 1)
        before = self._values[lanes]
        self._values[lanes] = values
        return before

    def merge(self, other: "LaneArray") -> None:
        """Combine the numbers with those of another array."""
        self._grow(len(other))
        mine = self._values[: len(other)]
        self._ufunc(mine, other._values, out=mine)  # noqa: SLF001 - the same class

    def address(self, count: int) -> int:
        """Return where the numbers of the first `count` lanes are in memory, for C to add to."""
        self._grow(count)
        return int(self._values.ctypes.data)

    def values(self) -> IntArray:
        """Return the numbers of all lanes, shape (lanes,) or (lanes, width)."""
        return self._values

    def values_of(self, lanes: IntArray) -> IntArray:
        """Return the numbers of several lanes, shape (k,) or (k, width)."""
        if len(lanes):
            self._grow(int(lanes.max()) + 1)
        return self._values[lanes]

    def value_of(self, lane: int) -> Any:
        """Return the number of one lane; with a width shape (width,)."""
        values = self._values
        if lane < len(values):
            return (values.item if values.ndim == 1 else values.__getitem__)(lane)
        return self._empty if values.ndim == 1 else np.full(values.shape[1], self._empty)

    def _grow(self, lanes: int) -> None:
        if lanes > len(self._values):
            self.move(_more_rows(lanes, len(self._values), self._values.shape[1:]))

    def move(self, values: IntArray) -> None:
        """Keep the numbers in other memory, which has more rows and is 0."""
        known = len(self._values)
        values[:known] = self._values
        if self._empty:
            values[known:] = self._empty
        self._values = values


class JoinedArrays:
    """Several arrays whose numbers lie side by side in rows, for C to add to.

    Until all packets are added, only `address` makes them longer.

    Args:
        arrays: empty ones, in the order of the numbers.
    """

    def __init__(self, arrays: Sequence[LaneArray]) -> None:
        self._arrays = arrays
        self._ends = np.cumsum([max(each.width, 1) for each in arrays]).tolist()
        self._rows = np.zeros((0, self._ends[-1]), dtype=np.int64)

    def address(self, count: int) -> int:
        """Return where the first `count` rows are in memory."""
        known = len(self._rows)
        if count > known:
            self._rows = _more_rows(count, known, self._rows.shape[1:])
            for each, end in zip(self._arrays, self._ends, strict=True):
                each.move(
                    self._rows[:, end - each.width : end] if each.width else self._rows[:, end - 1]
                )
        return int(self._rows.ctypes.data)


def _more_rows(needed: int, known: int, shape: tuple[int, ...]) -> IntArray:
    """Return the needed rows of 0, and at least a fourth more than are known.

    Memory that no connection uses counts in large captures; that of zeros only when written to.
    """
    return np.zeros((max(needed, known + known // 4), *shape), dtype=np.int64)


class Previous:
    """The value of each row's predecessor in its lane, across blocks.

    Args:
        empty: the value before a lane's first row.
    """

    def __init__(self, empty: int = -1) -> None:
        self._last = LaneArray(np.maximum, empty)

    def take_previous(self, lanes: IntArray, starts: IntArray, values: IntArray) -> IntArray:
        """Take rows in lane order; return the value of each row's predecessor.

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
    """Tell which rows, sorted by lane, are their lanes' first; (n,)."""
    first = np.empty(len(lane), dtype=np.bool_)
    first[:1] = True
    np.not_equal(lane[1:], lane[:-1], out=first[1:])
    return first


def ends_of(starts: IntArray, rows: int) -> IntArray:
    """Return the last row of each run, shape (k,), given the first rows."""
    ends = np.empty_like(starts)
    np.subtract(starts[1:], 1, out=ends[:-1])
    ends[-1:] = rows - 1
    return ends


def occurrences(key: IntArray) -> tuple[IntArray, IntArray]:
    """Count each different key; keys are at least 0, and returned ascending."""
    if int(key.max(initial=0)) < 4 * len(key):
        count = np.bincount(key)
        keys = np.flatnonzero(count)
        return keys, count[keys]
    found: tuple[IntArray, IntArray] = np.unique(key, return_counts=True)
    return found
