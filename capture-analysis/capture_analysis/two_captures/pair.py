"""Measure two captures of one path.

Packets are matched, the clocks aligned, and every metric computed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from capture_analysis.columns import IntArray, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FlowTable
from capture_analysis.one_capture.memory import keep_freed
from capture_analysis.reading.capture import Capture
from capture_analysis.tracking import Tracker
from capture_analysis.two_captures.first_pass import Survey, first_pass
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.matching import FOREVER, CaptureReader, PacketSource, own_clock
from capture_analysis.two_captures.packet_key import PacketKeys
from capture_analysis.two_captures.packets_between import (
    AckGapFinder,
    Uncommon,
    is_data,
    packets_between,
)
from capture_analysis.two_captures.path_facts import DirectionSurvey, PathFacts
from capture_analysis.two_captures.queue_levels import QueueLevel
from capture_analysis.two_captures.registry import all_from_pair
from capture_analysis.two_captures.rough_offset import Contact, rough_offset

# A host stamps packets late by less than this.
_MOST_EARLY_NS = 1_000_000


class Sink(Protocol):
    """Receives every packet, for instance to write it to a file."""

    def add(self, step: Step, flows: FlowTable) -> None:
        """Take the next packets."""


@dataclass
class PairMeasured:
    """The measurements of two captures.

    Attributes:
        names: names of the captures.
        sources: both captures, read to the end.
        contact, survey, facts: common packets, clocks, and the path between the taps.
        readers: both captures with counts of copies and of packets that gave up waiting.
        estimators: one instance of each estimator.
        both: number of packets that passed both taps.
        packets: packets of each connection, shape (flows of the first capture,).
        data: packets with payload of each direction, shape (directions,).
        uncommon: packets that only one capture has, outside the common time or connections.
    """

    names: tuple[str, str]
    sources: tuple[PacketSource, PacketSource]
    contact: Contact
    survey: Survey
    facts: PathFacts
    readers: tuple[CaptureReader, CaptureReader]
    estimators: list[FromPair]
    both: int = 0
    packets: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    data: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    uncommon: tuple[Uncommon, Uncommon] = field(default_factory=lambda: (Uncommon(), Uncommon()))


class PairOfCaptures:
    """Two captures that can be read repeatedly.

    Args:
        names: names of the captures, for error texts.
        open_a: opens the first from its start.
        open_b: opens the second from its start.
    """

    def __init__(
        self,
        names: tuple[str, str],
        open_a: Callable[[], PacketSource],
        open_b: Callable[[], PacketSource],
    ) -> None:
        self.names, self.open_a, self.open_b = names, open_a, open_b

    @staticmethod
    def of_files(a: Path, b: Path, *, inside: bool = False) -> "PairOfCaptures":
        """Use two files; for `inside` see Capture.

        Raises: AnalysisError if one of them cannot be read repeatedly.
        """
        for path in (a, b):
            if not path.is_file():
                reason = "is a stream" if str(path) == "-" or path.exists() else "does not exist"
                raise AnalysisError(
                    f"{path}: {reason}\n\nhint: each of two captures is read several times;"
                    " give files"
                )
        return PairOfCaptures(
            (str(a), str(b)), lambda: Capture(a, inside=inside), lambda: Capture(b, inside=inside)
        )

    def measure(self, *, one_clock: bool = False, sink: Sink | None = None) -> PairMeasured:
        """Read both three times: for common packets, clocks, and metrics.

        Args:
            one_clock: True if both captures are known to have the same clock.
            sink: receives every packet.

        Raises: AnalysisError if they have no packet in common, or if their times contradict each
            other.
        """
        keep_freed()
        contact = rough_offset(self.names, self.open_a, self.open_b)
        surveyed = first_pass(self.open_a, self.open_b, contact, one_clock=one_clock)
        if not one_clock:
            self._check_order(surveyed)
        facts = self._facts(contact, surveyed)
        readers = self._readers(contact, surveyed)
        measured = PairMeasured(
            self.names,
            (readers[0].source, readers[1].source),
            contact,
            surveyed,
            facts,
            readers,
            [each(facts) for each in all_from_pair()],
        )
        for step in _steps(readers, surveyed, facts, measured.uncommon):
            _count(measured, step)
            for each in measured.estimators:
                each.add(step)
            if sink is not None:
                sink.add(step, readers[0].source.flows)
        for each in measured.estimators:
            each.finish()
        return measured

    def _check_order(self, surveyed: Survey) -> None:
        """Check that no clock lets packets arrive long before they were sent."""
        loops_ns = (line.shortest_ns for line in surveyed.clock.lines)
        early_ns = -min(
            (go + back for go, back in loops_ns if go is not None and back is not None), default=0
        )
        if early_ns > _MOST_EARLY_NS:
            a, b = self.names
            raise AnalysisError(
                f"{a} and {b}: their times contradict each other: whatever the clocks' offset, a"
                f" packet arrives {early_ns / 1e6:.3g} ms before it was sent; one capture's times"
                " are equal, coarse or rewritten"
            )

    def _readers(self, contact: Contact, surveyed: Survey) -> tuple[CaptureReader, CaptureReader]:
        a, b = (
            CaptureReader(opened(), PacketKeys(contact.identity), clock, _kinds())
            for opened, clock in ((self.open_a, own_clock), (self.open_b, surveyed.clock.on_first))
        )
        return a, b

    def _facts(self, contact: Contact, surveyed: Survey) -> PathFacts:
        """Measure the path from the first packets that cross it."""
        shortest = [
            round(
                min(
                    (
                        each
                        for each in (line.shortest_ns[number] for line in surveyed.clock.lines)
                        if each is not None
                    ),
                    default=0,
                )
            )
            for number in (0, 1)
        ]
        surveys = [DirectionSurvey(each) for each in shortest]
        readers = self._readers(contact, surveyed)
        for both in packets_between(*readers, surveyed, (Uncommon(), Uncommon())):
            for survey, each in zip(surveys, both, strict=True):
                survey.add(each)
            if min(survey.full_ns for survey in surveys) < FOREVER:
                break
        until_ns = min(survey.full_ns for survey in surveys)
        return PathFacts(
            (surveys[0].facts(until_ns), surveys[1].facts(until_ns)),
            contact.resolution_ns,
            2 * surveyed.horizon_ns,
        )


def _kinds() -> Callable[[Packets, FlowTable], IntArray]:
    follow = Tracker()
    return lambda packets, flows: follow.track(packets, flows).kind


def _steps(
    readers: tuple[CaptureReader, CaptureReader],
    surveyed: Survey,
    facts: PathFacts,
    uncommon: tuple[Uncommon, Uncommon],
) -> Iterator[Step]:
    queues, finders = (QueueLevel(), QueueLevel()), (AckGapFinder(), AckGapFinder())
    for both in packets_between(*readers, surveyed, uncommon):
        levels = []
        for queue, each, direction in zip(queues, both, facts.directions, strict=True):
            rows = each.both
            first_ns, second_ns = rows["first_ns"].copy(), rows["second_ns"]
            # An error or step of the clocks must not let a packet leave before it comes.
            left_ns = np.maximum(second_ns - direction.propagation_ns, first_ns)
            size = rows["frame_bytes"].astype(np.int64)
            levels.append(queue.add(first_ns, left_ns, size, each.until_ns))
        gaps = [finder.gaps(each.acks) for finder, each in zip(finders, both, strict=True)]
        yield Step(both, (gaps[0], gaps[1]), (levels[0], levels[1]))


def _count(measured: PairMeasured, step: Step) -> None:
    for crossings in step.crossings:
        rows = crossings.sent
        measured.both += len(crossings.both)
        direction = rows["flow"].astype(np.int64) * 2 + rows["half"]
        measured.packets = _add_counts(measured.packets, rows["flow"])
        measured.data = _add_counts(measured.data, direction[is_data(rows)])


def _add_counts(counts: IntArray, numbers: IntArray) -> IntArray:
    """Add the occurrences of each number to counts."""
    more = np.bincount(numbers, minlength=len(counts))
    more[: len(counts)] += counts
    return more
