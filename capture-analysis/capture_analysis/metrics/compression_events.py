"""Paxson's compression events: runs of ACKs that arrive faster than they were sent.

    xi = (dT_r + C_r) / (dT_s - C_s)    over a run of at least three ACKs; an event if xi < 0.75

dT_r: time from the first to the last ACK on arrival; dT_s: the same time when sent; C_r, C_s:
resolution of both, which makes xi conservative (Paxson 1997, section on ACK compression). Paxson
does not say how ACKs are grouped; this is version 1 of ours: maximal runs of gaps with

    (gap on arrival) / (gap when sent) < 0.75
"""

from typing import TYPE_CHECKING, Self

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.histogram import Histogram
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.packets_between import Crossings

if TYPE_CHECKING:
    from capture_analysis.two_captures.packets_between import AckGaps

CAPTURE_RESOLUTION_NS = 1
_PARTS = 1000
NO_TICKS = "no time stamps in the ACKs, or too few to know their tick"
_NO_EVENTS = "no compression event"


COMPRESSION_EVENTS = Definition(
    "compression_events",
    "1",
    "runs of at least three ACKs that arrive in less than 0.75 of the time in which they were sent",
    "Paxson 1997",
)
COMPRESSION_ACKS = Definition("compression_acks", "1", "ACKs in compression events", "Paxson 1997")
COMPRESSION_BYTES = Definition(
    "compression_bytes",
    "bytes",
    "bytes that the ACKs in compression events acknowledge",
    "Paxson 1997",
)
COMPRESSION_DUPLICATE_EVENTS = Definition(
    "compression_duplicate_events",
    "1",
    "share of the compression events that have duplicate ACKs only",
    "Paxson 1997",
    most=1,
)
COMPRESSION_UNDEFINED = Definition(
    "compression_undefined", "1", "gaps between ACKs of at most a tick of their time stamps"
)
COMPRESSION_DUPLICATE_SHARE = Definition(
    "compression_duplicate_share",
    "1",
    "share of duplicate ACKs among those in compression events",
    "Paxson 1997",
    most=1,
)
# A host's own times, of its interrupts and its scheduler, change gaps by less.
_HOST_NS = 200_000
COMPRESSION_CLEAR = Definition(
    "compression_clear",
    "1",
    "ACKs in compression events that shrank by over 0.2 ms, the hosts' own times, and clock ticks",
)
COMPRESSION_XI_MEDIAN = Definition(
    "compression_xi_median",
    "1",
    "median over the events of the ratio of their duration on arrival to that when sent",
    "Paxson 1997",
    most=1,
)


class EventsByTimeStamps(FromOne):
    """Compression events of each direction's ACKs, by their time stamps.

    The time stamps option shows when ACKs were sent; its tick is C_s, and C_r = 1 ns. A gap of at
    most a tick continues a run if the ACKs came back to back (see ack_bunches), and is counted in
    `compression_undefined`. With a tick of 1 ms most gaps at 100 Mbit/s and above are at most a
    tick: runs are bunches then, and only bunches sent over more than two ticks can be events. With
    a tick of 1 us (Linux: route feature tcp_usec_ts) hardly any gap is that short.

    Vantage: near the data's sender, behind the queue of the ACKs; before the queue its effect is
    missing. A time stamp is taken when the ACK is made, before any queue of its host.
    """

    title = "Compression events, by time stamps"
    picture = "ack-spacing"
    vantage = "near the data's sender; needs time stamps in the ACKs"
    per_direction = (
        COMPRESSION_EVENTS,
        COMPRESSION_ACKS,
        COMPRESSION_BYTES,
        COMPRESSION_DUPLICATE_EVENTS,
        COMPRESSION_UNDEFINED,
    )

    def __init__(self) -> None:
        self._finder = StreakFinder(3, BUNCH_ACKS)
        # The number of events, their ACKs, the bytes acknowledged, events of duplicates only.
        self._events = LaneArray(np.add, 0, 4)
        self._undefined = LaneArray(np.add, 0)

    @override
    def add(self, block: Block) -> None:
        acks, facts = block.acks, block.facts
        if np.isnan(facts.tick_ns[acks.directions]).all():
            return
        sent_ns = block.sent_gap_ns
        tick_ns = acks.spread(facts.tick_ns)
        gap_ns = acks["gap_ns"]
        undefined = (sent_ns >= 0) & (sent_ns <= tick_ns) & (gap_ns >= 0)
        self._undefined.add(acks.directions, acks.sum(undefined))
        joined = (gap_ns >= 0) & (sent_ns > tick_ns) & (gap_ns < COMPRESSED_BELOW * sent_ns)
        joined |= undefined & block.acks_back_to_back
        duplicate = acks["kind"] == Kind.DUPLICATE_ACK
        sums = (sent_ns * joined, acks["acked_bytes"], duplicate)
        self._take(self._finder.add(acks.direction, joined, acks["time_ns"], sums), facts)

    @override
    def finish(self, facts: Facts) -> None:
        self._take(self._finder.finish(), facts)

    def _take(self, streaks: Streaks, facts: Facts) -> None:
        sent_ns = streaks.total[0] - facts.tick_ns[streaks.lane]
        arrived_ns = streaks.last_ns - streaks.first_ns + CAPTURE_RESOLUTION_NS
        events = streaks.where((sent_ns > 0) & (arrived_ns < COMPRESSED_BELOW * sent_ns))
        only_duplicates = events.total[2] == events.rows
        values = (np.ones_like(events.rows), events.rows, events.total[1], only_duplicates)
        self._events.add_rows(events.lane, np.stack(values, axis=1))

    @override
    def merge(self, other: Self) -> None:
        self._events.merge(other._events)
        self._undefined.merge(other._undefined)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if np.isnan(facts.tick_ns[direction]):
            return dict.fromkeys(self.per_direction, NO_TICKS)
        events, acks, acked, duplicates = (int(n) for n in self._events.value_of(direction))
        return {
            COMPRESSION_EVENTS: events,
            COMPRESSION_ACKS: acks,
            COMPRESSION_BYTES: acked,
            COMPRESSION_DUPLICATE_EVENTS: duplicates / events if events else _NO_EVENTS,
            COMPRESSION_UNDEFINED: self._undefined.value_of(direction),
        }


