"""The subcommand that runs experiments at all of their points."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twoway.commands.options import (
    BACKEND,
    CREW,
    JSON,
    KEEP,
    KERNEL,
    METRIC,
    NEW_RUNS,
    SEEDS,
    WATCH,
    add_experiments,
    add_options,
    shorten_path,
)
from twoway.commands.sweeping import asked_metrics, judge_points, named_points, run_all
from twoway.contract.writing import chown_like_parent
from twoway.messages import console, say

if TYPE_CHECKING:
    from twoway.report.results import Experiment
    from twoway.sweeps.sweep import Outcome

# A watched page is written again after this time in s, or after this multiple of the time to write
# it.
_WATCH_S, _WATCH_TIMES = 2, 10
HELP = "the older name of `run`; without a name it runs all experiments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sweep` to its parser."""
    add_experiments(parser)
    add_options(parser, JSON, *NEW_RUNS, METRIC, SEEDS, WATCH, *CREW, KEEP, BACKEND, KERNEL)


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
            say(f"{each.point}: {each.said}: {each.words}", markup=False)
    status = judge_points(args, outcomes)
    folders = [outcome.folder for outcome in outcomes if outcome.folder]
    say(f"{sum(disk_bytes(folders)) / 1e6:.1f} MB; `twoway clean` removes old runs", markup=False)
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
        say(f"report: {shorten_path(page)}", markup=False)


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
