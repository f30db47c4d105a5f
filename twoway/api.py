"""Experiments from Python: `import twoway` in a script or notebook.

    run = twoway.run("kalampoukas-5.2")
    run.metrics["goodput.left"], run.series("cwnd.left"), run.figure("queues")

Runs are carried out as those of a sweep by `twoway run`: on all cores, and a finished run with the
same identity is kept.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

import yaml

from twoway.contract.expression import (
    Derived,
    ExpressionError,
    derived_problems,
    read_expression,
    with_derived,
)
from twoway.contract.metrics import METRICS, Metrics
from twoway.contract.statements import axis_number
from twoway.contract.verdicts import VERDICTS, Verdicts
from twoway.description.point import point_names
from twoway.errors import RunError, SpecError, UsageError
from twoway.manifest import Manifest, read_manifest
from twoway.messages import suggest
from twoway.paths import results as usual_results
from twoway.report.flow_table import flow_table, sweep_table
from twoway.report.statistics import difference, spread
from twoway.runs.finding import find_runs
from twoway.runs.points import load_point, refuse_lost_references

if TYPE_CHECKING:
    import pyarrow as pa
    from capture_analysis.pictures.plots import Drawing

    from twoway.measure.analysis import Analysis

__all__ = ["Run", "Sweep", "difference", "evaluate", "load", "run", "spread", "sweep"]
# The name of a formula without one; no axis or metric can have it.
_FORMULA = "the formula"
# A notebook's kernel asks for colours with these variables, and would show a progress bar's codes
# as text.
_FORCED = ("FORCE_COLOR", "CLICOLOR_FORCE")
# An experiment's id, its file, or its fields as `twoway schema experiment` describes them.
Experiment = str | Path | Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: the folder of its plan, captures, metrics and verdicts.
    """

    folder: Path

    @cached_property
    def manifest(self) -> Manifest:
        """All that is known of the run apart from measurements."""
        return read_manifest(self.folder)

    @property
    def name(self) -> str:
        """The experiment's id, with "@" and the point's name in a sweep."""
        return self.manifest.experiment.id

    @cached_property
    def measured(self) -> Metrics:
        """The measurements: metrics with units and errors, fidelity checks, flows of programs."""
        return Metrics.read(self.folder / METRICS)

    @property
    def metrics(self) -> dict[str, float | None]:
        """Values by name, None if undefined; `twoway metrics` describes each, with its unit."""
        return {name: each.value for name, each in self.measured.metrics.items()}

    @cached_property
    def verdicts(self) -> Verdicts:
        """The verdicts on fidelity, predictions, claims and findings."""
        return Verdicts.read(self.folder / VERDICTS)

    @cached_property
    def _analysis(self) -> "Analysis":
        from twoway.measure.analysis import Analysis  # noqa: PLC0415 - reads the captures

        return Analysis(self.folder)

    def series(self, name: str) -> "pa.Table":
        """Return a time series as a table with the columns `time_s` and QUANTITY_UNIT.

        Args:
            name: QUANTITY.CONNECTION with goodput, goodput_by_second, cwnd, ssthresh or
                smoothed_rtt; queue.QUEUE; or jain_index, over all connections by second.

        Returns: times are s after the start of traffic. Goodput and index are at the start of their
            interval; a queue's length holds until the next row. Seconds in which a connection (for
            the index: two of them) does not send throughout are left out.
        Raises: UsageError with the names that exist.
        """
        import pyarrow as pa  # noqa: PLC0415 - takes long to load

        from twoway.report.series import named_series  # noqa: PLC0415 - reads captures

        unit, times, values = named_series(self._analysis, name)
        title = name.partition(".")[0]
        if unit != "1":
            title += f"_{unit.replace('/', '_per_').lower()}"
        return pa.table({"time_s": times, title: values})

    def compute(self, formula: str) -> float | None:
        """Compute a formula over the metrics and the point's values; None if it is undefined.

        Args:
            formula: such as "goodput.bbr / sum(goodput.*)", as in `metrics:` of a file.

        Raises: UsageError if it does not follow the grammar, or names what the run does not have.
        """
        derived = _derived({_FORMULA: formula}, [self])
        found, _ = with_derived(self.measured.metrics, derived, self.manifest.point)
        return found[_FORMULA].value

    def packets(self, interface: str) -> "pa.Table":
        """Return an interface's capture: one row for each TCP packet, in order.

        Raises: AnalysisError if the interface has no capture.
        """
        from capture_analysis.export import whole_table  # noqa: PLC0415 - takes long to load
        from capture_analysis.reading.capture import Capture  # noqa: PLC0415 - beside it

        return whole_table(Capture(self._analysis.run.capture_file(interface)))

    def figure(self, name: str = "queues") -> "Drawing":
        """Draw a figure of the run's report, as a figure of matplotlib.

        Raises: UsageError with the names that exist.
        """
        from capture_analysis.pictures.plots import draw  # noqa: PLC0415 - a drawing library

        from twoway.report.figures import all_figures  # noqa: PLC0415 - reads the captures

        figures = {each.id: each for each in all_figures(self._analysis, self.measured)}
        if name not in figures:
            raise UsageError(
                f"{name}: no such figure{suggest(name, figures)}", f"there are {', '.join(figures)}"
            )
        return draw(figures[name])

    def __str__(self) -> str:
        """Return the results, as `twoway run` prints them."""
        return "\n".join([self.name, *flow_table(self.manifest, self.measured)])


