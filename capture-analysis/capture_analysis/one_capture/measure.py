"""What a metric of one capture is, and the metrics there are.

Each module in `measures` defines one: a newcomer adds a metric by adding a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Self

from capture_analysis.discovery import classes_of
from capture_analysis.one_capture import measures
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.tally import Tally

# What a quantity is: a number, or why it is undefined.
Value = float | int | str
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Quantity:
    """A number that a metric yields.

    Attributes:
        name: under which documents have it.
        unit: "1" for shares and counts.
        meaning: a line of text.
    """

    name: str
    unit: str
    meaning: str


class Measure:
    """A metric: takes the blocks of a capture, or of a part of its connections, and sums up.

    What it keeps does not grow with the number of packets, and does not depend on where blocks
    end. Measures that look at no packet themselves read the Tally.

    Attributes:
        title: for people.
        vantage: where the tap must be for it to mean what it says.
        per_direction: what `of_direction` gives.
        per_capture: what `of_capture` gives.
    """

    title: ClassVar[str]
    # Which of a report's pictures shows it best.
    picture: ClassVar[str] = "time-sequence"
    vantage: ClassVar[str] = "any"
    per_direction: ClassVar[Sequence[Quantity]] = ()
    per_capture: ClassVar[Sequence[Quantity]] = ()

    def add(self, block: Block) -> None:
        """Take the next packets."""

    def finish(self, facts: Facts) -> None:
        """There are no more packets; before `merge` and results."""

    def merge(self, other: Self) -> None:
        """Take what another found, which was given other connections of the same capture."""

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """The quantities of `per_direction`, each a number or why there is none."""
        del direction, tally, facts
        return {}

    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        """The quantities of `per_capture`, each a number or why there is none."""
        del tally, facts
        return {}


@cache
def all_measures() -> tuple[type[Measure], ...]:
    """The metrics, one of each module in `measures`, by module name."""
    return classes_of(measures, Measure)


def quantities() -> tuple[Quantity, ...]:
    """Every quantity that a document can have, by metric."""
    return tuple(q for each in all_measures() for q in (*each.per_direction, *each.per_capture))
