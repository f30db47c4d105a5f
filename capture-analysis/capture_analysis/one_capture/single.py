"""Measure one capture in one pass: read, track, find facts, compute metrics."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np

from capture_analysis.columns import BoolArray, Packets, empty_columns
from capture_analysis.facts.delivery_rate import Delivered, without_contradicted_rates
from capture_analysis.facts.directions import Block
from capture_analysis.facts.fact_finder import FactFinder
from capture_analysis.facts.facts import HEAD_PACKETS, Facts
from capture_analysis.facts.paths import one_pair
from capture_analysis.facts.running_totals import Previous
from capture_analysis.flow_table import FlowTable
from capture_analysis.one_capture.memory import keep_freed
from capture_analysis.one_capture.registry import all_from_one
from capture_analysis.one_capture.tally import Tally
from capture_analysis.reading.datagrams import Datagrams
from capture_analysis.reading.parsing import Counts
from capture_analysis.reading.times import Times
from capture_analysis.tracking import Forgotten, Tracker

# Packets per block: more would not fit a core's cache, fewer would need more numpy calls per
# packet.
BLOCK_PACKETS = 1 << 16


class Described(Protocol):
    """The attributes of a Capture that a document describes."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def format(self) -> str:
        """The file's format, such as "pcap, little-endian, ns"."""

    @property
    def warnings(self) -> list[str]:
        """Sentences about defects of the file."""

    @property
    def flows(self) -> FlowTable:
        """The connections so far."""

    @property
    def counts(self) -> Counts:
        """Counts of the frames so far, by their fate."""

    @property
    def datagrams(self) -> Datagrams:
        """The UDP flows so far."""


class Source(Described, Protocol):
    """The attributes of a Capture that measuring needs."""

    def chunks(self, packets: int) -> Iterator[Packets]:
        """Yield `packets` packets at a time; fewer only at the end."""


@dataclass(frozen=True)
class Given:
    """Settings by the user: known rates, and whether tunnels are read.

    Attributes:
        rate_mbit: rate of the bottleneck in the direction of most data; None to estimate.
        ack_rate_mbit: rate of the bottleneck in the opposite direction; None to estimate.
        inside: True to read the TCP in tunnels besides the TCP outside.
    """

    rate_mbit: float | None = None
    ack_rate_mbit: float | None = None
    inside: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Part:
    """The connections with a number equal to `index` modulo `parts`.

    See decision 0036.
    """

    index: int = 0
    parts: int = 1

    def select_packets(self, packets: Packets) -> Packets:
        """Select the packets of these connections."""
        return packets if self.parts == 1 else packets.where(np.flatnonzero(self._mine(packets)))

    def _mine(self, packets: Packets) -> BoolArray:
        mine: BoolArray = packets.flow % self.parts == self.index
        return mine


NOTHING, EVERYTHING = Given(), Part()


class Measured:
    """The measurements of a capture, or of a part of its connections.

    Attributes:
        capture: the source of the packets.
        facts: the facts of each connection; contradictions of a rate by the rest of the capture are
            known only after `finish`.
        tally, estimators: the counts, and one instance of each estimator.
        interfaces: the interfaces whose packets were measured.
        forgotten: counts of records that the tracker discarded.
        times: the right times of the capture's packets.
    """

    def __init__(self, capture: Described, facts: Facts) -> None:
        self.capture, self.facts = capture, facts
        self.tally, self._delivered = Tally(), Delivered(facts)
        self.estimators = [each() for each in all_from_one()]
        self.forgotten = Forgotten()
        self.times = Times()
        self.interfaces: set[int] = set()

    @cached_property
    def flows(self) -> FlowTable:
        """The connections, when every packet has been added."""
        return self.capture.flows

    def add(self, block: Block) -> None:
        """Take the next packets."""
        self.facts = block.facts
        self.tally.add(block)
        number = block.packets.interface
        self.interfaces |= set(np.unique(number).tolist()) if number.any() else {0}
        self._delivered.add(block)
        for each in self.estimators:
            each.add(block)

    def finish(self) -> None:
        """Finish every estimator after the last packet."""
        for each in self.estimators:
            each.finish(self.facts)
        self._found = self.facts
        self._test_rates()

    def _test_rates(self) -> None:
        self.facts = without_contradicted_rates(
            self._found,
            self._delivered,
            self.tally.active_times_ns(len(self._found)),
            np.repeat(self.flows.ends_seen().all(axis=1), 2),
            one_pair=one_pair(self.flows),
        )

    def merge(self, other: "Measured") -> None:
        """Add the measurements of other connections of the same capture."""
        self.tally.merge(other.tally)
        self.interfaces |= other.interfaces
        self._delivered.merge(other._delivered)  # noqa: SLF001 - the same class
        for mine, theirs in zip(self.estimators, other.estimators, strict=True):
            mine.merge(theirs)
        self.forgotten.holes += other.forgotten.holes
        self.forgotten.segments += other.forgotten.segments
        self._test_rates()


def measure(capture: Source, given: Given = NOTHING, part: Part = EVERYTHING) -> Measured:
    """Measure a capture, or a part of its connections.

    Args:
        capture: a capture that has not been read yet.
        given: rates that the user knows.
        part: the connections to measure; facts are found from all connections.
    """
    keep_freed()
    measured, follow, times = None, Tracker(), Times()
    for block in blocks(capture, follow, times, given, part):
        measured = measured or Measured(capture, block.facts)
        measured.add(block)
    measured = measured or Measured(capture, Facts.without_knowledge(0))
    measured.finish()
    measured.forgotten, measured.times = follow.forgotten, times
    return measured


def blocks(
    capture: Source, follow: Tracker, times: Times, given: Given = NOTHING, part: Part = EVERYTHING
) -> Iterator[Block]:
    """Read a capture, or a part of its connections, with facts; each block overwrites the last.

    Args:
        capture: a capture that has not been read yet.
        follow: a new tracker.
        times: new ones.
        given: rates that the user knows.
        part: the connections to read; facts are found from all connections.
    """
    chunks = times.correct_chunks(capture.chunks(HEAD_PACKETS))
    head = next(chunks, empty_columns(0))
    # A part of the connections is tracked anew, and measured with the facts of all connections.
    whole = part.parts == 1
    tracked = (follow if whole else Tracker()).track(head, capture.flows)
    block = Block(head, tracked, Facts.without_knowledge(2 * len(capture.flows)))
    finder = FactFinder(block, capture.flows, given.rate_mbit, given.ack_rate_mbit)
    stamps = Previous()
    for number, chunk in enumerate(chain((head,), chunks)):
        flows = capture.flows
        facts = finder.cover(flows)
        for first in range(0, len(chunk), BLOCK_PACKETS):
            rows = slice(first, first + BLOCK_PACKETS)
            mine = part.select_packets(chunk.where(rows))
            known = whole and not number
            yield Block(
                mine, tracked.where(rows) if known else follow.track(mine, flows), facts, stamps
            )
