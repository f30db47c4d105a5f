"""Counts of a histogram, kept in C (native/histogram.c), by ctypes."""

import weakref

import numpy as np

from capture_analysis import native
from capture_analysis.columns import IntArray
from capture_analysis.histogram.in_numpy import BIN, BinArray, out_of_range


class NativeCounts:
    """What `in_numpy.NumpyCounts` is.

    Raises: AnalysisError if there is no library (`native.available`).
    """

    def __init__(self) -> None:
        self._library = native.load()
        self._histogram = self._library.ca_histogram_new(native.random_bits())
        if not self._histogram:
            raise MemoryError
        weakref.finalize(self, self._library.ca_histogram_free, self._histogram)

    def add(self, lane: IntArray, value: IntArray) -> None:
        """Count every value once in its lane; both contiguous int64 of shape (n,)."""
        columns = lane.ctypes.data, value.ctypes.data, len(value)
        if not self._library.ca_histogram_takes(*columns):
            raise out_of_range()
        if not self._library.ca_histogram_add(self._histogram, *columns):
            raise MemoryError

    def add_bins(self, bins: BinArray) -> None:
        """Count what bins count."""
        bins = np.ascontiguousarray(bins, dtype=BIN)
        if not self._library.ca_histogram_add_bins(self._histogram, bins.ctypes.data, len(bins)):
            raise MemoryError

    def bins(self) -> BinArray:
        """What was counted, by key."""
        bins = np.empty(self._library.ca_histogram_bins(self._histogram, None), dtype=BIN)
        self._library.ca_histogram_bins(self._histogram, bins.ctypes.data)
        return bins[np.argsort(bins["key"])]
