"""Busy periods: clusters in which data leaves a queue.

A busy period of a direction is a maximal run of data departures; the ACKs of the opposite
connections separate one from the next (Kalampoukas, Varma, Ramakrishnan 1998, section 3). Its
length is in segments. The cycle is the time from one start to the next, over an even number of busy
periods, because in the paper's case 2 long and short ones alternate.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.histogram import Histogram
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.from_pair import FromPair, Step, Values
from capture_analysis.two_captures.match_rows import select_rows
from capture_analysis.two_captures.packets_between import Crossings, is_data

_TOO_FEW = "fewer than three busy periods"


BUSY_PERIODS = Definition(
    "busy_periods",
    "1",
    "runs of data departures from a queue with no pure ACK between them",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)
BUSY_PERIOD_SEGMENTS = Definition(
    "busy_period_segments",
    "segments",
    "median segments in a busy period",
    "Kalampoukas, Varma, Ramakrishnan 1998",
    least=1,
)
BUSY_PERIOD_MAX = Definition(
    "busy_period_max",
    "segments",
    "most segments in a busy period",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)
BUSY_PERIOD_CYCLE = Definition(
    "busy_period_cycle",
    "s",
    "mean time from the start of a busy period to that of the next",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)
BUSY_PERIOD_CYCLE_MEDIAN = Definition(
    "busy_period_cycle_median",
    "s",
    "half the median time from the start of a busy period to that of the next but one",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)


class BusyPeriods(FromPair):
    """Busy periods of each queue between the taps: lengths and cycle."""

    title = "Busy periods"
    picture = "queue"
    per_path_direction = (
        BUSY_PERIODS,
        BUSY_PERIOD_SEGMENTS,
        BUSY_PERIOD_MAX,
        BUSY_PERIOD_CYCLE,
        BUSY_PERIOD_CYCLE_MEDIAN,
    )

    @override
    def start(self) -> None:
        self._finders = StreakFinder(), StreakFinder()
        self._sizes = Histogram()
        self._largest = [0, 0]
        self._last_ack = [False, False]
        self._cycles = Histogram()
        self._starts = [np.zeros(0, dtype=np.int64)] * 2
        # By direction: start of the first busy period, and start of the latest one that an even
        # number of periods separates from the first.
        self._first = [0, 0]
        self._even = [0, 0]
        self._count = [0, 0]

    @override
    def add(self, step: Step) -> None:
        for crossings, finder in zip(step.crossings, self._finders, strict=True):
            self._take(crossings, finder)

    def _take(self, crossings: Crossings, finder: StreakFinder) -> None:
        direction, rows = crossings.path_direction, crossings.arrived
        rows = select_rows(rows, rows["kind"] != Kind.CONTROL)
        if not len(rows):
            return
        data = is_data(rows)
        joined = data & ~np.concatenate(([self._last_ack[direction]], ~data[:-1]))
        self._last_ack[direction] = not data[-1]
        lane = np.full(len(rows), direction)
        streaks = finder.add(lane, joined, rows["second_ns"].copy(), data.astype(np.int64))
        self._add(direction, streaks)

    def _add(self, direction: int, streaks: Streaks) -> None:
        """Count busy periods.

        A streak without data is a single ACK and left out.
        """
        streaks = streaks.where(streaks.total > 0)
        self._sizes.add(direction, streaks.total)
        largest = int(streaks.total.max(initial=0))
        self._largest[direction] = max(self._largest[direction], largest)
        if len(streaks.lane) and not self._count[direction]:
            self._first[direction] = int(streaks.first_ns[0])
        even = streaks.first_ns[self._count[direction] % 2 :: 2]
        self._even[direction] = int(even[-1]) if len(even) else self._even[direction]
        self._count[direction] += len(streaks.lane)
        starts = np.concatenate((self._starts[direction], streaks.first_ns))
        self._cycles.add(direction, np.maximum(starts[2:] - starts[:-2], 0) // 2)
        self._starts[direction] = starts[-2:]

    @override
    def of_path_direction(self, direction: int) -> Values:
        median = self._sizes.quantile(0.5, direction)
        cycle = self._cycles.quantile(0.5, direction)
        return {
            BUSY_PERIODS: self._count[direction],
            BUSY_PERIOD_SEGMENTS: _TOO_FEW if median is None else median,
            BUSY_PERIOD_MAX: self._largest[direction],
            BUSY_PERIOD_CYCLE: _TOO_FEW if cycle is None else self._cycle_s(direction),
            BUSY_PERIOD_CYCLE_MEDIAN: _TOO_FEW if cycle is None else cycle / 1e9,
        }

    def _cycle_s(self, direction: int) -> float:
        """Compute the mean time from start to start over an even number of busy periods."""
        cycles = (self._count[direction] - 1) // 2 * 2
        return (self._even[direction] - self._first[direction]) / cycles / 1e9
