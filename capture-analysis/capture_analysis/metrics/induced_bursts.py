"""Bursts that bunches of ACKs induce: data sent along with each bunch.

A segment is induced if it comes at most one ACK's transmission time after a pure ACK of its
direction. A burst is the induced payload during one bunch of at least three ACKs (see ack_bunches).
It reaches the data's bottleneck at the rate of the sender's link, and so becomes a queue.

Unit bytes.

Vantage: near the data's sender (a tenth of the round trip time at most), else undefined: elsewhere
data does not follow the ACKs within so short a time.
"""

from typing import Self

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.one_capture.evidence import missing_ack_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks

_NEVER = np.iinfo(np.int64).min // 2


INDUCED_BURST_MEAN = Definition(
    "induced_burst_mean", "bytes", "mean number of bytes sent along with a bunch of ACKs"
)
INDUCED_BURST_P95 = Definition(
    "induced_burst_p95", "bytes", "95th percentile of the bytes sent along with a bunch of ACKs"
)
INDUCED_BURST_MAX = Definition(
    "induced_burst_max", "bytes", "most bytes sent along with a bunch of ACKs"
)


class InducedBursts(FromOne):
    """Bytes that each direction's sender emits along with a bunch of ACKs."""

    title = "Induced bursts"
    vantage = "near the data's sender"
    per_direction = (INDUCED_BURST_MEAN, INDUCED_BURST_P95, INDUCED_BURST_MAX)

    def __init__(self) -> None:
        self._finder = StreakFinder(2, BUNCH_ACKS)
        self._latest = LaneArray(np.maximum, _NEVER)
        self._bytes = Histogram()
        # The number of bursts, and the sum of their bytes.
        self._sums = LaneArray(np.add, 0, 2)

    @override
    def add(self, block: Block) -> None:
        near_service_ns = np.where(block.facts.tap_at <= NEAR, block.facts.ack_service_ns, np.nan)
        near = ~np.isnan(near_service_ns)
        if not (near[block.acks.directions].any() or near[block.data.directions].any()):
            return
        every = block.all
        is_ack, is_data = block.is_ack.take(every.rows), block.is_data.take(every.rows)
        since_ns = every["time_ns"] - self._latest_ack_ns(block, is_ack)
        induced = is_data & (since_ns <= every.spread(near_service_ns))
        joined = np.ones(len(every), dtype=np.bool_)
        joined[np.flatnonzero(is_ack)] = block.acks_back_to_back
        rows = np.flatnonzero(is_ack | induced)
        streaks = self._finder.add(
            every.direction.take(rows),
            joined.take(rows),
            every["time_ns"].take(rows),
            (every["payload_bytes"].take(rows) * induced.take(rows), is_ack.take(rows)),
        )
        self._take(streaks)

    def _latest_ack_ns(self, block: Block, is_ack: BoolArray) -> IntArray:
        """Find the time of the latest ACK before each packet, or _NEVER."""
        every, acks = block.all, block.acks
        rows = np.arange(len(every))
        latest = np.maximum.accumulate(rows * is_ack)
        # The latest ACK before a direction's first ACK in this block comes from an earlier block.
        within = (latest >= np.repeat(every.starts, every.counts)) & is_ack.take(latest)
        outside = (~within).nonzero()[0]
        ack_ns = every["time_ns"].take(latest)
        ack_ns[outside] = self._latest.values_of(every.direction[outside])
        self._latest.replace(acks.directions, acks["time_ns"][acks.ends])
        return ack_ns

    @override
    def finish(self, facts: Facts) -> None:
        self._take(self._finder.finish())

    def _take(self, streaks: Streaks) -> None:
        bursts = streaks.where(np.flatnonzero(streaks.total[1] >= BUNCH_ACKS))
        sent = bursts.total[0]
        self._bytes.add(bursts.lane, sent)
        self._sums.add_rows(bursts.lane, np.stack((np.ones_like(sent), sent), axis=1))

    @override
    def merge(self, other: Self) -> None:
        for name in ("_bytes", "_sums"):
            getattr(self, name).merge(getattr(other, name))

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.tap_at[direction] <= NEAR:
            return dict.fromkeys(self.per_direction, "the tap is not near the data's sender")
        bursts, total = (int(n) for n in self._sums.value_of(direction))
        unrated = missing_ack_rate(direction, facts)
        if unrated or not bursts:
            return dict.fromkeys(self.per_direction, unrated or "no bunch of at least three ACKs")
        bins = self._bytes.bins(direction)
        return {
            INDUCED_BURST_MEAN: total / bursts,
            INDUCED_BURST_P95: bins.quantile(0.95) or 0,
            INDUCED_BURST_MAX: int(bins.high[-1]),
        }
