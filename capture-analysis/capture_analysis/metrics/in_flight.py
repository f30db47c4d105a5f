"""Data in flight at the tap: seen, but not acknowledged yet.

It reaches from the highest byte acknowledged to the highest byte seen.

Unit bytes; a segment of full size has the announced MSS, or else the largest payload, at least 536
bytes. Sampled at each data segment, after it; mean over segments, and the maximum.

Vantage: near the data's sender this is the sender's flight (RFC 5681's FlightSize, but without the
sender's knowledge from SACK); elsewhere, the data on the path from the tap to the receiver and
back.
"""

from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

IN_FLIGHT_MEAN = Definition(
    "in_flight_mean", "bytes", "mean of the bytes seen and not acknowledged after each segment"
)
IN_FLIGHT_SEGMENTS = Definition(
    "in_flight_segments", "1", "mean of the bytes in flight, in segments of full size"
)
IN_FLIGHT_MAX = Definition(
    "in_flight_max", "bytes", "most bytes seen and not acknowledged after a segment"
)


class InFlight(FromOne):
    """Bytes in flight after each data segment of a direction."""

    title = "Data in flight"
    picture = "in-flight"
    vantage = "near the data's sender"
    per_direction = (IN_FLIGHT_MEAN, IN_FLIGHT_SEGMENTS, IN_FLIGHT_MAX)

    def __init__(self) -> None:
        self._most = LaneArray(np.maximum, 0)
        # The number of segments, and the sum of the bytes outstanding after each.
        self._sums = LaneArray(np.add, 0, 2)

    @override
    def add(self, block: Block) -> None:
        data = block.data
        outstanding = data["in_flight_bytes"]
        self._most.add(data.directions, data.reduce(np.maximum, outstanding))
        self._sums.add(data.directions, np.stack((data.counts, data.sum(outstanding)), axis=1))

    @override
    def merge(self, other: Self) -> None:
        self._most.merge(other._most)
        self._sums.merge(other._sums)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        segments, total = (int(n) for n in self._sums.value_of(direction))
        if not segments or not tally.acks(direction):
            why = "nothing acknowledges data in the capture" if segments else "no data"
            return dict.fromkeys(self.per_direction, why)
        mean = total / segments
        return {
            IN_FLIGHT_MEAN: mean,
            IN_FLIGHT_SEGMENTS: mean / int(facts.full_bytes[direction]),
            IN_FLIGHT_MAX: self._most.value_of(direction),
        }
