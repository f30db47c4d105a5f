"""Counts of a histogram, kept in C (native/histogram.c), by ctypes."""

import weakref

import numpy as np

from capture_analysis import native
from capture_analysis.columns import IntArray
from capture_analysis.histogram.in_numpy import CountArray


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
        if not self._library.ca_histogram_add(
            self._histogram, lane.ctypes.data, value.ctypes.data, len(value)
        ):
            raise MemoryError

    def add_counts(self, keys: IntArray, counts: CountArray) -> None:
        """Count keys (lane << BIN_BITS | bin) so many times each."""
        keys = np.ascontiguousarray(keys, dtype=np.int64)
        counts = np.ascontiguousarray(counts, dtype=np.uint64)
        if not self._library.ca_histogram_add_counts(
            self._histogram, keys.ctypes.data, counts.ctypes.data, len(keys)
        ):
            raise MemoryError

    def rows(self) -> tuple[IntArray, CountArray]:
        """Keys, ascending, and how often each came."""
        rows = self._library.ca_histogram_rows(self._histogram, None, None)
        keys, counts = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.uint64)
        self._library.ca_histogram_rows(self._histogram, keys.ctypes.data, counts.ctypes.data)
        order = np.argsort(keys)
        return keys[order], counts[order]
