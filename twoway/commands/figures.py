"""The subcommand that draws figures of finished runs."""

import argparse
import shlex
import sys

from capture_analysis.errors import AnalysisError

from twoway.commands.options import METRIC, RESULTS, option, shorten_path
from twoway.contract.writing import chown_like_parent
from twoway.errors import TwowayError, UsageError

HELP = (
    "figures of a finished run or a sweep as PDF, SVG, PNG and CSV, with captions for LaTeX, into "
    "figures/ beside its page"
)
OPTIONS = (
    option(
        "runs",
        nargs="*",
        help="a run's folder, an experiment's id or file, points of one experiment, or the first "
        "digits of an identity (default: the latest run)",
    ),
    option(
        "--figure",
        action="append",
        default=[],
        metavar="NAME",
        help="draw this one alone: a figure of a run's report, such as queues; a sweep's metric, "
        "such as goodput; cdf:NAME, box:NAME or map:NAME of a metric; time:NAME or cdf:NAME of a "
        "series, such as time:cwnd.left, over all runs; may be repeated",
    ),
    option(
        "--flow",
        action="append",
        default=[],
        metavar="NAME",
        help="of a run's report, the pictures of this flow alone; may be repeated",
    ),
    option(
        "--style",
        default="",
        help="for print, without title and foot: ieee, ieee-wide, acm, acm-wide or slides, or a "
        "style of matplotlib by name or file",
    ),
    option("--csv", action="store_true", help="write the numbers alone"),
    option(
        "--foot",
        metavar="TEXT",
        help="text at the foot of each picture (default: the conditions, unless --style is given)",
    ),
    METRIC,
    RESULTS,
)


def run(args: argparse.Namespace) -> int:
    """Draw figures of finished runs into files, with their numbers; list the files."""
    from twoway.commands.sweep import asked_metrics
    from twoway.contract.metrics import METRICS
    from twoway.report.figure_files import FIGURES, Print, run_figures, sweep_figures
    from twoway.report.report import analyse_run
    from twoway.report.results import read_results
    from twoway.report.sweep_page import asked_of, derive
    from twoway.runs.finding import find_runs

    names = args.runs or [str(args.results / "latest")]
    folders = dict.fromkeys(folder for name in names for folder in find_runs(name, args.results))
    how = Print(args.style, args.foot, args.csv, shlex.join(["twoway", *sys.argv[1:]]))
    metrics, derived = asked_metrics(args.metric)
    first = next(iter(folders))
    if len(folders) == 1 and not (first / METRICS).is_file():
        analyse_run(first)
    try:
        experiment, *others = read_results(folders)
        if others:
            raise UsageError(
                f"{experiment.id}, {others[0].id}: name runs of one experiment",
                "`twoway compare` compares two experiments",
            )
        experiment = derive(experiment, derived)
        answers = args.metric and experiment.axes and not (args.figure or args.flow)
        if len(folders) == 1 and not answers:
            folder = first
            paths = run_figures(experiment, args.figure, args.flow, how)
        elif args.flow:
            raise UsageError(
                f"--flow: is for one run, got {len(folders)}", "a sweep's is --figure goodput.FLOW"
            )
        else:
            folder = args.results / experiment.id
            folder.mkdir(exist_ok=True)
            asked = asked_of(experiment, metrics)
            paths = sweep_figures(experiment, asked, args.figure, folder / FIGURES, how)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {first}") from error
    chown_like_parent(folder)
    for path in paths:
        print(shorten_path(path))
    return 0
