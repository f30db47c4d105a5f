"""Base class of the metrics of two captures, and the list of all metrics.

Each module in `pair_measures` defines one metric: to add one, add a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from capture_analysis.discovery import classes_of
from capture_analysis.one_capture.measure import Quantity, Values
from capture_analysis.two_captures import pair_measures
from capture_analysis.two_captures.ack_gaps import AckGaps
from capture_analysis.two_captures.crossings import Crossings
from capture_analysis.two_captures.path_facts import PathFacts
from capture_analysis.two_captures.queue_levels import Levels

__all__ = ["PairMeasure", "Quantity", "Step", "Values", "all_pair_measures"]


@dataclass(frozen=True)
class Step:
    """The packets whose fate has become known next.

    Attributes:
        ways: packets from the first tap to the second, and back.
        ack_gaps: gaps between the ACKs of each way.
        levels: packets and bytes in the queue of each way; None before its first packet.
    """

    ways: tuple[Crossings, Crossings]
    ack_gaps: tuple[AckGaps, AckGaps]
    levels: tuple[Levels | None, Levels | None]


class PairMeasure:
    """A metric: sums up the packets of two captures, step by step.

    Its state does not grow with the number of packets, and does not depend on where steps end.

    Args:
        facts: facts of the path between the taps.
    """

    title: ClassVar[str]
    # Name of the report's picture that shows the metric best.
    picture: ClassVar[str] = "spacing-change"
    per_direction: ClassVar[Sequence[Quantity]] = ()
    per_way: ClassVar[Sequence[Quantity]] = ()
    per_pair: ClassVar[Sequence[Quantity]] = ()

    def __init__(self, facts: PathFacts) -> None:
        self.facts = facts
        self.start()

    def start(self) -> None:
        """Create the empty counts and sums."""

    def add(self, step: Step) -> None:
        """Take the next packets."""

    def finish(self) -> None:
        """Finish after the last packet; called before the results."""

    def of_direction(self, direction: int) -> Values:
        """Return the quantities of `per_direction`: numbers or reasons for none."""
        del direction
        return {}

    def of_way(self, way: int) -> Values:
        """Return the quantities of `per_way`: numbers or reasons for none."""
        del way
        return {}

    def of_pair(self) -> Values:
        """Return the quantities of `per_pair`: numbers or reasons for none."""
        return {}


@cache
def all_pair_measures() -> tuple[type[PairMeasure], ...]:
    """Return the metrics of the modules in `pair_measures`, by module name."""
    return classes_of(pair_measures, PairMeasure)
