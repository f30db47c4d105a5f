"""Data pendulum: whether both directions' links transmit in turn.

    index = correlation over time of the shares of each bin in which the two links transmit

Unit 1. -1: one link transmits while the other is idle (Heusse, Merritt, Brown, Duda 2011: data and
ACKs fill only one of the two buffers at a time); 0: the links are independent. A link is busy for
8 L / C with each data segment and each pure ACK in its direction, of all connections; packets that
come faster wait. Bins are 2^k ns, 131 us or more (`pendulum_bin`): with bins beyond half a round
trip time the index says little. Times of a second or more in which both links are idle are left
out, here and in the links' utilisation.

Vantage: any; both directions as the tap sees them. Where the tap is not at a bottleneck the two
directions are shifted in time by the path between, which may hide a pendulum; two captures, one on
either side of the bottleneck, show the queues instead.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.busy_series import BusySeries
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.tally import Tally

LEAST_BINS = 20


class Pendulum(Measure):
    """Correlation of the busy times of the links of both directions."""

    title = "Data pendulum"
    picture = "in-flight"
    vantage = "at the bottleneck"
    per_capture: ClassVar[Sequence[Quantity]] = (
        Quantity("pendulum_index", "1", "correlation of the two links' transmitting"),
        Quantity("links_both_busy", "1", "share of time in which both transmit half the time"),
        Quantity("links_neither_busy", "1", "share of time in which neither does"),
        Quantity(
            "link_utilisation", "1", "share of time for which the link of most data transmits"
        ),
        Quantity("link_utilisation_opposite", "1", "the same of the opposite way"),
        Quantity("pendulum_bin", "ms", "over how long each is averaged"),
    )

    def __init__(self) -> None:
        self._series = BusySeries()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        facts = block.facts
        for view, side, ns_per_byte in (
            (block.data, facts.side, facts.data_ns_per_byte),
            (block.acks, 1 - facts.side, facts.ack_ns_per_byte),
        ):
            service_ns = view["frame_bytes"] * view.spread(np.nan_to_num(ns_per_byte))
            # Whole ns: their sum does not depend on the order of the packets.
            self._series.add(view.spread(side), view["time_ns"], service_ns.astype(np.int64))

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self._series.merge(other._series)

    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of the whole capture, by name."""
        shares = self._series.shares()
        busy = shares.busy
        half = busy >= 0.5
        if busy.shape[1] < LEAST_BINS or not busy.any():
            why = "too short, or no rate for the links"
            return {q.name: why for q in self.per_capture}
        directions = tally.directions()
        payload = np.bincount(facts.side[directions], tally.payload.at(directions), minlength=2)
        main = int(payload.argmax())
        still = (busy == busy[:, :1]).all(axis=1).any()
        return {
            "pendulum_index": "a link is always idle or always busy"
            if still
            else float(np.corrcoef(busy[0], busy[1])[0, 1]),
            "links_both_busy": float(half.all(axis=0).mean()),
            "links_neither_busy": float((~half).all(axis=0).mean()),
            "link_utilisation": float(busy[main].mean()),
            "link_utilisation_opposite": float(busy[1 - main].mean()),
            "pendulum_bin": shares.width_ns / 1e6,
        }
