"""Round trip time: from data to its acknowledgement, at the tap.

    rtt = time of the packet that acknowledges first - time of the newest segment it acknowledges

Unit ms. Data that was sent again is left out (Karn, Partridge 1987). The delay of a delayed ACK
counts only if the newest segment waited for it. Median and percentiles are from bins 1/128 wide,
the minimum is exact.

`rtt_growth` is the correlation of the round trip with the data in flight before the ACK: near 1 if
a queue grows with the flight, near 0 if the receiver delays ACKs, or sends them with its answers.

The handshake's three packets give the whole round trip from anywhere on the path, before the
connection has a queue of its own: from SYN to the first packet that answers the SYN-ACK, if neither
was sent again.

Vantage: near the data's sender the whole round trip; elsewhere its part from the tap to the
receiver and back.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_HANDSHAKE = "no handshake in the capture, or a packet of it was sent again"
NONE = "no data acknowledged without being sent again"
COARSE = "the clock has too long steps: no time passes from data to its acknowledgement"
# With steps as short as this one, an ACK at the time of its data is an ACK without delay.
_FINE_NS = 1_000


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
RTT_GROWTH = Definition(
    "rtt_growth", "1", "correlation of round trips with the data in flight", least=-1, most=1
)
RTT_SAMPLES = Definition("rtt_samples", "1", "number of round trips measured")
RTT_SPREAD = (RTT_MIN, RTT_MEDIAN, RTT_P95, RTT_P99)


# Flights and round trips count in units of 64 bytes and 4 us.
_BYTES, _NS = 6, 12
_MOST_BYTES, _MOST_NS = 1 << 26, 1 << 34
NO_GROWTH = "no round trips near the data's sender whose flights differ"


class RoundTripTime(FromOne):
    """Round trip times from data at the tap to its ACKs at the tap."""

    title = "Round trip time"
    picture = "rtt"
    vantage = "near the data's sender"
    per_direction = (*RTT_SPREAD, RTT_GROWTH, RTT_SAMPLES, HANDSHAKE_RTT)

    def __init__(self) -> None:
        self._times = Histogram()
        # Number, flights, round trips, their squares, and their products.
        self._sums = LaneArray(np.add, 0, 6)

    @override
    def add(self, block: Block) -> None:
        rows = np.flatnonzero(block.tracked.rtt_ns >= 0)
        direction, rtt_ns = block.acknowledged_direction(rows), block.tracked.rtt_ns[rows]
        self._times.add(direction, rtt_ns)
        acks = block.acks
        near = acks.spread(block.facts.tap_at <= NEAR) & (acks["rtt_ns"] >= 0)
        near &= acks["acked_bytes"] > 0
        if not near.any():
            return
        # In shares of the largest flight and of round trips up to 17 s, whose squares have room.
        flight = np.minimum(acks["in_flight_bytes"] + acks["acked_bytes"], _MOST_BYTES) >> _BYTES
        trip = np.minimum(acks["rtt_ns"], _MOST_NS) >> _NS
        each = np.ones(len(acks), np.int64), flight, trip, flight**2, trip**2, flight * trip
        self._sums.add(acks.directions, np.stack([acks.sum(x * near) for x in each], axis=1))

    @override
    def merge(self, other: Self) -> None:
        self._times.merge(other._times)
        self._sums.merge(other._sums)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        bins, whole_ns = self._times.bins(direction), float(facts.handshake_ns[direction])
        quantiles = [bins.quantile(q) for q in (0.5, 0.95, 0.99)]
        low = int(bins.low[0]) if len(bins) else None
        passed = tally.lives.value_of(direction >> 1)[lives.TIME]
        coarse = facts.clock_ns[direction] > _FINE_NS or not passed
        why = COARSE if coarse and quantiles[-1] == 0 else NONE
        times = {
            each: time / 1e6 if time is not None and why is NONE else why
            for each, time in zip(RTT_SPREAD, (low, *quantiles), strict=True)
        }
        return {
            **times,
            RTT_GROWTH: _correlation([int(n) for n in self._sums.value_of(direction)]),
            RTT_SAMPLES: int(bins.count.sum()),
            HANDSHAKE_RTT: NO_HANDSHAKE if np.isnan(whole_ns) else whole_ns / 1e6,
        }


def _correlation(sums: Sequence[int]) -> Value:
    """Return Pearson's correlation from exact sums; a reason if either does not vary."""
    count, x, y, xx, yy, xy = sums
    spread = (count * xx - x * x) * (count * yy - y * y)
    return (count * xy - x * y) / math.sqrt(spread) if spread > 0 else NO_GROWTH
