"""Compression factor: the ratio of the spacing of ACKs when sent to that on arrival.

    factor_i = (s_i - s_{i-1}) / (r_i - r_{i-1})
    bound    = b * (a segment's transmission time) / (an ACK's transmission time)

s, r: when ACK i was sent and when it arrived; b: mean number of segments that such ACKs acknowledge
(in a run: 1, the others are left out; in one capture: the mean over all ACKs of new data). Only
compressed ACKs count, those whose spacing on arrival is below 0.75 (COMPRESSED_BELOW, Paxson 1997)
of that when sent, and of those only the ACKs of data that came back to back: a pause between two
clusters may shrink without bound, which is no sign of compression. A shared queue can reach the
bound: ACKs that leave it back to back (the mechanism of Zhang, Shenker, Clark 1991).

Self-check: a factor above its bound cannot come from a queue. Time stamps were batched, or the
bottleneck is elsewhere than assumed.
"""

from typing import TYPE_CHECKING, Self

import numpy as np

from capture_analysis.ack_compression import BACK_TO_BACK, COMPRESSED_BELOW, factor_bound
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts, FloatArray
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.metrics.ack_spacing import ACKS_COMPRESSED
from capture_analysis.one_capture.evidence import NO_ACK_RATE, missing_evidence, missing_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.packets_between import Crossings

if TYPE_CHECKING:
    from capture_analysis.two_captures.packets_between import AckGaps

# Resolution of the histogram: factors are counted in thousandths.
_PARTS = 1000
# Relative error allowed for time stamps, rates and medians.
BOUND_TOLERANCE = 0.02


COMPRESSION_FACTOR = Definition(
    "compression_factor",
    "1",
    "median ratio of the spacing when sent to that on arrival, for compressed ACKs of "
    "back-to-back data",
    "Zhang, Shenker, Clark 1991",
    least=1,
)
COMPRESSION_FACTOR_P95 = Definition(
    "compression_factor_p95",
    "1",
    "95th percentile of the compression factors of compressed ACKs",
    "Zhang, Shenker, Clark 1991",
    least=1,
)
COMPRESSION_FACTOR_BOUND = Definition(
    "compression_factor_bound",
    "1",
    "ratio of the transmission time of the segments that an ACK acknowledges to its own: "
    "the largest effect of a queue",
    "Zhang, Shenker, Clark 1991",
)
ACKS_TIED = Definition("acks_tied", "1", "ACKs of new data at the time of the one before")
ACKS_TOO_CLOSE = Definition(
    "acks_too_close", "1", "ACKs of new data closer to the one before than their link can send"
)

NO_BOTTLENECK = (
    "too few packets waited between the taps to measure the bottleneck's transmission times"
)
_NONE = "no ACK that was sent back to back is compressed"


COMPRESSION_FACTOR_MAX = Definition(
    "compression_factor_max",
    "1",
    "largest compression factor",
    "Zhang, Shenker, Clark 1991",
    least=1,
)
FACTORS = Definition("factors", "1", "compressed ACKs of back-to-back data that have a factor")
FACTORS_TIED = Definition(
    "factors_tied", "1", "compressed ACKs of back-to-back data that arrived in one instant"
)
FACTORS_ABOVE_BOUND = Definition(
    "factors_above_bound",
    "1",
    "compressed ACKs of back-to-back data with a factor above the bound: an artefact",
)


class FactorAtTap(FromOne):
    """Compression factors of each direction's ACKs, with their bound.

    One capture does not show when ACKs were sent: their data is assumed to have come back to back,
    s_i - s_{i-1} = (acked bytes' transmission time on the data's bottleneck). An ACK that was sent
    later, and whose gap shrank to no less than that, is not seen as compressed. Sizes are those of
    IP packets, the least that a link can send: with link headers the bound is lower.

    Vantage: near the data's sender, behind the queue of the ACKs.

    An ACK closer to the one before than L_ack / C_ack was not sent by a link of that rate
    (`acks_too_close`): the capture's time stamps are batched (interrupt moderation, offload), the
    rate is estimated too low, or the tap is before the ACKs' bottleneck, where the factor only
    shows how the receiver sent. Gaps of 0 have no factor and are counted (`acks_tied`). The factors
    are no more accurate than the rates.
    """

    title = "Compression factor"
    picture = "compression-cdf"
    vantage = "near the data's sender"
    per_direction = (
        COMPRESSION_FACTOR,
        COMPRESSION_FACTOR_P95,
        COMPRESSION_FACTOR_BOUND,
        ACKS_COMPRESSED,
        ACKS_TIED,
        ACKS_TOO_CLOSE,
    )

    def __init__(self) -> None:
        self.factors = Histogram()
        # Among ACKs of new data that follow another ACK: counts of tied ACKs, and of ACKs too
        # close.
        self._counts = LaneArray(np.add, 0, 2)

    @override
    def add(self, block: Block) -> None:
        acks, facts = block.acks, block.facts
        gap_ns, acked = acks["gap_ns"], acks["acked_bytes"]
        has_gap = (acked > 0) & (gap_ns >= 0)
        too_close = gap_ns < acks.spread(_least_gap_ns(facts))
        sums = [acks.sum(has_gap & which) for which in (gap_ns == 0, too_close)]
        self._counts.add(acks.directions, np.stack(sums, axis=1))
        expected_ns = acked * acks.spread(facts.acked_ns_per_byte)
        compressed = np.flatnonzero((gap_ns > 0) & (gap_ns < COMPRESSED_BELOW * expected_ns))
        factor = np.rint(_PARTS * expected_ns[compressed] / gap_ns[compressed])
        self.factors.add(acks.direction[compressed], factor.astype(np.int64))

    @override
    def merge(self, other: Self) -> None:
        self.factors.merge(other.factors)
        self._counts.merge(other._counts)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        why = missing_evidence(direction, tally, facts) or missing_rate(direction, facts)
        if why:
            return dict.fromkeys(self.per_direction, why)
        acks = tally.spaced_acks.value_of(direction)
        tied, too_close = (int(n) for n in self._counts.value_of(direction))
        bins = self.factors.bins(direction)
        middle, high = bins.quantile(0.5), bins.quantile(0.95)
        none, most = "no ACK is compressed", bound_factor(direction, facts)
        return {
            COMPRESSION_FACTOR: middle / _PARTS if middle else none,
            COMPRESSION_FACTOR_P95: high / _PARTS if high else none,
            COMPRESSION_FACTOR_BOUND: NO_ACK_RATE if np.isnan(most) else most,
            ACKS_COMPRESSED: (int(bins.count.sum()) + tied) / acks,
            ACKS_TIED: tied,
            ACKS_TOO_CLOSE: too_close,
        }


