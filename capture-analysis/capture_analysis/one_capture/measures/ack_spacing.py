"""Spacing of pure ACKs at the tap: the time from one to the next.

Unit us. Median and 5th percentile, from bins 1/128 wide. Uncompressed ACKs of back-to-back data
are b * 8 * L_data / C_data apart, compressed ones 8 * L_ack / C_ack (analysis of two-way traffic:
Zhang, Shenker, Clark 1991).

Vantage: any; near the data's sender this spacing clocks the data out.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.tally import Tally


class AckSpacing(Measure):
    """Gaps between successive pure ACKs of each direction."""

    title = "ACK spacing"
    picture = "ack-spacing"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("ack_gap_p5", "us", "gap between pure ACKs that 5 % do not exceed"),
        Quantity("ack_gap_median", "us", "median of the gaps"),
    )

    def __init__(self) -> None:
        self.gaps = Histogram()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        gap_ns = block.acks["gap_ns"]
        rows = np.flatnonzero(gap_ns >= 0)
        self.gaps.add(block.acks.direction[rows], gap_ns[rows])

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self.gaps.merge(other.gaps)

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        del tally, facts
        bins = self.gaps.bins(direction)
        if not len(bins):
            return {q.name: "fewer than two pure ACKs" for q in self.per_direction}
        return {
            "ack_gap_p5": (bins.quantile(0.05) or 0) / 1e3,
            "ack_gap_median": (bins.quantile(0.5) or 0) / 1e3,
        }
