"""Counts of a histogram, kept with numpy: what `in_c` does in C."""

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import IntArray

BinArray = NDArray[np.void]

# A bin of a lane that counts anything: lane << BIN_BITS | number of the bin; how many values, and
# the least and the greatest of them. As struct ca_bin in native/histogram.h.
BIN = np.dtype([("key", "<i8"), ("count", "<u8"), ("low", "<i8"), ("high", "<i8")])
# Values below this have a bin each; from there on an octave has half as many.
EXACT = 256
# 55 octaves above EXACT make 7296 bins.
BIN_BITS = 13
LANES = 1 << 48
# Bins put aside before they are sorted into the others: one sort for many chunks.
_PENDING = 1 << 16


def bin_of(value: IntArray) -> IntArray:
    """Number of the bin of each value, ascending with it; at least 0, below 2**BIN_BITS."""
    # Without the second highest bit rounding to a double cannot reach the next power of two.
    exponent = np.frexp((value & ~(value >> 1)).astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(exponent - 8, 0)
    return (shift << 7) + (value >> shift)


def combined(bins: BinArray) -> BinArray:
    """Bins by key, ascending, those of one key made one."""
    if not len(bins):
        return bins
    bins = bins[np.argsort(bins["key"], kind="stable")]
    first = np.flatnonzero(np.diff(bins["key"], prepend=-1))
    result = bins[first]
    for column, reduce in (("count", np.add), ("low", np.minimum), ("high", np.maximum)):
        result[column] = reduce.reduceat(bins[column], first)
    return result


def out_of_range() -> ValueError:
    """What is raised of a lane or a value that no histogram has."""
    return ValueError("a lane must be in 0..2**48-1 and a value at least 0")


class NumpyCounts:
    """What came into each bin: sorted bins, and what is not sorted in yet."""

    def __init__(self) -> None:
        self._parts = [np.zeros(0, dtype=BIN)]
        self._pending = 0

    def add(self, lane: IntArray, value: IntArray) -> None:
        """Count every value once in its lane; both int64 of shape (n,)."""
        if lane.min() < 0 or lane.max() >= LANES or value.min() < 0:
            raise out_of_range()
        bins = np.empty(len(value), dtype=BIN)
        bins["key"], bins["count"] = (lane << BIN_BITS) | bin_of(value), 1
        bins["low"] = bins["high"] = value
        self.add_bins(combined(bins))

    def add_bins(self, bins: BinArray) -> None:
        """Count what bins count."""
        self._parts.append(bins)
        self._pending += len(bins)
        if self._pending > len(self._parts[0]) + _PENDING:
            self.bins()

    def bins(self) -> BinArray:
        """What was counted, by key."""
        if self._pending:
            self._parts, self._pending = [combined(np.concatenate(self._parts))], 0
        return self._parts[0]
