"""Held ACKs: bunched already when the receiver sent them.

The path between the taps did not bunch them.

    s_i - s_{i-1} < 0.75 * (transmission time of the data that ACK i acknowledges)

over a run of at least three ACKs at their first tap. Their data cannot have come faster than the
bottleneck between the taps lets them pass. So either the receiver held the ACKs (Paxson 1997 calls
this receiver compression and counts it apart), or a queue before the first tap did. Unit 1.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.two_captures.ack_gaps import AckGaps
from capture_analysis.two_captures.crossings import Crossings
from capture_analysis.two_captures.pair_measure import PairMeasure, Quantity, Step, Values
from capture_analysis.two_captures.pair_measures.ack_spacing import LEAST_ACKS
from capture_analysis.two_captures.pair_measures.compression_factor import NO_BOTTLENECK


class HeldAcks(PairMeasure):
    """Runs of ACKs sent closer together than their data can have come."""

    title = "ACKs held by the receiver"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("held_events", "1", "runs of ACKs sent faster than their data can have come"),
        Quantity("held_acks", "1", "ACKs in them"),
        Quantity("held_bytes", "bytes", "what they acknowledge"),
    )

    def start(self) -> None:
        """Create the empty counts and sums."""
        self._finders = StreakFinder(0, LEAST_ACKS), StreakFinder(0, LEAST_ACKS)
        self._events = LaneArray(np.add, 0, 3)

    def add(self, step: Step) -> None:
        """Take the next packets."""
        for crossings, gaps, finder in zip(step.ways, step.ack_gaps, self._finders, strict=True):
            if len(crossings.acks):
                self._take(crossings, gaps, finder)

    def _take(self, crossings: Crossings, gaps: AckGaps, finder: StreakFinder) -> None:
        acks, data = crossings.acks, self.facts.ways[1 - crossings.way]
        if data.data_ns is None:
            return
        payload = max(data.data_bytes - self.facts.ways[crossings.way].ack_bytes, 1)
        least = COMPRESSED_BELOW * data.data_ns / payload * gaps.acked_bytes
        held = (gaps.sent_ns >= 0) & (gaps.sent_ns < least)
        self._count(finder.add(acks.direction, held, acks["first_ns"], gaps.acked_bytes))

    def finish(self) -> None:
        """Take the streaks that were still open at the captures' end."""
        for finder in self._finders:
            self._count(finder.finish())

    def _count(self, streaks: Streaks) -> None:
        found = np.stack((np.ones_like(streaks.rows), streaks.rows, streaks.total), axis=1)
        self._events.add_rows(streaks.lane, found)

    def of_direction(self, direction: int) -> Values:
        """Return the quantities of one direction, by name."""
        if all(way.data_ns is None for way in self.facts.ways):
            return {q.name: NO_BOTTLENECK for q in self.per_direction}
        names = (q.name for q in self.per_direction)
        return dict(zip(names, (int(n) for n in self._events.of(direction)), strict=True))
