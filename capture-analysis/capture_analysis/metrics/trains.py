"""Trains of data at the tap, and their regularity.

A train is a maximal run of at least three data segments. Each follows the one before within its own
transmission time on the bottleneck (and 5 %: AGREES), so the link was never idle in between, and
sent nothing else of notable length. The cycle is the time from the start of one train to the start
of the next; regularity is the share of cycles within 5 % of their median.

In one capture, trains show the busy periods (see busy_periods), which ACKs separate however short
they are. Vantage: behind the data's queue; there trains are busy periods if clusters of ACKs take
longer than 5 % of a segment's time. Near the sender a train is a burst that the sender emits. Where
connections share the bottleneck their segments alternate, and the trains of one connection are
short.
"""

from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import AGREES, Facts
from capture_analysis.facts.running_totals import Previous, starts_of
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.evidence import missing_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks

LEAST_SEGMENTS = 3
_NEVER = -1


TRAINS = Definition("trains", "1", "runs of at least three data segments back to back at the tap")
TRAIN_SEGMENTS = Definition("train_segments", "segments", "median segments in a train", least=3)
TRAIN_MAX = Definition("train_max", "segments", "most segments in a train", least=3)
TRAIN_CYCLE = Definition(
    "train_cycle", "s", "median time from the start of a train to that of the next"
)
TRAIN_REGULARITY = Definition(
    "train_regularity",
    "1",
    "share of the times from train to train within 5 % of their median",
    most=1,
)


class Trains(FromOne):
    """Trains of each direction's data: lengths, cycle and regularity."""

    title = "Trains of data"
    vantage = "behind the data's queue"
    per_direction = (TRAINS, TRAIN_SEGMENTS, TRAIN_MAX, TRAIN_CYCLE, TRAIN_REGULARITY)

    def __init__(self) -> None:
        self._finder = StreakFinder(least_rows=LEAST_SEGMENTS)
        self._starts = Previous(_NEVER)
        self._segments, self._cycles = Histogram(), Histogram()

    @override
    def add(self, block: Block) -> None:
        data = block.data
        service_ns = data["frame_bytes"] * data.spread((1 + AGREES) * block.facts.data_ns_per_byte)
        gap_ns = data["gap_ns"]
        joined = (gap_ns >= 0) & (gap_ns <= service_ns)
        self._take(self._finder.add(data.direction, joined, data["time_ns"], data["new_bytes"]))

    @override
    def finish(self, facts: Facts) -> None:
        self._take(self._finder.finish())

    def _take(self, streaks: Streaks) -> None:
        self._segments.add(streaks.lane, streaks.rows)
        starts = starts_of(streaks.lane).nonzero()[0]
        before = self._starts.take_previous(streaks.lane[starts], starts, streaks.first_ns)
        later = (before != _NEVER) & (streaks.first_ns >= before)
        self._cycles.add(streaks.lane[later], (streaks.first_ns - before)[later])

    @override
    def merge(self, other: Self) -> None:
        for name in ("_segments", "_cycles"):
            getattr(self, name).merge(getattr(other, name))

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if unrated := missing_rate(direction, facts):
            return dict.fromkeys(self.per_direction, unrated)
        bins, cycles = self._segments.bins(direction), self._cycles.bins(direction)
        middle = cycles.quantile(0.5)
        near = np.abs(cycles.middle - (middle or 0)) <= AGREES * (middle or 0)
        none = "no run of three segments back to back"
        return {
            TRAINS: int(bins.count.sum()),
            TRAIN_SEGMENTS: bins.quantile(0.5) or none,
            TRAIN_MAX: int(bins.high[-1]) if len(bins) else none,
            TRAIN_CYCLE: middle / 1e9 if middle else "fewer than two trains",
            TRAIN_REGULARITY: int(cycles.count[near].sum()) / int(cycles.count.sum())
            if middle
            else "fewer than two trains",
        }
