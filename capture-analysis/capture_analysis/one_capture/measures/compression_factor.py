"""Compression factor: how closely ACKs come, relative to their data.

It is how many times closer ACKs come than their data can have arrived.

    factor = (acked bytes' transmission time on the data's bottleneck) / (gap before the ACK)
    bound  = b * (L_data / L_ack) * (C_ack / C_data)

Unit 1, of each ACK of new data; compressed if above 1 / 0.75 (COMPRESSED_BELOW, Paxson 1997). A
shared queue can reach the bound (analysis of Zhang, Shenker, Clark's mechanism): ACKs back to back,
of b segments each in the mean (with two captures, factor and bound are for one segment). L are IP
packets, the smallest size a link can send: with link headers the bound is lower.

Self-check: an ACK closer to the one before than L_ack / C_ack was not sent by a link of that rate
(`acks_too_close`): the capture's time stamps are batched (interrupt moderation, offload), the rate
is estimated too low, or the tap is before the ACKs' bottleneck.

Vantage: near the data's sender. Before the ACKs' queue the factor shows only how the receiver sent
them. Gaps of 0 have no factor and are counted (`acks_tied`). No better than the rates are.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW, factor_bound
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts, FloatArray
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.measures.utilisation import NO_RATE
from capture_analysis.one_capture.tally import Tally

# Resolution of the histogram: factors are counted in thousandths.
_PARTS = 1000
# Relative error allowed for time stamps and rates.
_TOLERANCE = 0.02


class CompressionFactor(Measure):
    """Compression factors of each direction's ACKs, with their bound."""

    title = "Compression factor"
    picture = "compression-cdf"
    vantage = "near the data's sender"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("compression_factor", "1", "median of the compressed ACKs' factors"),
        Quantity("compression_factor_p95", "1", "95th percentile of them"),
        Quantity("compression_factor_bound", "1", "what a shared queue can reach"),
        Quantity("acks_compressed", "1", "share of the ACKs of new data that are compressed"),
        Quantity("acks_tied", "1", "ACKs of new data at the time of the one before"),
        Quantity("acks_too_close", "1", "ACKs closer to the one before than their link can send"),
    )

    def __init__(self) -> None:
        self.factors = Histogram()
        # Of the ACKs of new data that follow another ACK: all, tied, too close.
        self._counts = LaneArray(np.add, 0, 3)

    def add(self, block: Block) -> None:
        """Take the next packets."""
        acks, facts = block.acks, block.facts
        gap_ns, acked = acks["gap_ns"], acks["acked_bytes"]
        has_gap = (acked > 0) & (gap_ns >= 0)
        too_close = gap_ns < acks.spread(_least_gap_ns(facts))
        sums = [acks.sum(has_gap & which) for which in (True, gap_ns == 0, too_close)]
        self._counts.add(acks.directions, np.stack(sums, axis=1))
        expected_ns = acked * acks.spread(facts.acked_ns_per_byte)
        compressed = np.flatnonzero((gap_ns > 0) & (gap_ns < COMPRESSED_BELOW * expected_ns))
        factor = np.rint(_PARTS * expected_ns[compressed] / gap_ns[compressed])
        self.factors.add(acks.direction[compressed], factor.astype(np.int64))

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self.factors.merge(other.factors)
        self._counts.merge(other._counts)

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        del tally
        acks, tied, too_close = (int(n) for n in self._counts.of(direction))
        if not acks or np.isnan(facts.acked_ns_per_byte[direction]):
            why = NO_RATE if acks else "fewer than two pure ACKs of new data"
            return {q.name: why for q in self.per_direction}
        bins = self.factors.bins(direction)
        middle, high = bins.quantile(0.5), bins.quantile(0.95)
        none = "no ACK is compressed"
        return {
            "compression_factor": middle / _PARTS if middle else none,
            "compression_factor_p95": high / _PARTS if high else none,
            "compression_factor_bound": bound(direction, facts),
            "acks_compressed": (int(bins.count.sum()) + tied) / acks,
            "acks_tied": tied,
            "acks_too_close": too_close,
        }


def bound(direction: int, facts: Facts) -> float:
    """Compute the compression factor of ACKs back to back.

    Each of the mean number of segments per ACK.
    """
    ack_ns = _least_ack_ns(facts)[direction]
    segment = facts.segment_bytes[direction] + facts.header_bytes[direction]
    data_ns = segment * facts.data_ns_per_byte[direction]
    return float(facts.segments_per_ack[direction]) * factor_bound(float(data_ns), float(ack_ns))


def _least_ack_ns(facts: Facts) -> FloatArray:
    """Compute an ACK's transmission time without link headers."""
    return facts.header_bytes * facts.ack_ns_per_byte


def _least_gap_ns(facts: Facts) -> FloatArray:
    return (1 - _TOLERANCE) * _least_ack_ns(facts)
