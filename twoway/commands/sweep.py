"""The subcommand that runs experiments at all of their points."""

import argparse
import json
from typing import TYPE_CHECKING

from twoway.commands.options import (
    BACKEND,
    CREW,
    JSON,
    KERNEL,
    METRIC,
    RESULTS,
    SEEDS,
    add_experiments,
    add_options,
    shown,
)
from twoway.commands.sweeping import judge_points, run_all
from twoway.contract.writing import chown_like_parent
from twoway.messages import console, say

if TYPE_CHECKING:
    from twoway.report.results import Experiment
    from twoway.sweeps.sweep import Outcome

HELP = "run experiments, all by default, and every point of theirs that is not there yet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sweep` to its parser."""
    add_experiments(parser)
    add_options(parser, JSON, RESULTS, METRIC, SEEDS, *CREW, BACKEND, KERNEL)


def run(args: argparse.Namespace) -> int:
    """Run all points of experiments; skip those with a finished run."""
    from twoway.report.repetitions import statements
    from twoway.report.results import read_results
    from twoway.report.sweep_page import write_sweep_pages

    outcomes = run_all(args, args.metric, args.seeds)
    if args.json:
        print(json.dumps([outcome.document() for outcome in outcomes], indent=1))
    experiments = read_results(outcome.folder for outcome in outcomes if outcome.folder)
    if not args.json and not console().quiet:
        _print_flows(outcomes, experiments)
    failed = {outcome.id: outcome.error for outcome in outcomes if not outcome.folder}
    pages = write_sweep_pages(experiments, args.results, failed, args.metric)
    for page in pages:
        chown_like_parent(page.parent)
    for experiment in experiments:
        for each in statements(experiment.results):
            say(f"{each.point}: {each.said}: {each.words}", markup=False)
    status = judge_points(outcomes)
    for page in pages:
        say(f"report: {shown(page)}", markup=False)
    return status


def _print_flows(outcomes: "list[Outcome]", experiments: "list[Experiment]") -> None:
    """Print what came out of each point."""
    from twoway.report.flow_table import sweep_table

    results = {each.folder: each for experiment in experiments for each in experiment.results}
    done = [(each.name, results[each.folder]) for each in outcomes if each.folder]
    for line in sweep_table((name, result.manifest, result.metrics) for name, result in done):
        print(line)
