"""Busy periods: clusters of data in a queue that ACKs separate.

A busy period of a direction is a maximal run of data departures; the ACKs of the opposite
connections separate one from the next (Kalampoukas, Varma, Ramakrishnan 1998, section 3).
"""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import BoolArray, IntArray

from twoway.measure.queues import Occupancy, Passage


@dataclass(frozen=True)
class BusyPeriods:
    """Busy periods as columns of shape (k,).

    Attributes:
        start_ns: the time at which the first segment's transmission ended.
        segments: number of data segments.
    """

    start_ns: IntArray
    segments: IntArray

    def cycle_s(self) -> float:
        """Compute the mean time from start to start, s; NaN if under three.

        The mean is over an even number of busy periods, because in the paper's case 2 long and
        short ones alternate.
        """
        count = (len(self.start_ns) - 1) // 2 * 2
        if count < 2:
            return float("nan")
        return float((self.start_ns[count] - self.start_ns[0]) / count / 1e9)


def busy_peaks(passed: Passage, data_packets: Occupancy, start_ns: int, stop_ns: int) -> IntArray:
    """Find the largest number of data packets in the queue during each busy period.

    Data only leave during a busy period, so their number peaks right before a departure.

    Args:
        passed: the packets of the queue.
        data_packets: the queue's length over time, data packets alone.
        start_ns: start of the window in which busy periods start.
        stop_ns: its end.

    Returns: shape (k,), for the busy periods of `busy_periods`.
    """
    rows = passed.departures
    left, is_data = passed.left_ns[rows], passed.is_data[rows]
    starts = _starts(left, is_data, start_ns, stop_ns)
    # Times are whole ns, and an arrival at the instant of a departure counts after it.
    before = np.where(is_data, data_packets.count_at(left - 1), 0)
    if len(starts) < 2:
        return np.zeros(0, dtype=np.int64)
    return np.asarray(np.maximum.reduceat(before[: starts[-1]], starts[:-1]))


def growth(segments: IntArray) -> float:
    """Compute the growth of busy periods: each one's length over that of the one before.

    Args:
        segments: shape (k,), number of segments in each busy period.

    Returns: the median up to the first of the longest; NaN if the very first is the longest.
    """
    until = segments[: int(np.argmax(segments)) + 1] if len(segments) else segments
    return float(np.median(until[1:] / until[:-1])) if len(until) > 1 else float("nan")


def busy_periods(passed: Passage, start_ns: int, stop_ns: int) -> BusyPeriods:
    """Find the busy periods that start within a window.

    The last one is left out, because the window's end may cut it short.
    """
    rows = passed.departures
    left, is_data = passed.left_ns[rows], passed.is_data[rows]
    starts = _starts(left, is_data, start_ns, stop_ns)
    total = np.concatenate(([0], np.cumsum(is_data)))
    segments = np.diff(total[starts])
    return BusyPeriods(left[starts[:-1]], segments)


def _starts(left: IntArray, is_data: BoolArray, start_ns: int, stop_ns: int) -> IntArray:
    """Find the departures with which busy periods start, among all in order."""
    follows_ack = np.concatenate(([False], ~is_data))[: len(is_data)]
    inside = (left >= start_ns) & (left < stop_ns)
    return np.flatnonzero(is_data & follows_ack & inside)