class EventsBetweenTaps(FromPair):
    """Compression events of ACKs that passed both taps."""

    title = "Compression events, from both ends"
    per_direction = (
        COMPRESSION_EVENTS,
        COMPRESSION_ACKS,
        COMPRESSION_BYTES,
        COMPRESSION_DUPLICATE_SHARE,
        COMPRESSION_XI_MEDIAN,
        COMPRESSION_CLEAR,
    )

    @override
    def start(self) -> None:
        self._events = LaneArray(np.add, 0, 5)
        self._xi = Histogram()
        self._finders = StreakFinder(4, BUNCH_ACKS), StreakFinder(4, BUNCH_ACKS)

    @override
    def add(self, step: Step) -> None:
        for crossings, gaps, finder in zip(
            step.crossings, step.ack_gaps, self._finders, strict=True
        ):
            if len(crossings.acks):
                self._take(crossings, gaps, finder)

    def _take(self, crossings: Crossings, gaps: "AckGaps", finder: StreakFinder) -> None:
        acks, path_direction = crossings.acks, crossings.path_direction
        joined = gaps.compressed & (gaps.sent_ns > self.facts.resolution_ns[path_direction])
        duplicate = acks["kind"] == Kind.DUPLICATE_ACK
        values = (gaps.sent_ns * joined, gaps.arrived_ns * joined, gaps.acked_bytes, duplicate)
        self._count(finder.add(acks.direction, joined, acks["first_ns"], values), path_direction)

    @override
    def finish(self) -> None:
        for path_direction, finder in enumerate(self._finders):
            self._count(finder.finish(), path_direction)

    def _count(self, streaks: Streaks, path_direction: int) -> None:
        sent_ns = streaks.total[0] - self.facts.resolution_ns[path_direction]
        arrived_ns = streaks.total[1] + self.facts.resolution_ns[1 - path_direction]
        event = arrived_ns < COMPRESSED_BELOW * sent_ns
        streaks, xi = streaks.where(event), arrived_ns[event] * _PARTS // sent_ns[event]
        self._xi.add(streaks.lane, xi)
        ones = np.ones_like(streaks.rows)
        clear = streaks.rows * ((sent_ns - arrived_ns)[event] > _HOST_NS)
        found = np.stack((ones, streaks.rows, streaks.total[2], streaks.total[3], clear), axis=1)
        self._events.add_rows(streaks.lane, found)

    @override
    def of_direction(self, direction: int) -> Values:
        events, acks, acked, duplicates, clear = (int(n) for n in self._events.value_of(direction))
        xi = self._xi.quantile(0.5, direction)
        return {
            COMPRESSION_EVENTS: events,
            COMPRESSION_ACKS: acks,
            COMPRESSION_BYTES: acked,
            COMPRESSION_DUPLICATE_SHARE: duplicates / acks if acks else _NO_EVENTS,
            COMPRESSION_XI_MEDIAN: _NO_EVENTS if xi is None else xi / _PARTS,
            COMPRESSION_CLEAR: clear,
        }
