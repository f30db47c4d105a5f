"""The subcommand that runs experiments at all of their points."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from twoway.commands.options import (
    BACKEND,
    CREW,
    JSON,
    KERNEL,
    METRIC,
    RESULTS,
    add_experiments,
    add_options,
    shown,
)
from twoway.commands.sweeping import judge_points, run_all
from twoway.contract.writing import chown_like_parent
from twoway.messages import console, say

if TYPE_CHECKING:
    from twoway.sweeps.sweep import Outcome

HELP = "run experiments, all by default, and every point of theirs that is not there yet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `sweep` to its parser."""
    add_experiments(parser)
    add_options(parser, JSON, RESULTS, METRIC, *CREW, BACKEND, KERNEL)


def run(args: argparse.Namespace) -> int:
    """Run all points of experiments; skip those with a finished run."""
    outcomes = run_all(args, args.metric)
    if args.json:
        print(json.dumps([outcome.document() for outcome in outcomes], indent=1))
    elif not console().quiet:
        _print_flows(outcomes)
    pages = _write_pages(outcomes, args)
    status = judge_points(outcomes)
    for page in pages:
        say(f"report: {shown(page)}", markup=False)
    return status


def _write_pages(outcomes: "list[Outcome]", args: argparse.Namespace) -> list[Path]:
    """Write a page for each sweep that has a run."""
    from twoway.report.sweep_page import write_sweep_page

    done = [outcome.folder for outcome in outcomes if outcome.folder]
    failed = {Path(o.name).name.replace(".yml@", "@"): o.error for o in outcomes if not o.folder}
    pages = write_sweep_page(done, args.results, failed, args.metric)
    for page in pages:
        chown_like_parent(page.parent)
    return pages


def _print_flows(outcomes: "list[Outcome]") -> None:
    """Print what came out of each point."""
    from twoway.contract.manifest import read_manifest
    from twoway.contract.metrics import METRICS, Metrics
    from twoway.report.flow_table import sweep_table

    done = [(outcome.name, outcome.folder) for outcome in outcomes if outcome.folder]
    runs = ((name, read_manifest(at), Metrics.read(at / METRICS)) for name, at in done)
    for line in sweep_table(runs):
        print(line)
