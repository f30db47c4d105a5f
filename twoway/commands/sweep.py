"""The subcommand that runs experiments at all of their points; others run points with it, too."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twoway.commands.options import (
    BACKEND,
    CREW,
    EXPERIMENTS_OR_ALL,
    JSON,
    KEEP,
    KERNEL,
    METRIC,
    NEW_RUNS,
    SEEDS,
    WATCH,
    all_ids,
    results_folder,
    run_again,
    shorten_path,
)
from twoway.contract.writing import chown_like_parent
from twoway.errors import UsageError
from twoway.messages import console, say, suggest

if TYPE_CHECKING:
    from twoway.contract.expression import Derived
    from twoway.description.point import Point
    from twoway.report.results import Experiment
    from twoway.runs.clean import Room
    from twoway.sweeps.sweep import Outcome

# A watched page is written again after this time in s, or after this multiple of the time to write
# it.
_WATCH_S, _WATCH_TIMES = 2, 10
HELP = "the older name of `run`; without a name it runs all experiments"
# Of `run`, too.
OF_RUNS = (JSON, *NEW_RUNS, METRIC, SEEDS, WATCH, *CREW, KEEP, BACKEND, KERNEL)
OPTIONS = (EXPERIMENTS_OR_ALL, *OF_RUNS)


def run(args: argparse.Namespace) -> int:
    """Run all points of experiments; skip those with a finished run."""
    from twoway.contract.folders import disk_bytes
    from twoway.report.repetitions import statements
    from twoway.report.results import read_results
    from twoway.runs.clean import Room

    pages = _Pages(args)
    try:
        points = named_points(args.experiments, args.seeds)
        outcomes = run_all(args, points, args.metric, pages.on_outcome, Room(args.keep))
    except KeyboardInterrupt:
        pages.write_stopped()
        raise
    if args.json:
        print(json.dumps([outcome.document() for outcome in outcomes], indent=1))
    experiments = read_results(outcome.folder for outcome in outcomes if outcome.folder)
    if not args.json and not console().quiet:
        _print_results(args, outcomes, experiments)
    written = pages.write(outcomes)
    for experiment in experiments:
        for each in statements(experiment.results):
            say(f"{each.point}: {each.said}: {each.words}")
    status = judge_points(args, outcomes)
    folders = [outcome.folder for outcome in outcomes if outcome.folder]
    say(f"{sum(disk_bytes(folders)) / 1e6:.1f} MB; `twoway clean` removes old runs")
    _name(written)
    return status


class _Pages:
    """The pages of the sweeps that a command runs."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._metrics, self._derived = asked_metrics(args.metric)
        self._done: list[Outcome] = []
        self._waiting: list[str] = []
        self._next_s = 0.0

    def on_outcome(self, done: "list[Outcome]", waiting: list[str]) -> None:
        """Write the pages so far, if they are watched and were not written just now."""
        self._done, self._waiting = done, waiting
        began_s = time.monotonic()
        if not self._args.watch or began_s < self._next_s or not waiting:
            return
        first = not self._next_s
        written = self.write(done, waiting)
        if first:
            _name(written)
        took_s = time.monotonic() - began_s
        self._next_s = began_s + took_s + max(_WATCH_S, _WATCH_TIMES * took_s)

    def write_stopped(self) -> None:
        """Write the pages so far of a sweep that was stopped, and name them."""
        why = dict.fromkeys(self._waiting, "the sweep was interrupted")
        _name(self.write(self._done, why=why))

    def write(
        self,
        outcomes: "list[Outcome]",
        waiting: Sequence[str] = (),
        why: Mapping[str, str] | None = None,
    ) -> list[Path]:
        """Write the pages of outcomes, with the points that have no run, and the reasons."""
        from twoway.report.results import read_results
        from twoway.report.sweep_page import write_sweep_pages

        experiments = read_results(each.folder for each in outcomes if each.folder)
        failed = {each.id: each.error for each in outcomes if not each.folder}
        failed.update(why or {})
        args = self._args
        pages = write_sweep_pages(
            experiments, args.results, failed, self._metrics, waiting, derived=self._derived
        )
        for page in pages:
            chown_like_parent(page.parent)
        return pages


