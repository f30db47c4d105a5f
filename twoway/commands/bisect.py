"""The subcommand that finds the commit of a kernel that changed a result."""

import argparse
import json
from pathlib import Path

from twoway.commands.options import (
    JSON,
    NEW_RUNS,
    add_experiment,
    add_options,
    results_folder,
    shorten_path,
)
from twoway.messages import say

HELP = (
    "the first commit of a kernel's git history with which an experiment has another result: "
    "a verdict, a metric, or a packet"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `bisect` to its parser."""
    add_experiment(parser)
    parser.add_argument(
        "--source",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="a git repository of the kernel; it is only read",
    )
    parser.add_argument(
        "--good", required=True, metavar="REV", help="a commit that lacks the change"
    )
    parser.add_argument("--bad", required=True, metavar="REV", help="a commit that has the change")
    add_options(parser, JSON, *NEW_RUNS)


def run(args: argparse.Namespace) -> int:
    """Find the first commit of a kernel with which an experiment has another result."""
    from twoway.guest.history import History
    from twoway.report.comparing import compare as compare_runs
    from twoway.report.pages import write_comparison_page
    from twoway.runs.points import load_point
    from twoway.sweeps.bisect import Search

    def tell(line: str) -> None:
        say(line, markup=False)

    point, history = load_point(args.experiment), History(args.source)
    found = Search(point, history, results_folder(args), tell).find(args.good, args.bad)
    if args.json:
        document = {"commit": found.commit, "title": found.title, "differ": found.sign}
        runs = {"good": str(found.good), "bad": found.bad and str(found.bad)}
        print(json.dumps(document | runs, indent=1))
    else:
        print(f"first bad commit: {found.title}")
    if found.bad:
        folders, page = [found.good, found.bad], args.results / "comparison.html"
        write_comparison_page(compare_runs(folders), folders, page)
        tell(f"a good run and the commit's own: {shorten_path(page)}")
    return 0
