"""Paxson's compression events, from one capture with time stamps.

The ACKs' time stamps tell when the ACKs were sent.

    xi = (dT_r + C_r) / (dT_s - C_s)    over a run of at least three ACKs; an event if xi < 0.75

dT_r: time from the first to the last ACK at the tap; dT_s: the same time by the time stamps option,
whose tick is C_s; C_r = 1 ns. C_r and C_s make xi conservative (Paxson 1997, section on ACK
compression). Paxson does not say how ACKs are grouped; version 1 here: maximal runs of gaps with

    rho = (gap at the tap) / (gap by the time stamps) < 0.75

A gap of at most a tick by the time stamps has no rho; such a gap continues a run if the ACKs came
back to back (see ack_bunches), and is counted in `compression_undefined`. With a tick of 1 ms most
gaps at 100 Mbit/s and above have no rho: runs are bunches then, and only bunches sent over more
than two ticks can be events. With a tick of 1 us (Linux: route feature tcp_usec_ts) nearly all gaps
have a rho.

Vantage: near the data's sender, behind the queue of the ACKs. At a tap before that queue its effect
is missing. A time stamp is taken when the ACK is made, before any queue of its host.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import BoolArray, IntArray, Mark
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.lanes import LaneArray, Previous
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.measures.ack_bunches import BUNCH_ACKS
from capture_analysis.one_capture.tally import Tally
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.tracking import Kind

CAPTURE_RESOLUTION_NS = 1
_NO_STAMP = -1


class PaxsonEvents(Measure):
    """Compression events of each direction's ACKs, by their time stamps."""

    title = "Compression events (Paxson)"
    picture = "ack-spacing"
    vantage = "near the data's sender; needs time stamps in the ACKs"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("compression_events", "1", "runs of at least three ACKs with xi below 0.75"),
        Quantity("compression_acks", "1", "ACKs in them"),
        Quantity("compression_bytes", "bytes", "what they acknowledge"),
        Quantity(
            "compression_duplicate_events", "1", "share of the events that have duplicate ACKs only"
        ),
        Quantity("compression_undefined", "1", "gaps of at most a tick of the time stamps"),
    )

    def __init__(self) -> None:
        self._finder = StreakFinder(3, BUNCH_ACKS)
        self._stamps = Previous(_NO_STAMP)
        # The number of events, their ACKs, the bytes acknowledged, events of duplicates only.
        self._events = LaneArray(np.add, 0, 4)
        self._undefined = LaneArray(np.add, 0)

    def add(self, block: Block) -> None:
        """Take the next packets."""
        acks, facts = block.acks, block.facts
        if np.isnan(facts.tick_ns[acks.directions]).all():
            return
        sent_ns = self._sent_gap_ns(block)
        tick_ns = acks.spread(facts.tick_ns)
        gap_ns = acks["gap_ns"]
        undefined = (sent_ns >= 0) & (sent_ns <= tick_ns) & (gap_ns >= 0)
        self._undefined.add(acks.directions, acks.sum(undefined))
        joined = (gap_ns >= 0) & (sent_ns > tick_ns) & (gap_ns < COMPRESSED_BELOW * sent_ns)
        joined |= undefined & block.acks_back_to_back
        duplicate = acks["kind"] == Kind.DUPLICATE_ACK
        sums = (sent_ns * joined, acks["acked_bytes"], duplicate)
        self._take(self._finder.add(acks.direction, joined, acks["time_ns"], sums), facts)

    def _sent_gap_ns(self, block: Block) -> IntArray:
        """Compute the gaps of ACKs by their time stamps, ns; -1 if unknown."""
        acks = block.acks
        stamped: BoolArray = (acks["marks"] & Mark.TIMESTAMPS) != 0
        stamp = acks["ts_value"] * stamped - ~stamped  # _NO_STAMP where there is none
        before = self._stamps.of(acks.directions, acks.starts, stamp)
        ticks = (stamp - before).astype(np.int32)  # time stamps wrap modulo 2^32
        known = stamped & (before != _NO_STAMP) & (ticks >= 0)
        tick_ns = acks.spread(block.facts.tick_whole_ns)
        known &= tick_ns > 0
        return np.asarray(ticks * tick_ns * known - ~known)

    def finish(self, facts: Facts) -> None:
        """Take the streaks that were still open at the capture's end."""
        self._take(self._finder.finish(), facts)

    def _take(self, streaks: Streaks, facts: Facts) -> None:
        sent_ns = streaks.total[0] - facts.tick_ns[streaks.lane]
        arrived_ns = streaks.last_ns - streaks.first_ns + CAPTURE_RESOLUTION_NS
        events = streaks.where((sent_ns > 0) & (arrived_ns < COMPRESSED_BELOW * sent_ns))
        only_duplicates = events.total[2] == events.rows
        values = (np.ones_like(events.rows), events.rows, events.total[1], only_duplicates)
        self._events.add_rows(events.lane, np.stack(values, axis=1))

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""
        self._events.merge(other._events)
        self._undefined.merge(other._undefined)

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        del tally
        if np.isnan(facts.tick_ns[direction]):
            why = "no time stamps in the ACKs, or too few to know their tick"
            return {q.name: why for q in self.per_direction}
        events, acks, acked, duplicates = (int(n) for n in self._events.of(direction))
        return {
            "compression_events": events,
            "compression_acks": acks,
            "compression_bytes": acked,
            "compression_duplicate_events": duplicates / events
            if events
            else "no compression event",
            "compression_undefined": self._undefined.of(direction),
        }