def _name(pages: Sequence[Path]) -> None:
    for page in pages:
        say(f"report: {shorten_path(page)}")


def _print_results(
    args: argparse.Namespace, outcomes: "list[Outcome]", experiments: "list[Experiment]"
) -> None:
    """Print what each sweep answers; the flows of each point if it is asked for nothing."""
    from twoway.report.flow_table import align_columns
    from twoway.report.sweep_answer import MOST_ROWS, answer_of, answer_tables
    from twoway.report.sweep_page import PAGE, asked_of, derive

    names, derived = asked_metrics(args.metric)
    silent = []
    for experiment in experiments:
        asked = asked_of(experiment, names) if experiment.axes else []
        if not asked:
            silent.append(experiment)
            continue
        answer = answer_of(derive(experiment, derived), asked)
        for table in answer_tables(answer):
            print(*align_columns(table[: MOST_ROWS + 1], left=len(answer.axes)), sep="\n")
            if (more := len(table) - 1 - MOST_ROWS) > 0:
                print(
                    f"and {more} more rows, in {shorten_path(args.results / experiment.id / PAGE)}"
                )
        print(*answer.sentences, *answer.doubts, sep="\n")
    _print_flows(outcomes, silent)


def _print_flows(outcomes: "list[Outcome]", experiments: "list[Experiment]") -> None:
    """Print the results of each point."""
    from twoway.report.flow_table import sweep_table

    results = {each.folder: each for experiment in experiments for each in experiment.results}
    done = [(each.id, results[each.folder]) for each in outcomes if each.folder in results]
    rows = ((name, result.manifest, result.metrics) for name, result in done)
    bars = sys.stdout.isatty() and sys.stdout.encoding == "utf-8"
    for line in sweep_table(rows, bars=bars):
        print(line)


def named_points(names: Sequence[str], seeds: int | None = None) -> "dict[str, Point]":
    """Read every point of experiments, by name; of all experiments if none is named."""
    from twoway.description.point import point_names
    from twoway.runs.points import load_point

    return {
        point: load_point(point)
        for name in names or all_ids()
        for point in point_names(name, seeds)
    }


def run_all(
    args: argparse.Namespace,
    points: "Mapping[str, Point]",
    metrics: Sequence[str] = (),
    on_outcome: "Callable[[list[Outcome], list[str]], None]" = lambda _, __: None,
    room: "Room | None" = None,
) -> "list[Outcome]":
    """Run points with the options on the command line.

    Args:
        args: the command line.
        points: the points, by the names that the command line takes.
        metrics: metrics to be drawn over points, which must exist, or NAME=FORMULA.
        on_outcome: called when a point ends, with all outcomes so far, and with the ids of the
            points that are left.
        room: the room for captures of the runs; by default all stay.

    Raises: UsageError if no experiment has one of the families of metrics, or is a sweep.
    """
    from twoway.backends.registry import find_backend
    from twoway.progress import SweepBar
    from twoway.runs.points import refuse_lost_references
    from twoway.sweeps.sweep import cost, run_points
    from twoway.sweeps.workers import workers

    families, derived = asked_metrics(metrics)
    if metrics and len({point.id.partition("@")[0] for point in points.values()}) == len(points):
        raise UsageError(
            f"--metric: {metrics[0]:.80}: needs a sweep, and {next(iter(points))} is one point",
            "the report of a run has all metrics",
        )
    refuse_lost_references(points.values())
    _refuse_unknown(families, derived, points.values())
    if args.scheduler and args.kernel:
        raise UsageError(
            f"--kernel: a lab's workers have their own kernels, got {args.kernel:.80}",
            "an experiment's field `kernel` selects one on each worker",
        )
    results = results_folder(args)
    backend = find_backend(args.backend, args.kernel)
    if args.scheduler:
        from twoway.sweeps.scheduler import lab_workers

        crew = lab_workers(args.scheduler, args.certificates.expanduser())
    else:
        crew = workers(args.workers)
    waiting = {point.id: cost(point) for point in points.values()}
    done: list[Outcome] = []
    if not console().is_terminal:
        crew_size = f"workers of {args.scheduler}" if args.scheduler else f"{args.workers} at once"
        say(f"{len(points)} points, {crew_size}, into {shorten_path(results)}")

    def ended(name: str, outcome: "Outcome") -> None:
        bar.show(_line(outcome), waiting.pop(name, 0), kept=outcome.kept)
        done.append(outcome)
        if room and outcome.folder:
            room.take(outcome.folder, mine=not outcome.kept)
        on_outcome(done, [*waiting])

    try:
        with SweepBar(len(points), sum(waiting.values())) as bar, crew as who:
            outcomes = run_points(
                points, backend, results, who, lambda point, outcome: ended(point.id, outcome)
            )
    except KeyboardInterrupt:
        say(f"{len(done)} of {len(points)} points have run: the same command continues")
        raise
    if room and room.removed:
        say(
            f"without captures: {room.removed} of the runs; `--keep captures` keeps all, and "
            "`twoway run POINT` makes them again"
        )
    return outcomes


