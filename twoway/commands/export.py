"""The subcommand that exports a finished run."""

import argparse
from pathlib import Path

from twoway.commands.options import FORMAT, RESULTS, RUN, option, shorten_path
from twoway.commands.report import named_run
from twoway.contract.writing import chown_like_parent

HELP = (
    "the time series of a finished run's connections, goodput, window and round-trip time, in "
    "a file for another tool"
)
OPTIONS = (
    RUN,
    FORMAT,
    option(
        "--to",
        type=Path,
        metavar="FILE",
        help="the file (default: in the run's folder, by the experiment's id)",
    ),
    RESULTS,
)


def run(args: argparse.Namespace) -> int:
    """Write the time series of a finished run's connections for another tool."""
    from twoway.report.export import export_run

    path = export_run(named_run(args), args.format, args.to)
    chown_like_parent(path)
    print(shorten_path(path))
    return 0
