"""ACKs that acknowledge faster than their data can arrive.

Such ACKs must have been compressed or held.

    (a_j - a_i) / (r_j - r_i) > C_data / 0.75, over a run of at least three ACKs

a: bytes acknowledged, as frames; r: capture times. A run is maximal, and each of its gaps satisfies
the inequality. The receiver cannot have got the data faster than its bottleneck passes it: if the
rate was given it is certain that the ACKs were bunched behind the bottleneck, in a queue or by the
receiver. With an estimated rate it is likely; the two cases are separate quantities. After Mogul
1992, who compares the rate in the short term with that in the long term; threshold from Paxson
1997.

Vantage: anywhere between the queue of the ACKs and the data's sender; the metric cannot distinguish
queue from receiver (see held_acks). An ACK that follows the filling of a hole acknowledges much at
once and is counted, though its data had arrived before.
"""

from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts, RateSource
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.one_capture.evidence import missing_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks

CERTAIN_EVENTS = Definition(
    "certain_events",
    "1",
    "runs of three ACKs or more that acknowledge 4/3 as fast as the given rate, or faster",
    "Mogul 1992",
)
CERTAIN_ACKS = Definition("certain_acks", "1", "ACKs in `certain_events`", "Mogul 1992")
CERTAIN_BYTES = Definition(
    "certain_bytes", "bytes", "bytes that the ACKs in `certain_events` acknowledge", "Mogul 1992"
)
LIKELY_EVENTS = Definition(
    "likely_events",
    "1",
    "runs of three ACKs or more that acknowledge 4/3 as fast as the estimated rate, or faster",
    "Mogul 1992",
)
LIKELY_ACKS = Definition("likely_acks", "1", "ACKs in `likely_events`", "Mogul 1992")
LIKELY_BYTES = Definition(
    "likely_bytes", "bytes", "bytes that the ACKs in `likely_events` acknowledge", "Mogul 1992"
)

_CERTAIN = (CERTAIN_EVENTS, CERTAIN_ACKS, CERTAIN_BYTES)
_LIKELY = (LIKELY_EVENTS, LIKELY_ACKS, LIKELY_BYTES)


class CertainCompression(FromOne):
    """Runs of ACKs that acknowledge faster than data can arrive."""

    title = "ACKs faster than data can arrive"
    picture = "ack-spacing"
    vantage = "behind the queue of the ACKs"
    per_direction = (*_CERTAIN, *_LIKELY)

    def __init__(self) -> None:
        self._finder = StreakFinder(least_rows=BUNCH_ACKS)
        self._events = LaneArray(np.add, 0, 3)

    @override
    def add(self, block: Block) -> None:
        acks = block.acks
        columns = acks.direction, block.acks_faster, acks["time_ns"], acks["acked_bytes"]
        self._take(self._finder.add(*columns))

    @override
    def finish(self, facts: Facts) -> None:
        self._take(self._finder.finish())

    def _take(self, events: Streaks) -> None:
        values = np.stack((np.ones_like(events.rows), events.rows, events.total), axis=1)
        self._events.add_rows(events.lane, values)

    @override
    def merge(self, other: Self) -> None:
        self._events.merge(other._events)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if unrated := missing_rate(direction, facts):
            return dict.fromkeys(self.per_direction, unrated)
        given = facts.rate_source[direction] == RateSource.GIVEN
        counted, other = (_CERTAIN, _LIKELY) if given else (_LIKELY, _CERTAIN)
        why = "the rate was given" if given else "the rate is an estimate"
        found = (int(n) for n in self._events.value_of(direction))
        return dict(zip(counted, found, strict=True)) | dict.fromkeys(other, why)
