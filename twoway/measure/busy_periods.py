"""Busy periods: clusters of data in a queue that ACKs separate.

A busy period of a direction is a maximal run of data departures; the ACKs of the opposite
connections separate one from the next (Kalampoukas, Varma, Ramakrishnan 1998, section 3).
"""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import IntArray

from twoway.measure.queues import Passage


@dataclass(frozen=True)
class BusyPeriods:
    """Busy periods as columns of shape (k,).

    Attributes:
        start_ns: when the first segment's transmission ended.
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


def busy_periods(passed: Passage, start_ns: int, stop_ns: int) -> BusyPeriods:
    """Find the busy periods that start within a window.

    The last one is left out, because the window's end may cut it short.
    """
    rows = passed.departures
    left, is_data = passed.left_ns[rows], passed.is_data[rows]
    follows_ack = np.concatenate(([False], ~is_data))[: len(is_data)]
    inside = (left >= start_ns) & (left < stop_ns)
    starts = np.flatnonzero(is_data & follows_ack & inside)
    total = np.concatenate(([0], np.cumsum(is_data)))
    segments = np.diff(total[starts])
    return BusyPeriods(left[starts[:-1]], segments)
