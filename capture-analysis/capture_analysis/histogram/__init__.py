"""Distributions in constant memory: counts of integers in bins that grow with the value.

Values below 256 are counted exactly; above, each octave has 128 bins, so that a bin is at most
1/128 of its values wide and its middle within 1/256 of any of them. Only bins that are used take
memory. The layout is that of HdrHistogram (Tene); the counts do not depend on the order in which
values come, so histograms of parts of a capture merge into that of the whole.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from capture_analysis import native
from capture_analysis.columns import IntArray
from capture_analysis.histogram.in_c import NativeCounts
from capture_analysis.histogram.in_numpy import BIN_BITS, CountArray, NumpyCounts, bin_edges

LANES = 1 << 48


class Counts(Protocol):
    """How often each key (lane << BIN_BITS | bin) came."""

    def add(self, lane: IntArray, value: IntArray) -> None:
        """Count every value once in its lane."""

    def add_counts(self, keys: IntArray, counts: CountArray) -> None:
        """Count keys so many times each."""

    def rows(self) -> tuple[IntArray, CountArray]:
        """Keys, ascending, and how often each came."""


@dataclass(frozen=True)
class Bins:
    """The bins in use, ascending; columns of shape (k,), int64.

    Attributes:
        low, high: the lowest and the highest value that a bin counts.
        count: how many values are in it.
    """

    low: IntArray
    high: IntArray
    count: IntArray

    def __len__(self) -> int:
        return len(self.low)

    @property
    def middle(self) -> IntArray:
        """Shape (k,): the value that stands for a bin, exact below 256."""
        return self.low + (self.high - self.low) // 2

    def quantile(self, q: float) -> int | None:
        """The middle of the bin where at least a share q of all values lies in it or below.

        None of no values. The definition is numpy's "inverted_cdf".
        """
        if not len(self):
            return None
        reached = np.cumsum(self.count)
        # 0.07 * 100 is a little more than 7; a share means what it says in decimal.
        rank = max(1, math.ceil(round(q * int(reached[-1]), 6)))
        return int(self.middle[np.searchsorted(reached, rank)])


class Histogram:
    """Counts of integers >= 0, apart for each lane.

    A lane is whatever has a distribution of its own: half a connection (2 * flow + half), 0.

    Args:
        counts: what keeps them, if not the native library where there is one, else numpy.
    """

    def __init__(self, counts: Counts | None = None) -> None:
        if counts is None:
            counts = NativeCounts() if native.available() else NumpyCounts()
        self._counts = counts
        self._rows: tuple[IntArray, CountArray] | None = None

    def add(self, lane: ArrayLike, value: ArrayLike) -> None:
        """Count values.

        Args:
            lane: shape (n,) or a number for all, 0..2**48-1.
            value: shape (n,), 0..2**63-1.

        Raises: ValueError if a lane or a value is out of range.
        """
        values = np.ascontiguousarray(value, dtype=np.int64)
        lanes = np.ascontiguousarray(np.broadcast_to(np.asarray(lane, np.int64), values.shape))
        if not len(values):
            return
        if lanes.min() < 0 or lanes.max() >= LANES or values.min() < 0:
            raise ValueError("a lane must be in 0..2**48-1 and a value at least 0")
        self._counts.add(lanes, values)
        self._rows = None

    def merge(self, other: "Histogram") -> None:
        """Add what another histogram has counted."""
        self._counts.add_counts(*other._sorted())  # noqa: SLF001 - the same class
        self._rows = None

    def count(self, lane: int | None = None) -> int:
        """How many values a lane has, or all lanes have."""
        return int(self.bins(lane).count.sum())

    def quantile(self, q: float, lane: int | None = None) -> int | None:
        """See `Bins.quantile`; of a lane, or of all lanes together."""
        return self.bins(lane).quantile(q)

    def lanes(self) -> IntArray:
        """The lanes that have a value, ascending."""
        return np.unique(self._sorted()[0] >> BIN_BITS)

    def bins(self, lane: int | None = None) -> Bins:
        """The bins of a lane, or those of all lanes together."""
        keys, counts = self._sorted()
        if lane is not None:
            first, end = np.searchsorted(keys, (lane << BIN_BITS, (lane + 1) << BIN_BITS))
            number, count = keys[first:end] & ((1 << BIN_BITS) - 1), counts[first:end]
        else:
            number, inverse = np.unique(keys & ((1 << BIN_BITS) - 1), return_inverse=True)
            count = np.zeros(len(number), dtype=np.uint64)
            np.add.at(count, inverse, counts)
        return Bins(*bin_edges(number), count.astype(np.int64))

    def rows(self) -> tuple[IntArray, Bins]:
        """All bins of all lanes: the lane of each, ascending, and the bins."""
        keys, counts = self._sorted()
        number = keys & ((1 << BIN_BITS) - 1)
        return keys >> BIN_BITS, Bins(*bin_edges(number), counts.astype(np.int64))

    def _sorted(self) -> tuple[IntArray, CountArray]:
        if self._rows is None:
            self._rows = self._counts.rows()
        return self._rows

    def __getstate__(self) -> tuple[IntArray, CountArray]:
        return self._sorted()

    def __setstate__(self, state: tuple[IntArray, CountArray]) -> None:
        self.__init__()  # type: ignore[misc]
        self._counts.add_counts(*state)
