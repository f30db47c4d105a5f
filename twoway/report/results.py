"""Finished runs: grouped by experiment and paper, and as lines of a list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from capture_analysis.errors import AnalysisError

from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.model import Document
from twoway.contract.statements import axis_number, label
from twoway.contract.verdicts import VERDICTS, Verdicts
from twoway.manifest import SEED, Manifest, read_manifest
from twoway.manifest import Experiment as Described
from twoway.measure.run_folder import manifest_of

DocumentT = TypeVar("DocumentT", bound=Document)


@dataclass(frozen=True)
class Result:
    """A run of an experiment, or of one point of a sweep.

    Attributes:
        folder: the run's folder.
        manifest: the run's manifest.json.
        metrics: the run's metrics.json.
        verdicts: the run's verdicts.json.
        reasons: why a derived metric is undefined, by name.
    """

    folder: Path
    manifest: Manifest
    metrics: Metrics
    verdicts: Verdicts
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The experiment's id, with "@" and the point's name if it is a sweep."""
        return self.manifest.experiment.id

    @property
    def experiment_id(self) -> str:
        """The experiment's id, without the point."""
        return self.id.partition("@")[0]

    @property
    def point(self) -> Mapping[str, Any]:
        """The point's values by axis; empty if the experiment is no sweep."""
        return self.manifest.point


@dataclass(frozen=True)
class Experiment:
    """An experiment with its runs, in the order of the sweep's points."""

    id: str
    results: tuple[Result, ...]

    @property
    def said(self) -> Described:
        """The experiment's fields: title, summary, source, matrix and others."""
        return self.results[0].manifest.experiment

    @property
    def paper(self) -> str:
        """The paper that the experiment reproduces, as its file names it; "" if none."""
        return self.said.source.paper if self.said.source else ""

    @cached_property
    def axes(self) -> dict[str, list[str]]:
        """The sweep's axes, each with the labels of its values in order; last the seeds."""
        seeds = sorted({each.manifest.repetition or 0 for each in self.results} - {0})
        return {
            name: [label(value) for value in axis.to] for name, axis in self.said.matrix.items()
        } | ({SEED: [label(seed) for seed in seeds]} if seeds else {})

    @cached_property
    def numeric_axes(self) -> set[str]:
        """The axes whose values are all numbers."""
        return {
            name
            for name in self.results[0].point
            if all(axis_number(each.point.get(name)) is not None for each in self.results)
        }

    def place(self, run: Result, axis: str = "") -> str:
        """Write a run's values on the axes with several values, without one axis and the seeds."""
        values = ((n, v) for n, v in run.point.items() if n not in (axis, SEED))
        return ", ".join(f"{n} {label(v)}" for n, v in values if len(self.axes[n]) > 1)

    @property
    def repeated(self) -> bool:
        """True if points are repeated with other seeds."""
        return any(each.manifest.repetition for each in self.results)


def read_results(folders: Iterable[Path]) -> list[Experiment]:
    """Read finished, analysed runs and group them by experiment, sorted by id.

    Raises: AnalysisError naming a folder that is no analysed run.
    """
    by_id: dict[str, list[Result]] = {}
    for folder in folders:
        manifest = manifest_of(folder)
        metrics, verdicts = _read(Metrics, folder / METRICS), _read(Verdicts, folder / VERDICTS)
        result = Result(folder, manifest, metrics, verdicts)
        by_id.setdefault(result.experiment_id, []).append(result)
    return [Experiment(name, tuple(_ordered(found))) for name, found in sorted(by_id.items())]


def _ordered(results: list[Result]) -> list[Result]:
    """Sort runs in the order of the matrix, the last axis varying fastest."""
    axes = Experiment(results[0].id, tuple(results)).axes
    return sorted(
        results, key=lambda r: [axes[axis].index(label(value)) for axis, value in r.point.items()]
    )


def _read(kind: type[DocumentT], path: Path) -> DocumentT:
    try:
        return kind.read(path)
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{error}: not a run that was analysed") from error


@dataclass(frozen=True)
class RunSummary:
    """One finished run.

    Attributes:
        folder: its path below the results.
        experiment: id of its experiment, or of the point of a sweep.
        title: the experiment's title.
        run: its name, the time of its start, UTC.
        identity: runs with the same identity have the same captures.
        backend: the backend that ran it.
        kernel: the kernel's release.
        verdict: in words; empty if it has no report.
        exit_code: the report's exit code; -1 without a report.
        has_page: True if report.html exists.
    """

    folder: str
    experiment: str
    title: str
    run: str
    identity: str
    backend: str
    kernel: str
    verdict: str
    exit_code: int
    has_page: bool


def summarize(folder: Path, results: Path) -> RunSummary:
    """Read a run's line from its folder.

    Raises: ValueError with a sentence if its manifest cannot be read.
    """
    manifest = read_manifest(folder)
    try:
        verdicts = Verdicts.read(folder / VERDICTS)
        verdict, exit_code = verdicts.headline, verdicts.exit_code
    except (OSError, ValueError):  # missing, truncated or of another version
        verdict, exit_code = "", -1
    return RunSummary(
        folder=str(folder.relative_to(results)),
        experiment=folder.parent.name,
        title=manifest.experiment.title,
        run=manifest.run,
        identity=manifest.identity,
        backend=manifest.backend,
        kernel=manifest.kernel.release,
        verdict=verdict,
        exit_code=exit_code,
        has_page=(folder / "report.html").is_file(),
    )
