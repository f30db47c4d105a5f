"""Rows of fidelity checks, and the interface of those of a link's elements.

The latter are functions in `links` with a decorator. In virtual time a check gets no ClockError.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from capture_analysis.discovery import modules_of

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.measure import links
from twoway.measure.analysis import Analysis
from twoway.measure.queue_view import QueueView
from twoway.measure.real_time import ClockError


def row(what: str, value: float | None, bound: str, holds: bool) -> FidelityRow:
    """Make the row of a check that holds or fails."""
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return FidelityRow(check=what, value=value, bound=bound, verdict=verdict)


def withhold_pass(checked: FidelityRow, error: float, most: float, why: str) -> FidelityRow:
    """Withhold a pass from a check whose own error is larger than the experiment allows.

    Args:
        checked: the check.
        error: the error that its bound allows for.
        most: the largest such error that the experiment allows.
        why: the source of that limit.
    """
    checked = checked.model_copy(update={"needed": True})
    if error <= most:
        return checked
    bound = f"{checked.bound}; {error:.0f} is more than {most:.0f}, {why}"
    failed = checked.verdict is Verdict.FAIL
    verdict = Verdict.FAIL if failed else Verdict.CANNOT_TELL
    return checked.model_copy(update={"bound": bound, "verdict": verdict})


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
