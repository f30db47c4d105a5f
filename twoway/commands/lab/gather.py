"""The subcommand that unpacks the runs of archives."""

import argparse
from pathlib import Path

from twoway.commands.options import NEW_RUNS, add_options, results_folder, shown

HELP = "put the runs of archives into the results, and compare every checksum"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab gather` to its parser."""
    parser.add_argument("archives", type=Path, nargs="+", help="an archive that `pack` made")
    add_options(parser, *NEW_RUNS)


def run(args: argparse.Namespace) -> int:
    """Unpack the runs of archives, check every file and print their folders."""
    from twoway.runs.archive import unpack_runs

    for path in args.archives:
        with path.open("rb") as archive:
            for folder in unpack_runs(archive, results_folder(args)):
                print(shown(folder))
    return 0
