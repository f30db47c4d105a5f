"""Running many points at the same time, in any order, each once.

A finished run with the same identity is kept, and analysed again if the analysis or the
expectations changed. A point that fails does not stop the others.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError

from twoway.backends.backend import Backend
from twoway.contract.metrics import METRICS, Metrics, row_in_words
from twoway.contract.verdict import (
    NOTHING_TOLD,
    Verdict,
    nothing_told,
    verdict_of,
)
from twoway.contract.writing import chown_like_parent, out_of_space
from twoway.errors import DiskFullError, TwowayError
from twoway.measure.run_folder import manifest_of
from twoway.report.report import analyse_run, revision
from twoway.runs.cases import load_case
from twoway.runs.run import kept_run, run_case
from twoway.spec.point import Case

# Cost of boot, set-up and analysis, in packets that a guest forwards in the same time.
_FIXED_COST = 5_000


@dataclass(frozen=True)
class Outcome:
    """The outcome of one point.

    Attributes:
        name: the experiment's id and the point's name.
        folder: the run's folder; None if the run failed.
        error: a sentence, if the run failed.
        missed: expectations and fidelity checks that do not hold, a line each.
        kept: an earlier run was kept.
        wall_s: wall time spent on the point now.
    """

    name: str
    folder: Path | None = None
    error: str = ""
    missed: tuple[str, ...] = ()
    kept: bool = False
    wall_s: float = 0.0

    @property
    def good(self) -> bool:
        """True if the run finished and no expectation or fidelity check fails."""
        return self.folder is not None and not self.missed

    def document(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        folder = None if self.folder is None else str(self.folder)
        return {**asdict(self), "folder": folder, "pass": self.good}


# An executor, and the function that it calls for each point: name, backend, results folder.
Crew = tuple[Executor, Callable[[str, Backend, Path], Outcome]]


def cost(case: Case) -> float:
    """Estimate a point's work, for the order of points and time left."""
    rates = sum(direction.most_mbit for direction in case.profile.directions.values())
    packet_bit = case.experiment.stack.mtu_bytes * 8
    return _FIXED_COST + rates * 1e6 * case.experiment.duration_s / packet_bit


def run_points(
    cases: Mapping[str, Case],
    backend: Backend,
    results: Path,
    crew: Crew,
    on_outcome: Callable[[Case, Outcome], None],
) -> list[Outcome]:
    """Run every point without a finished run.

    Args:
        cases: the points, by the name that `load_case` takes.
        backend: the kernel and clock to run on.
        results: folder that holds one folder per point.
        crew: the workers.
        on_outcome: called for each point that ends.

    Returns: the outcomes, in the order of the cases.
    Raises: DiskFullError, because every other point would fail as well.
    """
    longest_first = sorted(cases, key=lambda name: cost(cases[name]), reverse=True)
    executor, work = crew
    running = {executor.submit(work, name, backend, results): name for name in longest_first}
    outcomes = {}
    for future in as_completed(running):
        name = running[future]
        outcomes[name] = future.result()
        on_outcome(cases[name], outcomes[name])
    return [outcomes[name] for name in cases]


def run_point(
    name: str,
    backend: Backend,
    results: Path,
    run: Callable[[Case, Backend, Path], Path] = run_case,
) -> Outcome:
    """Run one point, unless it has a finished run, and analyse it if need be.

    Raises: DiskFullError; every other error is returned in the outcome.
    """
    began = time.monotonic()
    try:
        case = load_case(name)
        folder = kept_run(case, backend, results)
        kept = folder is not None
        folder = folder or run(case, backend, results)
        document = analysed(folder, case)
    except DiskFullError:
        raise
    except (TwowayError, AnalysisError, OSError) as error:
        if isinstance(error, OSError) and out_of_space(error):
            raise DiskFullError(f"{name}: {error}") from error
        return Outcome(name, error=str(error), wall_s=time.monotonic() - began)
    return Outcome(
        name,
        folder,
        missed=tuple(missed(document)),
        kept=kept,
        wall_s=time.monotonic() - began,
    )


def missed(document: Metrics) -> Iterator[str]:
    """List the failed expectations and checks of a metrics.json."""
    for row in document.expect:
        if verdict_of(row) is Verdict.FAIL:
            yield row_in_words(row)
    if nothing_told(document.expect):
        yield f"{NOTHING_TOLD} (vm/README.md)"
    for check in document.fidelity:
        if not check.pass_:
            yield row_in_words(check)


def analysed(folder: Path, case: Case) -> Metrics:
    """Read a run's metrics.json; analyse again if it is out of date.

    metrics.json is out of date if code or expectations have changed since it was written. Points of
    a sweep get metrics only, single runs also figures and a report.
    """
    now = (revision(), manifest_of(folder).spec_sha256)
    try:
        document = Metrics.read(folder / METRICS)
        if (document.analysis, document.spec_sha256) == now:
            return document
    except (OSError, ValueError):  # missing, cut short or another version's
        pass
    document = analyse_run(folder, pictures=not case.point)
    chown_like_parent(folder)
    return document
