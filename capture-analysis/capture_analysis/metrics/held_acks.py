"""ACKs that were bunched already when the receiver sent them.

A bunch that the receiver made is not the work of a queue on the ACKs' path; Paxson (1997) calls it
receiver compression and counts it apart. If ACKs were sent faster than their data can have passed
its bottleneck, they were held.
"""

from typing import TYPE_CHECKING, Self

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import Mark
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.metrics.compression_events import CAPTURE_RESOLUTION_NS, NO_TICKS
from capture_analysis.metrics.compression_factor import NO_BOTTLENECK
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.packets_between import Crossings

if TYPE_CHECKING:
    from capture_analysis.two_captures.packets_between import AckGaps

BUNCHES_HELD = Definition(
    "bunches_held",
    "1",
    "bunches of ACKs sent at least 4/3 as fast as their data can have arrived",
    "Paxson 1997",
)
BUNCHES_COMPRESSED = Definition(
    "bunches_compressed",
    "1",
    "bunches of ACKs sent over at least 4/3 of the time in which they arrived",
    "Paxson 1997",
)
BUNCHES_UNDECIDED = Definition(
    "bunches_undecided",
    "1",
    "bunches of ACKs whose time stamps show neither holding nor compression",
    "Paxson 1997",
)

HELD_EVENTS = Definition(
    "held_events",
    "1",
    "runs of at least three ACKs sent at least 4/3 as fast as their data can have come",
    "Paxson 1997",
)
HELD_ACKS = Definition("held_acks", "1", "ACKs in `held_events`", "Paxson 1997")
HELD_BYTES = Definition(
    "held_bytes", "bytes", "bytes that the ACKs in `held_events` acknowledge", "Paxson 1997"
)


class BunchesByCause(FromOne):
    """Each direction's bunches of ACKs by cause: the receiver or a queue.

    For each bunch of at least three ACKs (see ack_bunches): dT_r is the time from its first to its
    last ACK at the tap, dT_s the same time by the time stamps option, C_r and C_s are the
    resolutions of both (1 ns, the tick), and D is the transmission time, on the data's bottleneck,
    of the data that all its ACKs but the first acknowledge:

        held       if dT_s + C_s < 0.75 D
        compressed if dT_s - C_s > (dT_r + C_r) / 0.75
        undecided  otherwise: the tick is too coarse, or the bunch is neither

    With a tick of 1 ms a bunch must acknowledge some ms of data to be decided.

    Vantage: near the data's sender, behind the queue of the ACKs; needs time stamps. ACKs that the
    receiver's host queued after making them count as compressed. An ACK that follows the filling of
    a hole acknowledges much data that had arrived before, and may make a bunch seem held.
    """

    title = "Bunches of ACKs by cause"
    picture = "ack-spacing"
    vantage = "near the data's sender; needs time stamps in the ACKs"
    per_direction = (BUNCHES_HELD, BUNCHES_COMPRESSED, BUNCHES_UNDECIDED)

    def __init__(self) -> None:
        # Streaks are timed in ticks here; they sum bytes, ns at the tap, and ACKs with a stamp.
        self._finder = StreakFinder(3, BUNCH_ACKS)
        self._bunches = LaneArray(np.add, 0, 3)

    @override
    def add(self, block: Block) -> None:
        acks = block.acks
        if np.isnan(block.facts.tick_ns[acks.directions]).all():
            return
        joined = block.acks_back_to_back
        stamped = (acks["marks"] & Mark.TIMESTAMPS) != 0
        sums = (acks["acked_bytes"] * joined, acks["gap_ns"] * joined, stamped)
        streaks = self._finder.add(acks.direction, joined, acks["ts_value"], sums)
        self._take(streaks, block.facts)

    @override
    def finish(self, facts: Facts) -> None:
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

    @override
    def merge(self, other: Self) -> None:
        self._bunches.merge(other._bunches)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if np.isnan(facts.tick_ns[direction]):
            return dict.fromkeys(self.per_direction, NO_TICKS)
        bunches = (int(n) for n in self._bunches.value_of(direction))
        return dict(zip(self.per_direction, bunches, strict=True))


class HeldAcks(FromPair):
    """Runs of ACKs sent closer together than their data can have arrived.

        s_i - s_{i-1} < 0.75 * (transmission time of the data that ACK i acknowledges)

    over a run of at least three ACKs at their first tap. Their data cannot have come faster than
    the bottleneck between the taps passes it. So either the receiver held the ACKs, or a queue
    before the first tap did.
    """

    title = "ACKs held by the receiver"
    per_direction = (HELD_EVENTS, HELD_ACKS, HELD_BYTES)

    @override
    def start(self) -> None:
        self._finders = StreakFinder(0, BUNCH_ACKS), StreakFinder(0, BUNCH_ACKS)
        self._events = LaneArray(np.add, 0, 3)

    @override
    def add(self, step: Step) -> None:
        for crossings, gaps, finder in zip(
            step.crossings, step.ack_gaps, self._finders, strict=True
        ):
            if len(crossings.acks):
                self._take(crossings, gaps, finder)

    def _take(self, crossings: Crossings, gaps: "AckGaps", finder: StreakFinder) -> None:
        acks, data = crossings.acks, self.facts.directions[1 - crossings.path_direction]
        if data.data_ns is None:
            return
        ack_bytes = self.facts.directions[crossings.path_direction].ack_bytes
        payload = max(data.data_bytes - ack_bytes, 1)
        least = COMPRESSED_BELOW * data.data_ns / payload * gaps.acked_bytes
        held = (gaps.sent_ns >= 0) & (gaps.sent_ns < least)
        self._count(finder.add(acks.direction, held, acks["first_ns"], gaps.acked_bytes))

    @override
    def finish(self) -> None:
        for finder in self._finders:
            self._count(finder.finish())

    def _count(self, streaks: Streaks) -> None:
        found = np.stack((np.ones_like(streaks.rows), streaks.rows, streaks.total), axis=1)
        self._events.add_rows(streaks.lane, found)

    @override
    def of_direction(self, direction: int) -> Values:
        if all(each.data_ns is None for each in self.facts.directions):
            return dict.fromkeys(self.per_direction, NO_BOTTLENECK)
        events = (int(n) for n in self._events.value_of(direction))
        return dict(zip(self.per_direction, events, strict=True))