def bound_factor(direction: int, facts: Facts) -> float:
    """Compute the compression factor of back-to-back ACKs.

    Each acknowledges the mean number of segments per ACK.
    """
    ack_ns = _least_ack_ns(facts)[direction]
    segment = facts.segment_bytes[direction] + facts.header_bytes[direction]
    data_ns = segment * facts.data_ns_per_byte[direction]
    return float(facts.segments_per_ack[direction]) * factor_bound(float(data_ns), float(ack_ns))


def _least_ack_ns(facts: Facts) -> FloatArray:
    """Compute an ACK's transmission time without link headers."""
    return facts.header_bytes * facts.ack_ns_per_byte


def _least_gap_ns(facts: Facts) -> FloatArray:
    return (1 - BOUND_TOLERANCE) * _least_ack_ns(facts)


class FactorBetweenTaps(FromPair):
    """Compression factors of ACKs sent back to back, with their bound.

    ACKs were sent back to back if they are at most 1.05 transmission times of data apart for each
    segment acknowledged. Transmission times are measured between the taps, on packets that waited
    (path_facts.py). ACKs that arrive in one instant have no factor and are counted.
    """

    title = "Compression factor"
    per_direction = (
        COMPRESSION_FACTOR,
        COMPRESSION_FACTOR_MAX,
        COMPRESSION_FACTOR_BOUND,
        FACTORS,
        FACTORS_TIED,
        FACTORS_ABOVE_BOUND,
    )

    @override
    def start(self) -> None:
        self._factors = Histogram()
        self._most = LaneArray(np.maximum, 0)
        # Counts of factors, of tied ACKs, of factors above the bound, and of segments that ACKs
        # with a factor acknowledged.
        self._counts = LaneArray(np.add, 0, 4)
        self._path_direction_of = LaneArray(np.maximum, -1)

    def _bound(self, path_direction: int) -> float | None:
        """Return the bound for ACKs of one segment in one direction; None if unknown."""
        data_ns = self.facts.directions[1 - path_direction].data_ns
        ack_ns = self.facts.directions[path_direction].ack_ns
        return factor_bound(data_ns, ack_ns) if data_ns is not None and ack_ns else None

    @override
    def add(self, step: Step) -> None:
        for crossings, gaps in zip(step.crossings, step.ack_gaps, strict=True):
            bound = self._bound(crossings.path_direction)
            if bound is not None and len(crossings.acks):
                self._take(crossings, gaps, bound)

    def _take(self, crossings: Crossings, gaps: "AckGaps", bound: float) -> None:
        acks, data = crossings.acks, self.facts.directions[1 - crossings.path_direction]
        sent, arrived = gaps.sent_ns, gaps.arrived_ns
        ack_bytes = self.facts.directions[crossings.path_direction].ack_bytes
        payload = max(data.data_bytes - ack_bytes, 1)
        segments = np.maximum(-(-gaps.acked_bytes // payload), 1)
        longest = BACK_TO_BACK * (data.data_ns or 0.0) * segments
        compressed = (sent > 0) & (sent <= longest)
        compressed &= gaps.compressed
        tied = compressed & (arrived == 0)
        compressed &= ~tied
        factor = sent[compressed] * _PARTS // arrived[compressed]
        lanes = acks.direction[compressed]
        self._factors.add(lanes, factor)
        above = np.zeros(len(acks), dtype=np.bool_)
        above[np.flatnonzero(compressed)] = factor > segments[compressed] * bound * _PARTS * (
            1 + BOUND_TOLERANCE
        )
        self._most.add_rows(lanes, factor)
        sums = (compressed, tied, above, segments * compressed)
        counts = np.stack([acks.sum(each) for each in sums], axis=1)
        self._counts.add(acks.directions, counts)
        self._path_direction_of.add(
            acks.directions, np.full(len(acks.directions), crossings.path_direction)
        )

    @override
    def of_direction(self, direction: int) -> Values:
        path_direction = self._path_direction_of.value_of(direction)
        bound = self._bound(path_direction) if path_direction >= 0 else None
        if bound is None:
            return dict.fromkeys(self.per_direction, NO_BOTTLENECK)
        count, tied, above, segments = (int(n) for n in self._counts.value_of(direction))
        median = self._factors.quantile(0.5, direction)
        return {
            COMPRESSION_FACTOR: _NONE if median is None else median / _PARTS,
            COMPRESSION_FACTOR_MAX: self._most.value_of(direction) / _PARTS if count else _NONE,
            COMPRESSION_FACTOR_BOUND: bound * (segments / count) if count else _NONE,
            FACTORS: count,
            FACTORS_TIED: tied,
            FACTORS_ABOVE_BOUND: above,
        }