@dataclass(frozen=True)
class Sweep:
    """The runs of an experiment's points.

    Attributes:
        runs: by name, in the experiment's order.
        failed: the reason why a point has no run, by name.
    """

    runs: Mapping[str, Run]
    failed: Mapping[str, str]

    def table(self, *metrics: str, **formulas: str) -> "pa.Table":
        """Return a row for each run: its name, the axes' values, metrics, and harm.

        Args:
            metrics: names of metrics, all by default.
            formulas: metrics by name, as for `answer`; after the others.

        Raises: UsageError if no run has one, or for a formula as in `answer`.
        """
        from twoway.report.harm import with_harm  # noqa: PLC0415 - beside it
        from twoway.report.sweep_page import points_table  # noqa: PLC0415 - takes long to load

        derived, rows = _derived(formulas, self.runs.values()), {}
        for name, run in self.runs.items():
            every, _ = with_derived(run.measured.metrics, derived, run.manifest.point)
            rows[name] = run.manifest, run.measured.model_copy(update={"metrics": every})
        rows = with_harm(rows)
        known = dict.fromkeys(name for _, measured in rows.values() for name in measured.metrics)
        if missing := [name for name in metrics if name not in known]:
            raise UsageError(
                f"{missing[0]}: no such metric{suggest(missing[0], known)}",
                f"there are {', '.join(known)}",
            )
        return points_table(rows, (*metrics, *formulas) if metrics else ())

    def answer(self, *metrics: str, **formulas: str) -> "pa.Table":
        """Return a row for each point, over its seeds: mean, half of its 95 % interval, number.

        Args:
            metrics: names or families of metrics.
            formulas: metrics by name, as `metrics:` of a file, such as share="goodput.bbr /
                sum(goodput.*)".

        Returns: the axes, and of each metric the columns NAME, NAME_margin and NAME_seeds.
        Raises: UsageError for a formula that does not follow the grammar, or names what no run has.
        """
        import pyarrow as pa  # noqa: PLC0415 - takes long to load

        from twoway.report.results import read_results  # noqa: PLC0415 - beside it
        from twoway.report.sweep_answer import answer_of  # noqa: PLC0415 - beside it
        from twoway.report.sweep_page import derive  # noqa: PLC0415 - beside it

        derived = _derived(formulas, self.runs.values())
        (experiment,) = read_results(run.folder for run in self.runs.values())
        found = answer_of(derive(experiment, derived), [*metrics, *formulas])
        rows = []
        for words, spreads in found.rows:
            row: dict[str, Any] = {
                axis: word if (number := axis_number(word)) is None else number
                for axis, word in zip(found.axes, words, strict=True)
            }
            for name, each in zip(found.units, spreads, strict=True):
                row[name] = each.mean if each else None
                row[f"{name}_margin"] = each.margin if each else None
                row[f"{name}_seeds"] = each.defined if each else 0
            rows.append(row)
        return pa.Table.from_pylist(rows)

    def __str__(self) -> str:
        """Return the results, as `twoway run` prints those of a sweep."""
        rows = ((name, run.manifest, run.measured) for name, run in self.runs.items())
        failed = [f"{name}: {reason}" for name, reason in self.failed.items()]
        return "\n".join([*sweep_table(rows), *failed])


def _derived(formulas: Mapping[str, str], runs: Iterable[Run]) -> dict[str, Derived]:
    """Read formulas.

    Raises: UsageError if one does not follow the grammar, or names what no run has.
    """
    derived = {}
    for name, formula in formulas.items():
        try:
            derived[name] = Derived(formula=read_expression(formula).text)
        except ExpressionError as error:
            raise UsageError(f"{name}: {error}") from error
    ran = [*runs] if derived else []
    names = {name for each in ran for name in each.measured.metrics}
    axes = {axis for each in ran for axis in each.manifest.point}
    for problem in derived_problems(derived, names, axes):
        raise UsageError(problem.removeprefix("metrics."))
    return derived


