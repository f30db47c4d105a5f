"""Base class of the estimators from one capture."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.tally import Tally

# The value of a quantity: a number, or the reason why it is undefined.
Value = float | int | str
Values = Mapping[Definition, Value]


class FromOne:
    """Estimator of quantities from one capture, or from some connections of it.

    Its state does not grow with the number of packets, and does not depend on block ends.
    Estimators that need no packets read the Tally.

    Attributes:
        title: heading for readers.
        vantage: the place of the capture at which the quantities match their definitions.
        per_direction: the quantities that `of_direction` returns.
        per_capture: the quantities that `of_capture` returns.
        per_datagrams: the quantities that `of_datagrams` returns.
    """

    title: ClassVar[str]
    # Name of the report's picture that shows the metric best.
    picture: ClassVar[str] = "time-sequence"
    vantage: ClassVar[str] = "any"
    per_direction: ClassVar[Sequence[Definition]] = ()
    per_capture: ClassVar[Sequence[Definition]] = ()
    per_datagrams: ClassVar[Sequence[Definition]] = ()

    def add(self, block: Block) -> None:
        """Take the next packets."""

    def finish(self, facts: Facts) -> None:
        """Take streaks that are open at the capture's end; called before `merge`."""

    def merge(self, other: Self) -> None:
        """Merge the results of another instance, which took other connections."""

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of `per_direction`: numbers, or reasons for missing ones."""
        del direction, tally, facts
        return {}

    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of `per_capture`: numbers, or reasons for missing ones."""
        del tally, facts
        return {}

    def of_datagrams(self, mine: Any, other: Any) -> Values:
        """Return the quantities of `per_datagrams` for a direction of a UDP flow.

        Args:
            mine: what the clib counted of the direction, of type DATAGRAMS.
            other: the same of the opposite direction.
        """
        del mine, other
        return {}
