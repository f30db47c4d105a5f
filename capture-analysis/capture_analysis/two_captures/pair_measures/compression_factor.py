"""Compression factor: how many times closer ACKs arrive than sent.

The factor is compared with its bound.

    factor_i = (s_i - s_{i-1}) / (r_i - r_{i-1}) / b_i
    bound    = (data's transmission time) / (ACK's transmission time)

Unit 1, for one segment per ACK: ACK i acknowledges b_i segments. (In one capture the factor is not
divided by b_i; there the bound is multiplied by the mean of b_i.) Only ACKs that were sent back to
back and have a ratio below 0.75 have a factor: their data left the bottleneck one behind the other,
at most 1.05 transmission times apart for each of the b_i segments. A pause between clusters may
shrink without bound and says nothing. Transmission times are measured between the taps, on packets
that waited (path_facts.py).

Self-check: a factor above its bound cannot come from a queue (`factors_above_bound`); time stamps
were batched, or the bottleneck is not between the taps. ACKs that arrive in one instant have no
factor and are counted.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from capture_analysis.ack_compression import BACK_TO_BACK, COMPRESSED_BELOW, factor_bound
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.two_captures.ack_gaps import AckGaps
from capture_analysis.two_captures.crossings import Crossings
from capture_analysis.two_captures.pair_measure import PairMeasure, Quantity, Step, Values

_PARTS = 1000
# Relative error allowed for time stamps in ns and medians.
_TOLERANCE = 0.02
NO_BOTTLENECK = "too few packets waited between the taps to tell how long the bottleneck takes"
_NONE = "no ACK that was sent back to back is compressed"


class CompressionFactor(PairMeasure):
    """Compression factors of ACKs sent back to back, with their bound."""

    title = "Compression factor"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("compression_factor_median", "1", "median of the compressed ACKs' factors"),
        Quantity("compression_factor_max", "1", "largest of them"),
        Quantity("compression_factor_bound", "1", "what a queue can reach"),
        Quantity("factors", "1", "compressed ACKs that were sent back to back"),
        Quantity("factors_tied", "1", "such that arrived in one instant"),
        Quantity("factors_above_bound", "1", "such with a factor above the bound: an artefact"),
    )

    def start(self) -> None:
        """Create the empty counts and sums."""
        self._factors = Histogram()
        self._most = LaneArray(np.maximum, 0)
        self._counts = LaneArray(np.add, 0, 3)
        self._way_of = LaneArray(np.maximum, -1)

    def _bound(self, way: int) -> float | None:
        """Return the bound for ACKs that go one way; None if it is unknown."""
        data_ns, ack_ns = self.facts.ways[1 - way].data_ns, self.facts.ways[way].ack_ns
        return None if data_ns is None or ack_ns is None else factor_bound(data_ns, ack_ns)

    def add(self, step: Step) -> None:
        """Take the next packets."""
        for crossings, gaps in zip(step.ways, step.ack_gaps, strict=True):
            bound = self._bound(crossings.way)
            if bound is not None and len(crossings.acks):
                self._take(crossings, gaps, bound)

    def _take(self, crossings: Crossings, gaps: AckGaps, bound: float) -> None:
        acks, data = crossings.acks, self.facts.ways[1 - crossings.way]
        sent, arrived = gaps.sent_ns, gaps.arrived_ns
        payload = max(data.data_bytes - self.facts.ways[crossings.way].ack_bytes, 1)
        segments = np.maximum(-(-gaps.acked_bytes // payload), 1)
        longest = BACK_TO_BACK * (data.data_ns or 0.0) * segments
        compressed = (sent > 0) & (sent <= longest)
        compressed &= (arrived >= 0) & (arrived < COMPRESSED_BELOW * sent)
        tied = compressed & (arrived == 0)
        compressed &= ~tied
        factor = sent[compressed] * _PARTS // (arrived[compressed] * segments[compressed])
        lanes = acks.direction[compressed]
        self._factors.add(lanes, factor)
        above = np.zeros(len(acks), dtype=np.bool_)
        above[np.flatnonzero(compressed)] = factor > bound * _PARTS * (1 + _TOLERANCE)
        self._most.add_rows(lanes, factor)
        counts = np.stack([acks.sum(each) for each in (compressed, tied, above)], axis=1)
        self._counts.add(acks.directions, counts)
        self._way_of.add(acks.directions, np.full(len(acks.directions), crossings.way))

    def of_direction(self, direction: int) -> Values:
        """Return the quantities of one direction, by name."""
        way = self._way_of.of(direction)
        bound = self._bound(way) if way >= 0 else None
        if bound is None:
            return {q.name: NO_BOTTLENECK for q in self.per_direction}
        count, tied, above = (int(n) for n in self._counts.of(direction))
        median = self._factors.quantile(0.5, direction)
        return {
            "compression_factor_median": _NONE if median is None else median / _PARTS,
            "compression_factor_max": self._most.of(direction) / _PARTS if count else _NONE,
            "compression_factor_bound": bound,
            "factors": count,
            "factors_tied": tied,
            "factors_above_bound": above,
        }
