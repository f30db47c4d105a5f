"""ACK compression from both ends: how spacing changes on the path.

The ratio is the spacing of ACKs on arrival over their spacing when sent.

    rho_i = (r_i - r_{i-1}) / (s_i - s_{i-1})        xi = (dT_r + C_r) / (dT_s - C_s)

s, r: when ACK i passed its first and its second tap; C: resolution of their time stamps. rho is
undefined (counted) where the denominator is not above the resolution. An event is a maximal run
of gaps with rho < 0.75, of at least three ACKs, whose xi over the whole run is below 0.75 (Paxson
1997, section on ACK compression; he leaves open how ACKs are grouped, this is version 1 of ours).

The clocks' offset does not matter, and their drift little: it changes rho by a part in 10^5.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.ack_gaps import AckGaps
from capture_analysis.two_captures.crossings import Crossings
from capture_analysis.two_captures.pair_measure import PairMeasure, Quantity, Step, Values

LEAST_ACKS = 3
_PARTS = 1000
_NO_GAPS = "fewer than two ACKs passed both taps"
_NO_EVENTS = "no compression event"


class AckSpacing(PairMeasure):
    """Spacing of ACKs on arrival over their spacing when sent."""

    title = "Ack compression, from both ends"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("ack_gaps", "1", "gaps between ACKs that passed both taps"),
        Quantity("ack_gaps_undefined", "1", "of these, sent too close for a ratio"),
        Quantity("ack_gaps_compressed", "1", "of these, with a ratio below 0.75"),
        Quantity("ack_spacing_ratio_median", "1", "median of the ratios"),
        Quantity("compression_events", "1", "Paxson's compression events"),
        Quantity("compression_acks", "1", "ACKs in events"),
        Quantity("compression_bytes", "bytes", "what the ACKs in events acknowledge"),
        Quantity("compression_duplicate_share", "1", "share of duplicate ACKs among those"),
        Quantity("compression_xi_median", "1", "median xi of the events"),
    )

    def start(self) -> None:
        """Create the empty counts and sums."""
        self._counts = LaneArray(np.add, 0, 3)
        self._events = LaneArray(np.add, 0, 4)
        self._ratios, self._xi = Histogram(), Histogram()
        self._finders = StreakFinder(4, LEAST_ACKS), StreakFinder(4, LEAST_ACKS)

    def add(self, step: Step) -> None:
        """Take the next packets."""
        for crossings, gaps, finder in zip(step.ways, step.ack_gaps, self._finders, strict=True):
            if len(crossings.acks):
                self._take(crossings, gaps, finder)

    def _take(self, crossings: Crossings, gaps: AckGaps, finder: StreakFinder) -> None:
        acks, sent_gap, arrived_gap = crossings.acks, gaps.sent_ns, gaps.arrived_ns
        known = sent_gap >= 0
        defined = sent_gap > self.facts.resolution_ns[crossings.way]
        compressed = defined & (arrived_gap >= 0) & (arrived_gap < COMPRESSED_BELOW * sent_gap)
        ratio = np.maximum(arrived_gap[defined], 0) * _PARTS // sent_gap[defined]
        self._ratios.add(acks.direction[defined], ratio)
        counts = [acks.sum(each) for each in (known, known & ~defined, compressed)]
        self._counts.add(acks.directions, np.stack(counts, axis=1))
        duplicate = acks["kind"] == Kind.DUPLICATE_ACK
        values = (sent_gap * compressed, arrived_gap * compressed, gaps.acked_bytes, duplicate)
        streaks = finder.add(acks.direction, compressed, acks["first_ns"], values)
        self._count(streaks, crossings.way)

    def finish(self) -> None:
        """Take the streaks that were still open at the captures' end."""
        for way, finder in enumerate(self._finders):
            self._count(finder.finish(), way)

    def _count(self, streaks: Streaks, way: int) -> None:
        sent_ns = streaks.total[0] - self.facts.resolution_ns[way]
        arrived_ns = streaks.total[1] + self.facts.resolution_ns[1 - way]
        event = arrived_ns < COMPRESSED_BELOW * sent_ns
        streaks, xi = streaks.where(event), arrived_ns[event] * _PARTS // sent_ns[event]
        self._xi.add(streaks.lane, xi)
        ones = np.ones_like(streaks.rows)
        found = np.stack((ones, streaks.rows, streaks.total[2], streaks.total[3]), axis=1)
        self._events.add_rows(streaks.lane, found)

    def of_direction(self, direction: int) -> Values:
        """Return the quantities of one direction, by name."""
        known, undefined, compressed = (int(n) for n in self._counts.of(direction))
        events, acks, acked, duplicates = (int(n) for n in self._events.of(direction))
        ratio, xi = self._ratios.quantile(0.5, direction), self._xi.quantile(0.5, direction)
        return {
            "ack_gaps": known,
            "ack_gaps_undefined": undefined,
            "ack_gaps_compressed": compressed,
            "ack_spacing_ratio_median": _NO_GAPS if ratio is None else ratio / _PARTS,
            "compression_events": events,
            "compression_acks": acks,
            "compression_bytes": acked,
            "compression_duplicate_share": duplicates / acks if acks else _NO_EVENTS,
            "compression_xi_median": _NO_EVENTS if xi is None else xi / _PARTS,
        }
