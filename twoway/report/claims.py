"""The claims of papers, each once, with all measurements of it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, Self, TypeVar

from twoway.contract.judge import Verdict
from twoway.contract.statements import FORMS, Form, label
from twoway.contract.verdicts import ClaimRow, FindingRow, PredictionRow, Row
from twoway.report.results import Experiment, Result

RowT_co = TypeVar("RowT_co", bound=Row, covariant=True)

# A prediction that uses less of its tolerance says little by being kept.
_LITTLE = 0.05
# A claim's verdict is the first of these that any of its rows has.
_WORST_FIRST = (
    Verdict.UNEXPLAINED,
    Verdict.NO_RUN,
    Verdict.CANNOT_TELL,
    Verdict.EXPLAINED,
    Verdict.PAPER_DIFFERS,
    Verdict.NOT_COMPARABLE,
    Verdict.AGREES,
)


@dataclass(frozen=True)
class Said(Generic[RowT_co]):
    """A row of verdicts.json, with its run."""

    result: Result
    row: RowT_co

    @property
    def where(self) -> str:
        """The point's name for people."""
        return ", ".join(f"{axis} {label(value)}" for axis, value in self.result.point.items())

    @property
    def measured(self) -> float | None:
        """The compared quantity: the metric, or its difference from another run's."""
        row = self.row
        return row.compared if isinstance(row, ClaimRow) and row.against else row.measured

    @property
    def edge(self) -> float | None:
        """The value of the statement, or the bound that the measurement is nearest to."""
        row, measured = self.row, self.measured
        if measured is None or row.value is not None:
            return row.value
        bounds = [each for each in (row.at_least, row.at_most) if each is not None]
        return min(bounds, key=lambda each: abs(measured - each))

    @property
    def gap(self) -> float | None:
        """The measurement's difference from the value or bound, in the metric's unit."""
        return None if self.measured is None or self.edge is None else self.measured - self.edge

    @property
    def gap_percent(self) -> float | None:
        """The gap in per cent of the value or bound; None if that is zero."""
        return _percent(self.measured, self.edge)

    @property
    def off(self) -> float:
        """The distance of a miss: in precisions for a value, in the metric's unit for a bound."""
        row, gap = self.row, self.gap
        if gap is None:
            return math.inf
        if row.value is not None:
            return abs(gap) / (row.tolerance or 1)
        is_lower = row.at_least is not None and self.edge == row.at_least
        return -gap if is_lower else gap

    @property
    def printed_percent(self) -> float | None:
        """The difference of the paper's formula from a prediction, per cent."""
        row = self.row
        return _percent(row.printed, row.value) if isinstance(row, PredictionRow) else None


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, with all measurements of it.

    Attributes:
        claim: the paper's claim.
        where: section, figure or table.
        by: `paper`, or `simulation` for a number of its simulator.
        rows: a row for each metric and run.
    """

    claim: str
    where: str
    by: str
    rows: list[Said[ClaimRow]] = field(default_factory=list)

    @property
    def form(self) -> Form:
        """The strictest form in which any row tests the claim."""
        found = {said.row.form for said in self.rows}
        return next(form for form in FORMS if form in found)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on any measurement."""
        found = {said.row.verdict for said in self.rows}
        return next(verdict for verdict in _WORST_FIRST if verdict in found)

    @property
    def listed(self) -> bool:
        """True if each verdict is the one that the experiment's file lists."""
        return all(said.row.listed for said in self.rows)

    @property
    def experiments(self) -> list[str]:
        """The experiments that measure the claim."""
        return list(dict.fromkeys(said.result.id.partition("@")[0] for said in self.rows))

    @property
    def worst(self) -> Said[ClaimRow]:
        """The row with the claim's verdict that misses by most, or is within by least."""
        rows = [said for said in self.rows if said.row.verdict is self.verdict]
        return max(rows, key=lambda said: said.off)


def claims(experiments: Iterable[Experiment]) -> list[Claim]:
    """List the claims that experiments measure, each once, the worst verdicts first."""
    found: dict[tuple[str, str], Claim] = {}
    for experiment in experiments:
        for result in experiment.results:
            for row in result.verdicts.claims:
                claim = Claim(row.claim, row.where, row.by)
                found.setdefault((row.claim, row.by), claim).rows.append(Said(result, row))
    return sorted(found.values(), key=lambda claim: _WORST_FIRST.index(claim.verdict))


def predictions(experiment: Experiment) -> Iterator[Said[PredictionRow]]:
    """List an experiment's predictions, those of the testbed too, point by point."""
    for result in experiment.results:
        yield from (Said(result, row) for row in result.verdicts.predictions)


def findings(experiment: Experiment) -> Iterator[Said[FindingRow]]:
    """List an experiment's findings, point by point."""
    for result in experiment.results:
        yield from (Said(result, row) for row in result.verdicts.findings)


@dataclass(frozen=True)
class Sharpness:
    """Counts of predictions by their sharpness.

    Attributes:
        exact: those with a tolerance of 0.
        bounds: those that are a bound.
        used: the share of its tolerance that each of the others uses, sorted.
        printed: True where the paper's formula holds within the same tolerance, False where it does
            not, of those that have such a formula.
    """

    exact: int
    bounds: int
    used: list[float]
    printed: list[bool]

    @classmethod
    def from_rows(cls, rows: Iterable[PredictionRow]) -> Self:
        """Count predictions."""
        rows = list(rows)
        used, printed = ([getattr(row, name) for row in rows] for name in ("used", "printed_holds"))
        return cls(
            exact=sum(row.tolerance == 0 for row in rows),
            bounds=sum(row.value is None for row in rows),
            used=sorted(each for each in used if each is not None),
            printed=[each for each in printed if each is not None],
        )

    @property
    def median(self) -> float | None:
        """The median share of the tolerance that predictions use; None without predictions."""
        return median(self.used) if self.used else None

    @property
    def slack(self) -> int:
        """Number of predictions that use less than a twentieth of their tolerance."""
        return sum(each < _LITTLE for each in self.used)

    @property
    def printed_fails(self) -> int:
        """Number of predictions for which the paper's formula fails."""
        return self.printed.count(False)


def _percent(value: float | None, reference: float | None) -> float | None:
    if value is None or reference is None:
        return None
    if value == reference:
        return 0.0
    return 100 * (value - reference) / abs(reference) if reference else None


def worst_percent(found: Iterable[Said[PredictionRow]]) -> float | None:
    """Find the largest difference from predictions, by size, per cent.

    Returns: None if none has a difference in per cent.
    """
    off = [said.gap_percent for said in found]
    return max((each for each in off if each is not None), key=abs, default=None)
