"""Spacing of pure ACKs: the time between two, and its change on the path.

    ratio_i = (r_i - r_{i-1}) / (s_i - s_{i-1})

s, r: when ACK i was sent and when it arrived. Below 0.75 (COMPRESSED_BELOW) an ACK is compressed:
clocks and jitter do not explain that (Paxson 1997, section on ACK compression; his ratios are of
groups of ACKs, these of pairs). Uncompressed ACKs of back-to-back data are spaced by the
transmission times of their data on its bottleneck, compressed ones by an ACK's transmission time on
its own bottleneck (analysis of two-way traffic: Zhang, Shenker, Clark 1991).
"""

from typing import TYPE_CHECKING, Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.packets_between import Crossings

if TYPE_CHECKING:
    from capture_analysis.two_captures.packets_between import AckGaps

_PARTS = 1000

ACK_GAP_P5 = Definition(
    "ack_gap_p5", "us", "5th percentile of the gaps between pure ACKs at the tap"
)
ACK_GAP_MEDIAN = Definition("ack_gap_median", "us", "median gap between pure ACKs at the tap")
ACK_GAPS = Definition("ack_gaps", "1", "gaps between pure ACKs that passed both taps")
ACK_GAPS_UNDEFINED = Definition(
    "ack_gaps_undefined", "1", "gaps between pure ACKs that were too short when sent for a ratio"
)
ACK_SPACING_RATIO = Definition(
    "ack_spacing_ratio",
    "1",
    "median ratio of the spacing of two pure ACKs on arrival to that when sent",
    "Paxson 1997",
)
ACKS_COMPRESSED = Definition(
    "acks_compressed",
    "1",
    "share of the gaps between pure ACKs that shrank on the path to less than 0.75",
    "Paxson 1997",
    most=1,
)


class GapsAtTap(FromOne):
    """Gaps between successive pure ACKs of each direction.

    Median and 5th percentile, from bins 1/128 wide.

    Vantage: any; near the data's sender this spacing clocks the data out.
    """

    title = "ACK spacing"
    picture = "ack-spacing"
    per_direction = (ACK_GAP_P5, ACK_GAP_MEDIAN)

    def __init__(self) -> None:
        self.gaps = Histogram()

    @override
    def add(self, block: Block) -> None:
        gap_ns = block.acks["gap_ns"]
        rows = np.flatnonzero(gap_ns >= 0)
        self.gaps.add(block.acks.direction[rows], gap_ns[rows])

    @override
    def merge(self, other: Self) -> None:
        self.gaps.merge(other.gaps)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        bins = self.gaps.bins(direction)
        if not len(bins):
            return dict.fromkeys(self.per_direction, "fewer than two pure ACKs")
        return {
            ACK_GAP_P5: (bins.quantile(0.05) or 0) / 1e3,
            ACK_GAP_MEDIAN: (bins.quantile(0.5) or 0) / 1e3,
        }


class SpacingRatio(FromPair):
    """Spacing of ACKs on arrival over their spacing when sent.

    A ratio is undefined (`ack_gaps_undefined`) if the ACKs were sent no further apart than the
    resolution of the time stamps. The clocks' offset does not matter, and their drift little: it
    changes a ratio by a part in 10^4.
    """

    title = "ACK spacing, from both ends"
    per_direction = (ACK_GAPS, ACK_GAPS_UNDEFINED, ACK_SPACING_RATIO, ACKS_COMPRESSED)

    @override
    def start(self) -> None:
        # Gaps that are known, undefined, compressed.
        self._counts = LaneArray(np.add, 0, 3)
        self._ratios = Histogram()

    @override
    def add(self, step: Step) -> None:
        for crossings, gaps in zip(step.crossings, step.ack_gaps, strict=True):
            if len(crossings.acks):
                self._take(crossings, gaps)

    def _take(self, crossings: Crossings, gaps: "AckGaps") -> None:
        acks = crossings.acks
        defined = gaps.sent_ns > self.facts.resolution_ns[crossings.path_direction]
        known, compressed = gaps.sent_ns >= 0, gaps.compressed & defined
        ratio = np.maximum(gaps.arrived_ns[defined], 0) * _PARTS // gaps.sent_ns[defined]
        self._ratios.add(acks.direction[defined], ratio)
        counts = [acks.sum(each) for each in (known, known & ~defined, compressed)]
        self._counts.add(acks.directions, np.stack(counts, axis=1))

    @override
    def of_direction(self, direction: int) -> Values:
        known, undefined, compressed = (int(n) for n in self._counts.value_of(direction))
        ratio = self._ratios.quantile(0.5, direction)
        none = "fewer than two ACKs passed both taps"
        return {
            ACK_GAPS: known,
            ACK_GAPS_UNDEFINED: undefined,
            ACK_SPACING_RATIO: none if ratio is None else ratio / _PARTS,
            ACKS_COMPRESSED: compressed / (known - undefined) if known > undefined else none,
        }
