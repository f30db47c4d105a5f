"""Base class of the metrics of one capture, and the list of all metrics.

Each module in `measures` defines one metric: to add one, add a file.
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

# The value of a quantity: a number, or the reason why it is undefined.
Value = float | int | str
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Quantity:
    """A number that a metric yields.

    Attributes:
        name: its key in documents.
        unit: "1" for shares and counts.
        meaning: one line of text.
    """

    name: str
    unit: str
    meaning: str


class Measure:
    """A metric: sums up the blocks of a capture or of some connections.

    Its state does not grow with the number of packets, and does not depend on where blocks end.
    Measures that need no packets read the Tally.

    Attributes:
        title: heading for readers.
        vantage: the vantage that the metric needs to be meaningful.
        per_direction: the quantities that `of_direction` returns.
        per_capture: the quantities that `of_capture` returns.
    """

    title: ClassVar[str]
    # Name of the report's picture that shows the metric best.
    picture: ClassVar[str] = "time-sequence"
    vantage: ClassVar[str] = "any"
    per_direction: ClassVar[Sequence[Quantity]] = ()
    per_capture: ClassVar[Sequence[Quantity]] = ()

    def add(self, block: Block) -> None:
        """Take the next packets."""

    def finish(self, facts: Facts) -> None:
        """Finish after the last packet; called before `merge` and the results."""

    def merge(self, other: Self) -> None:
        """Add the results of another instance, which took other connections."""

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of `per_direction`: numbers or reasons for none."""
        del direction, tally, facts
        return {}

    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of `per_capture`: numbers or reasons for none."""
        del tally, facts
        return {}


@cache
def all_measures() -> tuple[type[Measure], ...]:
    """Return the metrics, one of each module in `measures`, by module name."""
    return classes_of(measures, Measure)


def quantities() -> tuple[Quantity, ...]:
    """Return every quantity that a document can have, by metric."""
    return tuple(q for each in all_measures() for q in (*each.per_direction, *each.per_capture))
