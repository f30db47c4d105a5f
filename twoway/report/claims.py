"""Claims: what paper, theory and the authors' own simulation say of a number, and what came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twoway.contract.labels import label
from twoway.contract.verdict import misses
from twoway.report.results import Experiment, Result

SOURCES = ("theory", "paper", "simulation")


@dataclass(frozen=True)
class Claim:
    """All that is expected of one metric at one point.

    Attributes:
        result: the run.
        metric: its name.
        unit: its unit, "1" for shares and counts.
        measured: None if it is undefined.
        said: the expectations by source, as in metrics.json.
    """

    result: Result
    metric: str
    unit: str
    measured: float | None
    said: Mapping[str, Mapping[str, Any]]

    @property
    def where(self) -> str:
        """The point, for people."""
        return ", ".join(f"{axis} {label(value)}" for axis, value in self.result.point.items())

    @property
    def holds(self) -> bool:
        """Every source is right, within the tolerance derived for it."""
        return all(row["pass"] for row in self.said.values())

    @property
    def differs(self) -> bool:
        """A source is wrong, beyond its tolerance and what the run's clock may be off."""
        return any(misses(row) for row in self.said.values())

    def expected(self, source: str) -> float | None:
        """The value that a source says; None if it says nothing, or a bound."""
        row = self.said.get(source)
        return None if row is None or row["value"] is None else float(row["value"])

    def off_percent(self, source: str) -> float | None:
        """How far the measurement is from what a source says."""
        return _percent(self.measured, self.expected(source))

    @property
    def simulation_off_percent(self) -> float | None:
        """How far the authors' own simulation is from theory."""
        return _percent(self.expected("simulation"), self.expected("theory"))


def claims(experiment: Experiment) -> list[Claim]:
    """The claims of an experiment's runs, one for each metric and point, in the file's order."""
    return [claim for result in experiment.results for claim in _of(result)]


def _of(result: Result) -> list[Claim]:
    said: dict[str, dict[str, Any]] = {}
    for row in result.metrics["expect"]:
        said.setdefault(row["metric"], {}).setdefault(row["source"], row)
    return [
        Claim(result, metric, rows[first]["unit"], rows[first]["measured"], rows)
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
    """The largest difference from a source, by size; None where no percentage makes sense."""
    off = [claim.off_percent(source) for claim in found]
    return max((each for each in off if each is not None), key=abs, default=None)
