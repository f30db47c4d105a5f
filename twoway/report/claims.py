"""Claims of papers, theory and simulations, beside measurements."""

from collections.abc import Mapping
from dataclasses import dataclass

from twoway.contract.labels import label
from twoway.contract.metrics import ExpectationRow
from twoway.contract.verdict import Verdict, verdict_of
from twoway.report.results import Experiment, Result

SOURCES = ("theory", "paper", "simulation")


@dataclass(frozen=True)
class Claim:
    """All expectations of one metric at one point.

    Attributes:
        result: the run.
        metric: the metric's name.
        unit: the metric's unit, "1" for shares and counts.
        measured: the metric's value; None if undefined.
        said: the expectations by source, rows of metrics.json.
    """

    result: Result
    metric: str
    unit: str
    measured: float | None
    said: Mapping[str, ExpectationRow]

    @property
    def where(self) -> str:
        """The point's name for people."""
        return ", ".join(f"{axis} {label(value)}" for axis, value in self.result.point.items())

    @property
    def verdict(self) -> Verdict:
        """The worst verdict on any source's expectation."""
        found = {verdict_of(row) for row in self.said.values()}
        worst_first = (Verdict.FAIL, Verdict.CANNOT_TELL, Verdict.PASS)
        return next(verdict for verdict in worst_first if verdict in found)

    @property
    def holds(self) -> bool:
        """True if the measurement meets every source's expectation."""
        return self.verdict is Verdict.PASS

    def expected(self, source: str) -> float | None:
        """Return a source's value; None if the source has none, or a bound."""
        row = self.said.get(source)
        return None if row is None else row.value

    def off_percent(self, source: str) -> float | None:
        """Compute the measurement's difference from a source, per cent."""
        return _percent(self.measured, self.expected(source))

    @property
    def simulation_off_percent(self) -> float | None:
        """Difference of the authors' own simulation from theory, per cent."""
        return _percent(self.expected("simulation"), self.expected("theory"))


def claims(experiment: Experiment) -> list[Claim]:
    """List an experiment's claims, one per metric and point.

    Claims are in the order of the experiment's file.
    """
    return [claim for result in experiment.results for claim in _of(result)]


def _of(result: Result) -> list[Claim]:
    said: dict[str, dict[str, ExpectationRow]] = {}
    for row in result.metrics.expect:
        said.setdefault(row.metric, {}).setdefault(row.source, row)
    return [
        Claim(result, metric, rows[first].unit, rows[first].measured, rows)
        for metric, rows in said.items()
        for first in [next(iter(rows))]
    ]


def _percent(value: float | None, reference: float | None) -> float | None:
    if value is None or reference is None:
        return None
    if value == reference:
        return 0.0
    return 100 * (value - reference) / abs(reference) if reference else None


def worst_percent(found: list[Claim], source: str) -> float | None:
    """Find the largest difference from a source, by size, per cent.

    Returns: None if no claim has a difference in per cent.
    """
    off = [claim.off_percent(source) for claim in found]
    return max((each for each in off if each is not None), key=abs, default=None)
