"""The subcommand that packs finished runs."""

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

from twoway.commands.options import RESULTS, add_options
from twoway.contract.writing import written_aside

HELP = "write finished runs into an archive with their checksums"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab pack` to its parser."""
    parser.add_argument("runs", nargs="*", help="runs, as EXPERIMENT/RUN (default: all)")
    parser.add_argument("--to", type=Path, help="the archive (default: standard output)")
    add_options(parser, RESULTS)


def run(args: argparse.Namespace) -> int:
    """Write finished runs into one archive."""
    from twoway.runs.archive import finished_runs, pack_runs

    with written_aside(args.to) if args.to else nullcontext(sys.stdout.buffer) as archive:
        pack_runs(args.results, args.runs or finished_runs(args.results), archive)
    return 0
