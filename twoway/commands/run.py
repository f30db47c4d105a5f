"""The subcommand that runs an experiment."""

import argparse
from threading import Thread

from twoway.commands import sweep
from twoway.commands.options import (
    BACKEND,
    CREW,
    DEFAULT_EXPERIMENT,
    JSON,
    KERNEL,
    METRIC,
    NEW_RUNS,
    SEEDS,
    WATCH,
    add_experiment,
    add_options,
    results_folder,
)
from twoway.commands.reporting import report_on
from twoway.errors import UsageError
from twoway.messages import say

HELP = "run an experiment in virtual time and report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `run` to its parser."""
    add_experiment(parser)
    parser.set_defaults(experiment=None)
    add_options(parser, JSON, *NEW_RUNS, METRIC, SEEDS, WATCH, *CREW, BACKEND, KERNEL)


def run(args: argparse.Namespace) -> int:
    """Run an experiment, or all points of a sweep, and report on it."""
    from twoway.backends.registry import find_backend
    from twoway.description.point import point_names
    from twoway.runs.points import load_point, refuse_lost_references
    from twoway.runs.run import run_watched

    if args.experiment is None:
        args.experiment = DEFAULT_EXPERIMENT
        say(f"no experiment is named: running {DEFAULT_EXPERIMENT}; `twoway list` shows all")
    names = point_names(args.experiment, args.seeds)
    if names != [args.experiment] or args.scheduler or args.metric:
        args.experiments = [args.experiment]
        return sweep.run(args)
    if args.watch:
        raise UsageError(
            f"--watch: writes a sweep's page, and {names[0]} is one point",
            "a run's report is written when it ends",
        )
    point = load_point(names[0])
    refuse_lost_references([point])
    results = results_folder(args)
    backend = find_backend(args.backend, args.kernel)
    # This overlaps with the guest, which has another processor.
    Thread(target=_prepare_report, daemon=True).start()
    folder = run_watched(point, backend, results)
    return report_on(folder, as_json=args.json)


def _prepare_report() -> None:
    """Load the modules that the analysis and the page of a run need."""
    import twoway.report.report  # noqa: F401 - for what it imports
    from twoway.report.pages import prepare

    prepare()
