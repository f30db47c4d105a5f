"""The subcommand that unpacks the runs of archives."""

import argparse
from pathlib import Path

from twoway.commands.options import NEW_RUNS, add_options, results_folder, shorten_path

HELP = "put the runs of archives into the results, compare every checksum, and write the reports"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab gather` to its parser."""
    parser.add_argument("archives", type=Path, nargs="+", help="an archive that `pack` made")
    add_options(parser, *NEW_RUNS)


def run(args: argparse.Namespace) -> int:
    """Unpack the runs of archives, check every file, report on each and print their folders."""
    from capture_analysis.errors import AnalysisError

    from twoway.contract.metrics import METRICS
    from twoway.errors import TwowayError
    from twoway.messages import say
    from twoway.report.pages import PAGE
    from twoway.runs.archive import unpack_runs
    from twoway.sweeps.sweep import measure_run

    results = results_folder(args)
    for path in args.archives:
        with path.open("rb") as archive:
            folders = unpack_runs(archive, results)
        for folder in folders:
            if (folder / METRICS).is_file() and not (folder / PAGE).is_file():
                try:
                    measure_run(folder)
                except (TwowayError, AnalysisError) as error:
                    say(f"{shorten_path(folder)}: no report: {error}", markup=False, wrong=True)
            print(shorten_path(folder))
    return 0
