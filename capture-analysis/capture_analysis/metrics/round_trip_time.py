"""Round trip time: from data to its acknowledgement, at the tap.

    rtt = time of the packet that acknowledges first - time of the newest segment it acknowledges

Unit ms. Data that was sent again is left out (Karn, Partridge 1987). The delay of a delayed ACK
counts only if the newest segment waited for it. Median and percentiles are from bins 1/128 wide,
the minimum is exact.

The handshake's three packets give the whole round trip from anywhere on the path, before the
connection has a queue of its own: from SYN to the first packet that answers the SYN-ACK, if neither
was sent again.

Vantage: near the data's sender the whole round trip; elsewhere its part from the tap to the
receiver and back.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from capture_analysis.definition import Definition
from capture_analysis.facts.blocks import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally

NO_HANDSHAKE = "no handshake in the capture, or a packet of it was sent again"
NONE = "no data acknowledged without being sent again"


RTT_MIN = Definition("rtt_min", "ms", "shortest time at the tap from data to its acknowledgement")
RTT_MEDIAN = Definition(
    "rtt_median", "ms", "median time at the tap from data to its acknowledgement"
)
RTT_P95 = Definition(
    "rtt_p95", "ms", "95th percentile of the time at the tap from data to its acknowledgement"
)
RTT_P99 = Definition(
    "rtt_p99", "ms", "99th percentile of the time at the tap from data to its acknowledgement"
)
HANDSHAKE_RTT = Definition(
    "handshake_rtt", "ms", "time from SYN to the answer to its SYN-ACK, the round trip of the path"
)
RTT_SAMPLES = Definition("rtt_samples", "1", "number of round trips measured")
RTT_SPREAD = (RTT_MIN, RTT_MEDIAN, RTT_P95, RTT_P99)


class RoundTripTime(FromOne):
    """Round trip times from data at the tap to its ACKs at the tap."""

    title = "Round trip time"
    picture = "rtt"
    vantage = "near the data's sender"
    per_direction: ClassVar[Sequence[Definition]] = (
        *RTT_SPREAD,
        RTT_SAMPLES,
        HANDSHAKE_RTT,
    )

    def __init__(self) -> None:
        self._times = Histogram()

    @override
    def add(self, block: Block) -> None:
        rows = np.flatnonzero(block.tracked.rtt_ns >= 0)
        self._times.add(block.acknowledging(rows), block.tracked.rtt_ns[rows])

    @override
    def merge(self, other: Self) -> None:
        self._times.merge(other._times)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        bins, whole_ns = self._times.bins(direction), float(facts.handshake_ns[direction])
        quantiles = [bins.quantile(q) for q in (0.5, 0.95, 0.99)]
        low = int(bins.low[0]) if len(bins) else None
        times = {
            each: NONE if time is None else time / 1e6
            for each, time in zip(RTT_SPREAD, (low, *quantiles), strict=True)
        }
        return {
            **times,
            RTT_SAMPLES: int(bins.count.sum()),
            HANDSHAKE_RTT: NO_HANDSHAKE if np.isnan(whole_ns) else whole_ns / 1e6,
        }
