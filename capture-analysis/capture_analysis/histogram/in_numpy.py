"""Counts of a histogram, kept with numpy: what `in_c` does in C."""

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import IntArray

CountArray = NDArray[np.uint64]

# Values below this have a bin each; from there on an octave has half as many.
EXACT = 256
# A key is the lane above the bin: 55 octaves above EXACT make 7296 bins.
BIN_BITS = 13
# Rows put aside before they are sorted into the others: one sort for many chunks.
_PENDING = 1 << 16


def bin_of(value: IntArray) -> IntArray:
    """Number of the bin of each value, ascending with it; at least 0, below 2**BIN_BITS."""
    # Without the second highest bit rounding to a double cannot reach the next power of two.
    exponent = np.frexp((value & ~(value >> 1)).astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(exponent - 8, 0)
    return (shift << 7) + (value >> shift)


def bin_edges(number: IntArray) -> tuple[IntArray, IntArray]:
    """The lowest and the highest value of each bin."""
    shift = np.maximum((number >> 7) - 1, 0)
    low = (number - (shift << 7)) << shift
    return low, low + ((np.int64(1) << shift) - 1)


class NumpyCounts:
    """How often each key came: sorted columns, and what is not sorted in yet."""

    def __init__(self) -> None:
        self._keys: list[IntArray] = []
        self._counts: list[CountArray] = []
        self._pending = 0

    def add(self, lane: IntArray, value: IntArray) -> None:
        """Count every value once in its lane; both int64 of shape (n,)."""
        keys, counts = np.unique((lane << BIN_BITS) | bin_of(value), return_counts=True)
        self.add_counts(keys, counts.astype(np.uint64))

    def add_counts(self, keys: IntArray, counts: CountArray) -> None:
        """Count keys (lane << BIN_BITS | bin) so many times each."""
        self._keys.append(keys)
        self._counts.append(counts)
        self._pending += len(keys)
        if self._pending > len(self._keys[0]) + _PENDING:
            self.rows()

    def rows(self) -> tuple[IntArray, CountArray]:
        """Keys, ascending, and how often each came."""
        if len(self._keys) != 1 or self._pending:
            keys = np.concatenate((np.zeros(0, dtype=np.int64), *self._keys))
            counts = np.concatenate((np.zeros(0, dtype=np.uint64), *self._counts))
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
            first = np.flatnonzero(np.diff(keys, prepend=-1))
            self._keys = [keys[first]]
            self._counts = [np.add.reduceat(counts, first) if len(first) else counts]
            self._pending = 0
        return self._keys[0], self._counts[0]
