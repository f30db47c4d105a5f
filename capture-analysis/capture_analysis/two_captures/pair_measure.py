"""What a metric of two captures is, and the metrics there are.

Each module in `pair_measures` defines one: a newcomer adds a metric by adding a file.
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
    """What two captures have shown next.

    Attributes:
        ways: packets from the first tap to the second, and back.
        ack_gaps: of the ACKs of each.
        levels: packets and bytes in the queue of each way; None before its first packet.
    """

    ways: tuple[Crossings, Crossings]
    ack_gaps: tuple[AckGaps, AckGaps]
    levels: tuple[Levels | None, Levels | None]


class PairMeasure:
    """A metric: takes what two captures show, step by step, and sums up.

    What it keeps does not grow with the number of packets, and does not depend on where steps end.

    Args:
        facts: of the path between the taps.
    """

    title: ClassVar[str]
    # Which of a report's pictures shows it best.
    picture: ClassVar[str] = "spacing-change"
    per_direction: ClassVar[Sequence[Quantity]] = ()
    per_way: ClassVar[Sequence[Quantity]] = ()
    per_pair: ClassVar[Sequence[Quantity]] = ()

    def __init__(self, facts: PathFacts) -> None:
        self.facts = facts
        self.start()

    def start(self) -> None:
        """Nothing is known yet."""

    def add(self, step: Step) -> None:
        """Take the next packets."""

    def finish(self) -> None:
        """There are no more packets; before results."""

    def of_direction(self, direction: int) -> Values:
        """The quantities of `per_direction`, each a number or why there is none."""
        del direction
        return {}

    def of_way(self, way: int) -> Values:
        """The quantities of `per_way`, each a number or why there is none."""
        del way
        return {}

    def of_pair(self) -> Values:
        """The quantities of `per_pair`, each a number or why there is none."""
        return {}


@cache
def all_pair_measures() -> tuple[type[PairMeasure], ...]:
    """The metrics, one of each module in `pair_measures`, by module name."""
    return classes_of(pair_measures, PairMeasure)
