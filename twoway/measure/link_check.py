"""The interface of fidelity checks of a link's elements: decorators for functions in `links`.

In virtual time, a check gets no ClockError.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from capture_analysis.discovery import modules_of

from twoway.contract.metrics import FidelityRow
from twoway.measure import links
from twoway.measure.analysis import Analysis
from twoway.measure.queue_view import QueueView
from twoway.measure.real_time import ClockError


@dataclass(frozen=True)
class QueueCheck:
    """A check of one queue, with the name of its direction.

    Attributes:
        rows: the function; it returns no rows if the queue's link does not have the element.
    """

    rows: Callable[[Analysis, str, QueueView, ClockError | None], list[FidelityRow]]

    def __call__(
        self, analysis: Analysis, direction: str, view: QueueView, error: ClockError | None
    ) -> list[FidelityRow]:
        """Carry the check out."""
        return self.rows(analysis, direction, view, error)


@dataclass(frozen=True)
class RunCheck:
    """A check of a whole run.

    Attributes:
        rows: the function; it returns no rows if no link has the element.
    """

    rows: Callable[[Analysis], list[FidelityRow]]

    def __call__(self, analysis: Analysis) -> list[FidelityRow]:
        """Carry the check out."""
        return self.rows(analysis)


_Check = TypeVar("_Check", QueueCheck, RunCheck)


def checks_of_links(kind: type[_Check]) -> Iterator[_Check]:
    """Find the checks of one kind in the modules of `links`."""
    for module in modules_of(links):
        yield from (each for each in vars(module).values() if isinstance(each, kind))
