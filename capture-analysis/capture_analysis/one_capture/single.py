"""One capture, measured: read, tracked, its facts found, every metric computed, in one pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np

from capture_analysis.columns import BoolArray, FlowTable, Packets, empty_columns
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import HEAD_PACKETS, Facts
from capture_analysis.one_capture.facts_head import FactFinder
from capture_analysis.one_capture.measure import Measure, all_measures
from capture_analysis.one_capture.memory import keep_freed
from capture_analysis.one_capture.tally import Tally
from capture_analysis.reading.parsing import Counts
from capture_analysis.tracking import Forgotten, Tracker

# Packets that are measured at once: more do not fit a core's cache, fewer cost as many calls.
BLOCK_PACKETS = 1 << 16


class Described(Protocol):
    """What a document says of a Capture, which see."""

    @property
    def path(self) -> Path:
        """The file."""

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
        """The packets, so many at a time; fewer only the last time."""


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
    chunks = capture.chunks(HEAD_PACKETS)
    head = next(chunks, empty_columns(0))
    finder = _facts_of(head, capture.flows, given)
    measured, follow = Measured(capture, finder.facts), Tracker()
    for chunk in chain((head,), chunks):
        flows = capture.flows
        facts = finder.cover(flows)
        for first in range(0, len(chunk), BLOCK_PACKETS):
            mine = part.of(chunk.where(slice(first, first + BLOCK_PACKETS)))
            measured.add(Block(mine, follow.track(mine, flows), facts))
    measured.finish()
    measured.forgotten = follow.forgotten
    return measured


def _facts_of(head: Packets, flows: FlowTable, given: Given) -> FactFinder:
    """What the first packets tell, of all connections, whatever part is measured."""
    block = Block(head, Tracker().track(head, flows), Facts.unknown(2 * len(flows)))
    return FactFinder(block, flows, given.rate_mbit, given.ack_rate_mbit)
