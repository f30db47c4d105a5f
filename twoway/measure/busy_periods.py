"""Busy periods: the clusters in which a connection's data passes a shared queue.

A busy period of a direction is a maximal run of data departures; the acknowledgements of the
opposite connections separate one from the next (Kalampoukas, Varma, Ramakrishnan 1998, s. 3).
"""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import IntArray

from twoway.measure.queues import Passage


@dataclass(frozen=True)
class BusyPeriods:
    """Columns of shape (k,), one row per busy period.

    Attributes:
        start_ns: when its first segment's transmission ended.
        segments: how many data segments it has.
    """

    start_ns: IntArray
    segments: IntArray

    def cycle_s(self) -> float:
        """Mean time from one start to the next, s; NaN with fewer than three.

        Taken over an even number of busy periods: in the paper's case 2 they alternate.
        """
        count = (len(self.start_ns) - 1) // 2 * 2
        if count < 2:
            return float("nan")
        return float((self.start_ns[count] - self.start_ns[0]) / count / 1e9)


def busy_periods(passed: Passage, start_ns: int, stop_ns: int) -> BusyPeriods:
    """The busy periods that start within a window; the last, perhaps cut short, is left out."""
    rows = passed.departures
    left, is_data = passed.left_ns[rows], passed.is_data[rows]
    follows_ack = np.concatenate(([False], ~is_data))[: len(is_data)]
    inside = (left >= start_ns) & (left < stop_ns)
    starts = np.flatnonzero(is_data & follows_ack & inside)
    total = np.concatenate(([0], np.cumsum(is_data)))
    segments = np.diff(total[starts])
    return BusyPeriods(left[starts[:-1]], segments)