def asked_metrics(given: Sequence[str]) -> "tuple[list[str], dict[str, Derived]]":
    """Read values of --metric: names of metrics, and those given as NAME=FORMULA.

    Raises: UsageError if a formula does not follow the grammar of expressions.
    """
    from twoway.contract.expression import ExpressionError, read_asked

    try:
        return read_asked(given)
    except ExpressionError as error:
        raise UsageError(f"--metric: {error}") from error


def _refuse_unknown(
    asked: Sequence[str], derived: "Mapping[str, Derived]", points: "Iterable[Point]"
) -> None:
    """Raise UsageError if a metric that is asked for does not exist."""
    from twoway.contract.expression import derived_problems
    from twoway.report.harm import HARMS

    points = list(points)
    names = dict.fromkeys(name for each in points for name in each.metrics)
    axes = {axis for each in points for axis in each.values}
    for problem in derived_problems(derived, names, axes):
        raise UsageError(f"--metric: {problem.removeprefix('metrics.')}")
    families = dict.fromkeys(name.partition(".")[0] for name in names)
    families |= dict.fromkeys(harm.definition.name for harm in HARMS)
    known = {**families, **names, **derived}
    if missing := [name for name in asked if name not in known]:
        raise UsageError(
            f"--metric: {missing[0]:.80}: no such metric{suggest(missing[0], known)}",
            f"there are {', '.join(families)}",
        )


def judge_points(args: argparse.Namespace, outcomes: "list[Outcome]") -> int:
    """Print contradicted predictions, failed points and how to rerun them; return the exit code."""
    from twoway.contract.judge import Verdict, mark_verdict
    from twoway.contract.verdicts import BAD, GOOD, TELLS_LITTLE, points_in_words

    bad = [outcome for outcome in outcomes if not outcome.good]
    for outcome in outcomes:
        for line in outcome.contradicted:
            say(mark_verdict(Verdict.CONTRADICTED, f"{outcome.id}: {line}"), markup=True)
    for outcome in bad:
        say(_line(outcome), markup=True, wrong=True)
        for line in (*outcome.missed, run_again(args, outcome.name)):
            say(f"     {line}", wrong=True)
    changed = sum(outcome.good and bool(outcome.changed) for outcome in outcomes)
    say(points_in_words(len(outcomes), len(bad), changed))
    if any(outcome.folder is None or outcome.exit_code == BAD for outcome in outcomes):
        return BAD
    return TELLS_LITTLE if bad else GOOD


def _line(outcome: "Outcome") -> str:
    """Format a point's outcome as a line for people."""
    from twoway.contract.judge import Verdict, mark_verdict

    if outcome.error:
        return mark_verdict(Verdict.FAIL, f"{outcome.id}: {outcome.error}")
    time = "kept" if outcome.kept else f"{outcome.wall_s:.1f} s"
    if outcome.good:
        verdict = Verdict.CONTRADICTED if outcome.contradicted else Verdict.PASS
        return mark_verdict(verdict, f"{outcome.id} ({time})")
    verdict = Verdict.FAIL if outcome.missed else Verdict.CANNOT_TELL
    return mark_verdict(verdict, f"{outcome.id}: {outcome.headline} ({time})")
