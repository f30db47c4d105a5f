"""Bunches by cause: ACKs held by the receiver, or bunched by a queue.

Of each bunch of at least three ACKs (see ack_bunches): dT_r is the time from its first to its last
ACK at the tap, dT_s the same time by the time stamps option, C_r and C_s are the resolutions of
both (1 ns, the tick), and D is the transmission time, on the data's bottleneck, of the data that
all its ACKs but the first acknowledge:

    held       if dT_s + C_s < 0.75 D     sent faster than the data can have arrived
    compressed if dT_s - C_s > (dT_r + C_r) / 0.75     sent over a longer time than they arrived in
    undecided  otherwise: the tick is too coarse

Unit 1, numbers of bunches. Paxson 1997 calls the first kind receiver compression. With a tick of
1 ms a bunch must acknowledge some ms of data to be decided.

Vantage: near the data's sender, behind the queue of the ACKs; needs time stamps. ACKs that the
receiver's host queued after making them count as compressed. An ACK that follows the filling of a
hole acknowledges much that had arrived before, and may make a bunch seem held.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import Mark
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.measures.ack_bunches import BUNCH_ACKS
from capture_analysis.one_capture.measures.paxson_events import CAPTURE_RESOLUTION_NS
from capture_analysis.one_capture.tally import Tally
from capture_analysis.streaks import StreakFinder, Streaks


class HeldAcks(Measure):
    """Each direction's bunches of ACKs by cause: the receiver or a queue."""

    title = "ACKs held by the receiver"
    picture = "ack-spacing"
    vantage = "near the data's sender; needs time stamps in the ACKs"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("bunches_held", "1", "bunches sent faster than their data can have arrived"),
        Quantity("bunches_compressed", "1", "bunches sent over a longer time than they came in"),
        Quantity("bunches_undecided", "1", "bunches of which time stamps do not tell"),
    )

    def __init__(self) -> None:
        # Streaks are timed in ticks here; they sum bytes, ns at the tap, and ACKs with a stamp.
        self._finder = StreakFinder(3, BUNCH_ACKS)
        self._bunches = LaneArray(np.add, 0, 3)

    def add(self, block: Block) -> None:
        """Take the next packets."""
        acks = block.acks
        if np.isnan(block.facts.tick_ns[acks.directions]).all():
            return
        joined = block.acks_back_to_back
        stamped = (acks["marks"] & Mark.TIMESTAMPS) != 0
        sums = (acks["acked_bytes"] * joined, acks["gap_ns"] * joined, stamped)
        streaks = self._finder.add(acks.direction, joined, acks["ts_value"], sums)
        self._take(streaks, block.facts)

    def finish(self, facts: Facts) -> None:
        """Take the bunches that were still open at the capture's end."""
        self._take(self._finder.finish(), facts)

    def _take(self, streaks: Streaks, facts: Facts) -> None:
        streaks = streaks.where(streaks.total[2] == streaks.rows)
        tick_ns = facts.tick_ns[streaks.lane]
        sent_ns = (streaks.last_ns - streaks.first_ns).astype(np.int32) * tick_ns
        data_ns = streaks.total[0] * facts.acked_ns_per_byte[streaks.lane]
        held = sent_ns + tick_ns < COMPRESSED_BELOW * data_ns
        arrived_ns = streaks.total[1] + CAPTURE_RESOLUTION_NS
        compressed = ~held & (arrived_ns < COMPRESSED_BELOW * (sent_ns - tick_ns))
        values = (held, compressed, ~held & ~compressed)
        self._bunches.add_rows(streaks.lane, np.stack(values, axis=1).astype(np.int64))

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self._bunches.merge(other._bunches)

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        del tally
        if np.isnan(facts.tick_ns[direction]):
            why = "no time stamps in the ACKs, or too few to know their tick"
            return {q.name: why for q in self.per_direction}
        names = (q.name for q in self.per_direction)
        return dict(zip(names, (int(n) for n in self._bunches.of(direction)), strict=True))
