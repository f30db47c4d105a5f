"""The subcommand that makes one run from the files of several hosts."""

import argparse
import json
from pathlib import Path

from twoway.commands.lab.one_point import one_point
from twoway.commands.options import JSON, NEW_RUNS, add_experiment, add_options, results_folder
from twoway.commands.reporting import report_on

HELP = "make one run from the files of several hosts, and report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab merge` to its parser."""
    add_experiment(parser)
    parser.add_argument(
        "parts", type=Path, help="folder with a folder for each host, and times.json"
    )
    add_options(parser, JSON, *NEW_RUNS)


def run(args: argparse.Namespace) -> int:
    """Merge the folders of all hosts into one run and report on it."""
    from twoway.lab.multihost_run import Multihost
    from twoway.manifest import MACHINE
    from twoway.runs.run import run_experiment

    parts = {path.parent.name: path.parent for path in sorted(args.parts.glob(f"*/{MACHINE}"))}
    multihost = Multihost(parts, json.loads((args.parts / "times.json").read_text()))
    folder = run_experiment(
        one_point(args.experiment), multihost, results_folder(args), took_s=multihost.took_s
    )
    return report_on(folder, as_json=args.json)