def run(experiment: Experiment, *, name: str = "notebook", results: Path | None = None) -> Run:
    """Carry out an experiment, or a point of one, unless it has a finished run.

    Args:
        experiment: an id, with "@" and the point's name for a point of a sweep; a file; or fields.
        name: the id of an experiment that is given as fields.
        results: folder with one folder per experiment; by default as for `twoway run`.

    Raises: SpecError with every problem found; RunError if the run fails; UsageError for a sweep.
    """
    one = sweep(experiment, name=name, results=results, points=1)
    for reason in one.failed.values():
        raise RunError(reason)
    return next(iter(one.runs.values()))


def sweep(
    experiment: Experiment,
    *,
    name: str = "notebook",
    results: Path | None = None,
    seeds: int | None = None,
    points: int | None = None,
) -> Sweep:
    """Carry out all points of an experiment that have no finished run, on all cores.

    Args:
        experiment: as for `run`.
        name: as for `run`.
        results: as for `run`.
        seeds: number of repetitions of each point; by default the experiment's `seeds`.
        points: the expected number of points; by default any.

    Raises: SpecError with every problem found, before anything is run; RunError if the sweep is
        interrupted; UsageError if there are more points, or fewer.
    """
    with _file(experiment, name) as known:
        names = point_names(str(known), seeds)
        if points is not None and len(names) != points:
            raise UsageError(f"{known}: has {len(names)} points", "`twoway.sweep` runs them all")
        refuse_lost_references([load_point(each) for each in names])
        # A separate process, so that no script has to be importable.
        into = (results or usual_results()).resolve()
        # -P: the experiment's folder, in which it starts, may hold modules of any name.
        words = ["-P", "-m", "twoway.cli", "sweep", "--json", "--results", str(into)]
        words += ["--seeds", str(seeds)] if seeds else []
        done = subprocess.run(
            [sys.executable, *words, known.name if known.is_absolute() else str(known)],
            stdout=subprocess.PIPE,
            check=False,
            cwd=known.parent if known.is_absolute() else None,
            env={k: v for k, v in os.environ.items() if k not in _FORCED or sys.stderr.isatty()},
        )
    try:
        outcomes = json.loads(done.stdout)
    except ValueError as error:
        raise RunError(f"the sweep ended with status {done.returncode}") from error
    runs = [Run(Path(each["folder"])) for each in outcomes if each["folder"]]
    failed = {each["id"]: each["error"] for each in outcomes if not each["folder"]}
    return Sweep({each.name: each for each in runs}, failed)


def evaluate(
    requests: Iterable[Mapping[str, Any]], *, workers: int | None = None, longest_s: float = 60
) -> Iterator[dict[str, Any]]:
    """Answer requests of a program that searches, as `twoway evaluate` does.

    Args:
        requests: as `twoway schema evaluation` describes them; read while earlier ones run.
        workers: number of runs at the same time; by default one for each processor.
        longest_s: wall time of a request that names none.

    Yields: the answers, in the order in which runs end; `id` tells them apart.
    Raises: RunError if the command ends before all answers are there.
    """
    words = [sys.executable, "-P", "-m", "twoway.cli", "evaluate", "--longest", str(longest_s)]
    words += ["--workers", str(workers)] if workers else []
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as command:
        assert command.stdin
        assert command.stdout
        writer = Thread(target=_write_lines, args=(command.stdin, requests), daemon=True)
        writer.start()
        try:
            yield from map(json.loads, command.stdout)
        except GeneratorExit:
            command.terminate()
            raise
    if command.returncode:
        raise RunError(f"`twoway evaluate` ended with status {command.returncode}")


def _write_lines(into: IO[str], requests: Iterable[Mapping[str, Any]]) -> None:
    """Write each request as a line, until the reader ends."""
    with suppress(BrokenPipeError, ValueError), into:
        for request in requests:
            into.write(f"{json.dumps(request)}\n")
            into.flush()


def load(name: str | Path, *, results: Path | None = None) -> Run | Sweep:
    """Find finished runs; for a sweep's id the newest run of each point.

    Args:
        name: a run's folder, an experiment's or point's id, six digits of a run's identity, or a
            file that `twoway share` made.
        results: folder of the runs; by default as for `twoway run`.

    Raises: UsageError if there is none; ArchiveError if the file holds no sound runs.
    """
    runs = [Run(folder) for folder in find_runs(str(name), results or usual_results())]
    return runs[0] if len(runs) == 1 else Sweep({each.name: each for each in runs}, {})


@contextmanager
def _file(experiment: Experiment, name: str) -> Iterator[Path]:
    """Yield an experiment's name for the command line; fields are written to a temporary file."""
    if not isinstance(experiment, Mapping):
        yield Path(experiment)
        return
    with TemporaryDirectory(prefix="twoway-") as folder:
        file = Path(folder) / f"{name}.yml"
        file.write_text(yaml.safe_dump(dict(experiment), sort_keys=False))
        try:
            yield file
        except SpecError as error:
            problems = [problem.replace(f"{folder}/", "") for problem in error.problems]
            raise SpecError(problems, error.hint) from error
