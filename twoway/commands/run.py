"""The subcommand that runs experiments."""

import argparse
from threading import Thread

from twoway.commands import sweep
from twoway.commands.options import DEFAULT_EXPERIMENT, experiments_by_default, results_folder
from twoway.commands.report import report_on
from twoway.errors import UsageError
from twoway.messages import say

HELP = "run an experiment in virtual time and report, or all points of several that have no run"
OPTIONS = (experiments_by_default(DEFAULT_EXPERIMENT), *sweep.OF_RUNS)


def run(args: argparse.Namespace) -> int:
    """Run one point and report on it, or all points of sweeps and of several experiments."""
    from twoway.backends.registry import find_backend
    from twoway.description.matrix import same_name
    from twoway.description.point import point_names
    from twoway.runs.clean import NONE, remove_captures
    from twoway.runs.points import load_point, refuse_lost_references
    from twoway.runs.run import run_watched

    if not args.experiments:
        args.experiments = [DEFAULT_EXPERIMENT]
        say(f"no experiment is named: running {DEFAULT_EXPERIMENT}; `twoway list` shows all")
    names = [point for each in args.experiments for point in point_names(each, args.seeds)]
    one = len(names) == 1 and same_name(names[0], args.experiments[0])
    if not one or args.scheduler or args.metric:
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
    status = report_on(folder, as_json=args.json)
    if args.keep == NONE:
        remove_captures(folder)
    return status


def _prepare_report() -> None:
    """Load the modules that the analysis and the page of a run need."""
    import twoway.report.report  # noqa: F401 - for what it imports
    from twoway.report.pages import prepare

    prepare()
