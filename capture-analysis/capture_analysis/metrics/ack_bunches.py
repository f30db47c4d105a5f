"""Bunches: pure ACKs that arrive back to back.

ACKs do so when they leave a queue in which they waited.

A bunch is a maximal run of ACKs whose gaps are at most

    kappa * 8 L / C    kappa = 2 (BUNCH_SERVICE_TIMES)

L: the ACK's captured size; C: the rate of the bottleneck that the ACKs pass. A single ACK is a
bunch of one. A bunch's size is given in ACKs and in the bytes that they acknowledge.

Vantage: near the data's sender, behind the queue of the ACKs; before that queue, bunches are those
in which the receiver sent the ACKs. If C is only a guess there is no number: ACKs that merely came
fast would count as bunched.
"""

from typing import Self

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.one_capture.evidence import missing_ack_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks

# ACKs in a bunch of at least this size count as bunched (Paxson asks for three).
BUNCH_ACKS = 3
NO_ACKS = "no pure ACKs"


ACK_BUNCHES = Definition("ack_bunches", "1", "bunches of at least three pure ACKs")
ACK_BUNCH_MEAN = Definition(
    "ack_bunch_mean",
    "acks",
    "mean size of a bunch: pure ACKs at most two of their transmission times apart, or a "
    "single one",
    least=1,
)
ACK_BUNCH_P95 = Definition(
    "ack_bunch_p95", "acks", "95th percentile of the sizes of bunches", least=1
)
ACK_BUNCH_MAX = Definition("ack_bunch_max", "acks", "size of the largest bunch")
ACK_BUNCH_BYTES_MEAN = Definition(
    "ack_bunch_bytes_mean",
    "bytes",
    "mean number of bytes that a bunch of at least three ACKs acknowledges",
)
ACK_BUNCH_BYTES_MAX = Definition(
    "ack_bunch_bytes_max", "bytes", "most bytes that a bunch of at least three ACKs acknowledges"
)
ACKS_BUNCHED = Definition(
    "acks_bunched", "1", "share of pure ACKs in bunches of at least three", most=1
)


class AckBunches(FromOne):
    """Bunches of each direction's pure ACKs: their number and sizes."""

    title = "ACK bunches"
    picture = "bunches"
    vantage = "near the data's sender"
    per_direction = (
        ACK_BUNCHES,
        ACK_BUNCH_MEAN,
        ACK_BUNCH_P95,
        ACK_BUNCH_MAX,
        ACK_BUNCH_BYTES_MEAN,
        ACK_BUNCH_BYTES_MAX,
        ACKS_BUNCHED,
    )

    def __init__(self) -> None:
        # Only bunches of two or more are found; the others follow from the number of all ACKs.
        self._finder = StreakFinder(least_rows=2)
        self.sizes = Histogram()
        self._joined = LaneArray(np.add, 0)
        self._most_bytes = LaneArray(np.maximum, 0)
        # Of bunches of at least BUNCH_ACKS: their number, their ACKs, the bytes acknowledged.
        self._bunched = LaneArray(np.add, 0, 3)

    @override
    def add(self, block: Block) -> None:
        acks = block.acks
        joined = block.acks_back_to_back
        self._take(self._finder.add(acks.direction, joined, acks["time_ns"], acks["acked_bytes"]))

    @override
    def finish(self, facts: Facts) -> None:
        self._take(self._finder.finish())

    def _take(self, bunches: Streaks) -> None:
        self.sizes.add(bunches.lane, bunches.rows)
        self._joined.add_rows(bunches.lane, bunches.rows)
        large = bunches.where(np.flatnonzero(bunches.rows >= BUNCH_ACKS))
        self._most_bytes.add_rows(large.lane, large.total)
        values = np.stack((np.ones_like(large.rows), large.rows, large.total), axis=1)
        self._bunched.add_rows(large.lane, values)

    @override
    def merge(self, other: Self) -> None:
        for name in ("sizes", "_joined", "_most_bytes", "_bunched"):
            getattr(self, name).merge(getattr(other, name))

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        acks = tally.acks(direction)
        why = missing_ack_rate(direction, facts) if acks else NO_ACKS
        if why:
            return dict.fromkeys(self.per_direction, why)
        count, bunched, acked = (int(v) for v in self._bunched.value_of(direction))
        bins = self.sizes.bins(direction)
        alone = acks - int(self._joined.value_of(direction))
        bunches = alone + int(bins.count.sum())
        beyond = (0.95 * bunches - alone) / max(int(bins.count.sum()), 1)
        none = "no bunch of at least three ACKs"
        return {
            ACK_BUNCHES: count,
            ACK_BUNCH_MEAN: acks / bunches,
            ACK_BUNCH_P95: bins.quantile(beyond) or 1 if beyond > 0 else 1,
            ACK_BUNCH_MAX: int(bins.high[-1]) if len(bins) else 1,
            ACK_BUNCH_BYTES_MEAN: acked / count if count else none,
            ACK_BUNCH_BYTES_MAX: self._most_bytes.value_of(direction) if count else none,
            ACKS_BUNCHED: bunched / acks,
        }
