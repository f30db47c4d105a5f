"""The subcommand that finds the commit of a kernel that changed a result."""

import argparse
import json
from pathlib import Path

from twoway.commands.options import EXPERIMENT, JSON, NEW_RUNS, option, results_folder, shorten_path
from twoway.messages import say

HELP = (
    "the first commit of a kernel's git history with which an experiment has another result: "
    "a verdict, a metric, or a packet; or with which a script of packetdrill no longer passes"
)
OPTIONS = (
    EXPERIMENT,
    option(
        "--source",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="a git repository of the kernel; it is only read",
    ),
    option("--good", required=True, metavar="REV", help="a commit that lacks the change"),
    option("--bad", required=True, metavar="REV", help="a commit that has the change"),
    option(
        "--question",
        metavar="WORD",
        help="the difference: verdicts, metrics, packets, or a metric such as goodput.down, by "
        "which a commit is bad if it is nearer to the bad one (default: the first that differs)",
    ),
    option(
        "--packetdrill",
        type=Path,
        metavar="FILE",
        help="the program for a script, FILE.pkt in place of the experiment (default: on PATH)",
    ),
    JSON,
    *NEW_RUNS,
)


def run(args: argparse.Namespace) -> int:
    """Find the first commit of a kernel with which an experiment or script has another result."""
    from twoway.guest.history import History
    from twoway.report.comparing import compare as compare_runs
    from twoway.report.pages import write_comparison_page
    from twoway.runs.packetdrill import find_binary, find_trials
    from twoway.runs.points import load_point
    from twoway.sweeps.bisect import Experiment, Script, Search

    def tell(line: str) -> None:
        say(line)

    question: Experiment | Script
    is_script = args.experiment.endswith(".pkt")
    history = History(args.source, wide=is_script)
    if is_script:
        (trial,) = find_trials(
            [Path(args.experiment)], ["ipv6" if args.experiment.endswith("v6.pkt") else "ipv4"]
        )
        question = Script(trial, find_binary(args.packetdrill))
    else:
        question = Experiment(load_point(args.experiment), results_folder(args), args.question)
    found = Search(question, history, tell).find(args.good, args.bad)
    if args.json:
        document = {"commit": found.commit, "title": found.title, "differ": found.sign}
        runs = {"good": found.good and str(found.good), "bad": found.bad and str(found.bad)}
        print(json.dumps(document | runs, indent=1))
    else:
        print(f"first bad commit: {found.title}")
    if found.good and found.bad:
        folders, page = [found.good, found.bad], args.results / "comparison.html"
        write_comparison_page(compare_runs(folders), folders, page)
        tell(f"a good run and the commit's own: {shorten_path(page)}")
    return 0
