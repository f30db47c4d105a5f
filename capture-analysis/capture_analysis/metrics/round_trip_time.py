"""Round trip time: from data to their acknowledgement, at the tap.

    rtt = time of the packet that acknowledges first - time of the newest segment it acknowledges

Unit ms. Data that were sent again are left out (Karn, Partridge 1987). The delay of a delayed ACK
counts only where the newest segment waited for it. Median and 95th percentile from bins 1/128 wide,
the minimum exact.

Vantage: near the data's sender the whole round trip; elsewhere its part from the tap to the
receiver and back.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally

NONE = "no data acknowledged without being sent again"


RTT_MIN = Definition("rtt_min", "ms", "shortest time at the tap from data to their acknowledgement")
RTT_MEDIAN = Definition(
    "rtt_median", "ms", "median time at the tap from data to their acknowledgement"
)
RTT_P95 = Definition(
    "rtt_p95", "ms", "95th percentile of the time at the tap from data to their acknowledgement"
)
RTT_SAMPLES = Definition("rtt_samples", "1", "round trips that were measured")


class RoundTripTime(FromOne):
    """Round trip times from data at the tap to their ACKs at the tap."""

    title = "Round trip time"
    picture = "rtt"
    vantage = "near the data's sender"
    per_direction: ClassVar[Sequence[Definition]] = (
        RTT_MIN,
        RTT_MEDIAN,
        RTT_P95,
        RTT_SAMPLES,
    )

    def __init__(self) -> None:
        self._times = Histogram()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        rows = np.flatnonzero(block.tracked.rtt_ns >= 0)
        self._times.add(block.acknowledging(rows), block.tracked.rtt_ns[rows])

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self._times.merge(other._times)

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        del tally, facts
        bins = self._times.bins(direction)
        if not len(bins):
            return {"rtt_min": NONE, "rtt_median": NONE, "rtt_p95": NONE, "rtt_samples": 0}
        return {
            "rtt_min": int(bins.low[0]) / 1e6,
            "rtt_median": (bins.quantile(0.5) or 0) / 1e6,
            "rtt_p95": (bins.quantile(0.95) or 0) / 1e6,
            "rtt_samples": int(bins.count.sum()),
        }
