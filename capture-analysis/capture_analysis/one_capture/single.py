"""One capture, measured: read, tracked, its facts found, every metric computed, in one pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from capture_analysis.columns import BoolArray, FlowTable, Packets, concatenate, empty_columns
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import HEAD_PACKETS, Facts
from capture_analysis.one_capture.facts_head import FactFinder
from capture_analysis.one_capture.measure import Measure, all_measures
from capture_analysis.one_capture.memory import keep_freed
from capture_analysis.one_capture.tally import Tally
from capture_analysis.reading.parsing import Counts
from capture_analysis.tracking import TRACKED_TYPES, Forgotten, Tracked, Tracker, tracker

# Packets that are measured at once: more do not fit a core's cache, fewer cost as many calls.
BLOCK_PACKETS = 1 << 17


class Described(Protocol):
    """What a document says of a Capture, which see."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def reader(self) -> str:
        """Which parser read it."""

    @property
    def format(self) -> str:
        """Such as "pcap, little-endian, ns"."""

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the file."""

    @property
    def flows(self) -> FlowTable:
        """The connections so far."""

    @property
    def counts(self) -> Counts:
        """What became of the frames so far."""


class Source(Described, Protocol):
    """What measuring needs of a Capture."""

    def chunks(self, packets: int) -> Iterator[Packets]:
        """The packets, at most so many at a time."""


@dataclass(frozen=True)
class Given:
    """What the user says of the capture instead of having it estimated.

    Attributes:
        rate_mbit: rate of the bottleneck on the way that most data go; None to estimate.
        ack_rate_mbit: the same for the opposite way.
    """

    rate_mbit: float | None = None
    ack_rate_mbit: float | None = None


@dataclass(frozen=True)
class Part:
    """Those of a capture's connections whose number is `index` modulo `parts`."""

    index: int = 0
    parts: int = 1

    def of(self, packets: Packets) -> Packets:
        """The packets of these connections."""
        return packets if self.parts == 1 else packets.where(np.flatnonzero(self._mine(packets)))

    def _mine(self, packets: Packets) -> BoolArray:
        mine: BoolArray = packets.flow % self.parts == self.index
        return mine


NOTHING, EVERYTHING = Given(), Part()


class Measured:
    """What was measured of a capture, or of a part of its connections.

    Attributes:
        capture: where the packets came from.
        facts: what was found out of each connection.
        tally, measures: what was counted and measured.
        forgotten: what the tracker let go.
    """

    def __init__(self, capture: Described, facts: Facts) -> None:
        self.capture, self.facts = capture, facts
        self.tally = Tally()
        self.measures: list[Measure] = [each() for each in all_measures()]
        self.forgotten = Forgotten()

    def add(self, block: Block) -> None:
        """Take the next packets."""
        self.facts = block.facts
        self.tally.add(block)
        for each in self.measures:
            each.add(block)

    def finish(self) -> None:
        """There are no more packets."""
        for each in self.measures:
            each.finish(self.facts)

    def merge(self, other: "Measured") -> None:
        """Take what was measured of other connections of the same capture."""
        self.tally.merge(other.tally)
        for mine, theirs in zip(self.measures, other.measures, strict=True):
            mine.merge(theirs)
        self.forgotten.holes += other.forgotten.holes
        self.forgotten.segments += other.forgotten.segments


def measure(capture: Source, given: Given = NOTHING, part: Part = EVERYTHING) -> Measured:
    """Measure a capture, or a part of its connections.

    Args:
        capture: not yet read.
        given: what the user says of it.
        part: which connections; facts are found from all of them.
    """
    keep_freed()
    follow = tracker()
    chunks = capture.chunks(BLOCK_PACKETS)
    packets, tracked = _first(chunks, follow, capture)
    finder, flows = _facts_of(packets, tracked, capture.flows, given), capture.flows
    facts = finder.cover(flows)
    measured = Measured(capture, facts)
    if part.parts > 1:
        follow = tracker()  # of these connections only, from the start
    for first in range(0, len(packets), BLOCK_PACKETS):
        rows = slice(first, first + BLOCK_PACKETS)
        mine, said = part.of(packets.where(rows)), tracked.where(rows)
        if part.parts > 1:
            said = follow.track(mine, flows)
        measured.add(Block(mine, said, facts))
    del packets, tracked
    for chunk in chunks:
        mine, flows = part.of(chunk), capture.flows
        measured.add(Block(mine, follow.track(mine, flows), finder.cover(flows)))
    measured.finish()
    measured.forgotten = follow.forgotten
    return measured


def _facts_of(packets: Packets, tracked: Tracked, flows: FlowTable, given: Given) -> FactFinder:
    """The facts that exactly the first HEAD_PACKETS packets tell, wherever chunks end."""
    rows = slice(HEAD_PACKETS)
    packets, tracked = packets.where(rows), tracked.where(rows)
    known = FlowTable(flows.rows[: int(packets.flow.max()) + 1 if len(packets) else 0])
    head = Block(packets, tracked, Facts.unknown(2 * len(known)))
    return FactFinder(head, known, given.rate_mbit, given.ack_rate_mbit)


def _first(chunks: Iterator[Packets], follow: Tracker, capture: Source) -> tuple[Packets, Tracked]:
    """The first packets, copied: at least HEAD_PACKETS or all there are."""
    packets = [empty_columns(0)]
    tracked = [Tracked(*(np.empty(0, kind) for kind in TRACKED_TYPES.values()))]
    count = 0
    for chunk in chunks:
        packets.append(concatenate([chunk]))
        tracked.append(_joined([follow.track(chunk, capture.flows)]))
        count += len(chunk)
        if count >= HEAD_PACKETS:
            break
    return concatenate(packets), _joined(tracked)


def _joined(parts: list[Tracked]) -> Tracked:
    return Tracked(*(np.concatenate([getattr(p, name) for p in parts]) for name in TRACKED_TYPES))
