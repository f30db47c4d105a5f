"""Running many points at the same time, in any order, each once.

A finished run with the same identity is kept, and analysed again if the analysis changed. A point
that fails does not stop the others. At the end all are judged once more: a claim may refer to other
points' runs.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from capture_analysis.errors import AnalysisError

from twoway.backends.backend import Backend
from twoway.contract.verdicts import GOOD, Verdicts, row_in_words
from twoway.contract.writing import chown_like_parent, out_of_space
from twoway.description.point import Point
from twoway.errors import DiskFullError, TwowayError, in_a_sentence
from twoway.measure.revision import is_measured
from twoway.measure.run_folder import manifest_of
from twoway.report.pages import PAGE
from twoway.report.report import analyse_run, rejudge
from twoway.runs.run import kept_run, lock_point, run_experiment

# Cost of boot, set-up and analysis, in packets that a guest forwards in the same time.
_FIXED_COST = 5_000


@dataclass(frozen=True)
class Outcome:
    """The outcome of one point.

    Attributes:
        name: its name on the command line: an id or a file, with the point's name.
        folder: the run's folder; None if the run failed.
        error: a sentence, if the run failed.
        missed: predictions, claims and fidelity checks that fail the run, one line each.
        contradicted: predictions that the run contradicts, on record, one line each.
        changed: findings that the run does not confirm, one line each.
        exit_code: the run's exit code (contract/verdicts.py).
        headline: the verdict on the run, in words.
        kept: True if an earlier run was kept.
        wall_s: wall time spent on the point now.
        id: the experiment's id, with the point's name.
    """

    name: str
    folder: Path | None = None
    error: str = ""
    missed: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    exit_code: int = GOOD
    headline: str = ""
    kept: bool = False
    wall_s: float = 0.0
    id: str = ""

    @property
    def good(self) -> bool:
        """True if the run finished and nothing fails it."""
        return self.folder is not None and self.exit_code == GOOD

    def with_verdicts(self, verdicts: Verdicts) -> "Outcome":
        """Add the verdicts on the run."""
        return replace(
            self,
            missed=tuple(map(row_in_words, verdicts.misses)),
            contradicted=tuple(map(row_in_words, verdicts.contradicted)),
            changed=tuple(map(row_in_words, verdicts.changed)),
            exit_code=verdicts.exit_code,
            headline=verdicts.headline,
        )

    def document(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        folder = None if self.folder is None else str(self.folder)
        return {**asdict(self), "folder": folder, "pass": self.good}


class Work(NamedTuple):
    """A point to run: its name, its experiment, kernel and clock, and the results folder."""

    name: str
    point: Point
    backend: Backend
    results: Path


# An executor, and the function that it calls for each point.
Crew = tuple[Executor, Callable[[Work], Outcome]]


def cost(point: Point) -> float:
    """Estimate a point's work, for the order of points and the time left."""
    rates = sum(direction.most_mbit for direction in point.profile.directions.values())
    packet_bit = point.experiment.stack.mtu_bytes * 8
    return _FIXED_COST + rates * 1e6 * point.experiment.duration_s / packet_bit


def run_points(
    points: Mapping[str, Point],
    backend: Backend,
    results: Path,
    crew: Crew,
    on_outcome: Callable[[Point, Outcome], None],
) -> list[Outcome]:
    """Run every point without a finished run.

    Returns: the outcomes, in the order of the points.
    Raises: DiskFullError, because every other point would fail as well.
    """
    longest_first = sorted(points, key=lambda name: cost(points[name]), reverse=True)
    executor, work = crew
    running = {
        executor.submit(work, Work(name, points[name], backend, results)): name
        for name in longest_first
    }
    outcomes = {}
    for future in as_completed(running):
        name = running[future]
        outcomes[name] = replace(future.result(), id=points[name].id)
        on_outcome(points[name], outcomes[name])
    return [_rejudged(outcomes[name]) for name in points]


def _rejudged(outcome: Outcome) -> Outcome:
    """Judge a run together with all others."""
    if outcome.folder is None:
        return outcome
    try:
        return outcome.with_verdicts(rejudge(outcome.folder))
    except (TwowayError, AnalysisError, OSError) as error:
        _refuse_full_disk(outcome.name, error)
        return replace(outcome, folder=None, error=str(error))


def run_point(work: Work, run: Callable[[Point, Backend, Path], Path] = run_experiment) -> Outcome:
    """Run one point, unless it has a finished run, and analyse it if necessary.

    Raises: DiskFullError; every other error is returned in the outcome.
    """
    began = time.monotonic()
    name, point, backend, results = work
    try:
        with in_a_sentence(name, AnalysisError), lock_point(point, results):
            folder = kept_run(point, backend, results, without_if=_is_analysed)
            kept = folder is not None
            folder = folder or run(point, backend, results)
            verdicts = measure_run(folder)
    except DiskFullError:
        raise
    except (TwowayError, AnalysisError, OSError) as error:
        _refuse_full_disk(name, error)
        return Outcome(name, error=str(error), wall_s=time.monotonic() - began)
    outcome = Outcome(name, folder, kept=kept, wall_s=time.monotonic() - began)
    return outcome.with_verdicts(verdicts)


def _refuse_full_disk(name: str, error: Exception) -> None:
    """Raise DiskFullError if an error means that the disk is full."""
    if isinstance(error, OSError) and out_of_space(error):
        raise DiskFullError(f"{name}: {error}") from error


def measure_run(folder: Path) -> Verdicts:
    """Measure and judge a run; only judge it if its metrics and report are up to date."""
    if _is_analysed(folder):
        return rejudge(folder)
    verdicts = analyse_run(folder)
    chown_like_parent(folder)
    return verdicts


def _is_analysed(folder: Path) -> bool:
    """Tell whether a run has a report, and metrics of the present code."""
    return is_measured(folder, manifest_of(folder)) and (folder / PAGE).is_file()
