"""Distributions of integers in constant memory, as histograms.

Bins grow with the value.

Values below 256 are counted exactly; above, each octave has 128 bins, so a bin's width is at most
1/128 of its values. A bin keeps the smallest and the largest value counted in it, and the middle of
these two stands for the bin: within 1/256 of each value, never beyond the smallest or largest of
all, and exact if values are equal. Only bins in use take memory. The layout is that of HdrHistogram
(Tene). The result does not depend on the order of the values, so the histograms of a capture's
parts merge into that of the whole (decision 0034).
"""

import math
import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capture_analysis import clib
from capture_analysis.columns import IntArray

BinArray = NDArray[np.void]

# A bin in use: its key, lane << BIN_BITS | number of the bin; the count of its values; the smallest
# and the largest of them. Laid out as struct ca_bin in clib/histogram.h.
BIN = np.dtype([("key", "<i8"), ("count", "<u8"), ("low", "<i8"), ("high", "<i8")])
# 256 bins of one value each and 55 octaves of 128 bins are 7296 bins: 13 bits.
BIN_BITS = 13


@dataclass(frozen=True)
class Bins:
    """The bins in use, ascending; columns of shape (k,), int64.

    Attributes:
        low, high: the smallest and the largest value counted in a bin.
        count: number of values in the bin.
    """

    low: IntArray
    high: IntArray
    count: IntArray

    def __len__(self) -> int:
        return len(self.low)

    @property
    def middle(self) -> IntArray:
        """Shape (k,): the value that stands for each bin.

        Exact if all values of the bin are equal.
        """
        return self.low + (self.high - self.low) // 2

    def quantile(self, q: float) -> int | None:
        """Return the quantile q, the middle of a bin; None without values.

        The bin is the lowest up to which a share q of the values lies: numpy's "inverted_cdf".
        """
        if not len(self):
            return None
        reached = np.cumsum(self.count)
        # 0.07 * 100 is slightly above 7 in binary: round, so that q counts as the decimal number.
        rank = max(1, math.ceil(round(q * int(reached[-1]), 6)))
        return int(self.middle[np.searchsorted(reached, rank)])


class Histogram:
    """Counts of integers >= 0, a separate distribution for each lane.

    A lane is the number of a distribution: that of a direction (2 * flow + half), or just 0. Values
    are counted in C (clib/histogram.c), by ctypes.
    """

    def __init__(self) -> None:
        self._library = clib.load()
        self._counts = self._library.ca_histogram_new(clib.random_bits())
        if not self._counts:
            raise MemoryError
        weakref.finalize(self, self._library.ca_histogram_free, self._counts)
        # The keys of all bins, ascending, and the bins; None if values came since they were sorted.
        self._rows: tuple[IntArray, BinArray] | None = None

    def add(self, lane: ArrayLike, value: ArrayLike) -> None:
        """Count values in their lanes.

        Args:
            lane: shape (n,) or one number for all values, 0..2**48-1.
            value: shape (n,), 0..2**63-1.

        Raises: ValueError if a lane or a value is out of range.
        """
        values = np.ascontiguousarray(value, dtype=np.int64)
        lanes = np.ascontiguousarray(lane, dtype=np.int64)
        if lanes.shape != values.shape:
            lanes = np.full(values.shape, lane, dtype=np.int64)
        if not len(values):
            return
        columns = lanes.ctypes.data, values.ctypes.data, len(values)
        if not self._library.ca_histogram_takes(*columns):
            raise ValueError("a lane must be in 0..2**48-1 and a value at least 0")
        if not self._library.ca_histogram_add(self._counts, *columns):
            raise MemoryError
        self._rows = None

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another histogram."""
        self._add_bins(other._sorted()[1])  # noqa: SLF001 - the same class

    def count(self, lane: int | None = None) -> int:
        """Return the number of values of a lane, or of all lanes."""
        return int(self.bins(lane).count.sum())

    def quantile(self, q: float, lane: int | None = None) -> int | None:
        """Return a quantile (`Bins.quantile`) of a lane, or of all lanes together."""
        return self.bins(lane).quantile(q)

    def lanes(self) -> IntArray:
        """Return the lanes that have a value, ascending."""
        return np.unique(self._sorted()[0] >> BIN_BITS)

    def bins(self, lane: int | None = None) -> Bins:
        """Return the bins of a lane, or the bins of all lanes added up."""
        keys, bins = self._sorted()
        if lane is not None:
            ends = lane << BIN_BITS, (lane + 1) << BIN_BITS
            return _columns(bins[slice(*np.searchsorted(keys, ends))])
        bins = bins.copy()
        bins["key"] &= (1 << BIN_BITS) - 1
        together = Histogram()
        together._add_bins(bins)
        return _columns(together._sorted()[1])

    def rows(self) -> tuple[IntArray, Bins]:
        """Return the bins of all lanes, and the lane of each bin, ascending."""
        keys, bins = self._sorted()
        return keys >> BIN_BITS, _columns(bins)

    def _add_bins(self, bins: BinArray) -> None:
        if not self._library.ca_histogram_add_bins(self._counts, bins.ctypes.data, len(bins)):
            raise MemoryError
        self._rows = None

    def _sorted(self) -> tuple[IntArray, BinArray]:
        if self._rows is None:
            bins = np.empty(self._library.ca_histogram_bins(self._counts, None), dtype=BIN)
            self._library.ca_histogram_bins(self._counts, bins.ctypes.data)
            keys = bins["key"].copy()
            order = np.argsort(keys)
            # Of rows of several fields, `take` copies ten in the time of one by an index.
            self._rows = keys[order], bins.take(order)
        return self._rows

    def __getstate__(self) -> BinArray:
        return self._sorted()[1]

    def __setstate__(self, state: BinArray) -> None:
        self.__init__()  # type: ignore[misc]
        self._add_bins(np.ascontiguousarray(state, dtype=BIN))


def _columns(bins: BinArray) -> Bins:
    return Bins(bins["low"].copy(), bins["high"].copy(), bins["count"].astype(np.int64))
