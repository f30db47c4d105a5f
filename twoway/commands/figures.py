"""The subcommand that draws a finished run's figures."""

import argparse

from capture_analysis.errors import AnalysisError

from twoway.commands.options import RESULTS, RUN, add_options, shown
from twoway.commands.reporting import named_run
from twoway.contract.writing import chown_like_parent
from twoway.errors import TwowayError

HELP = "the pictures of a finished run's report as PNG and SVG files, into figures/ beside it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `figures` to its parser."""
    add_options(parser, RUN)
    parser.add_argument(
        "--csv", action="store_true", help="write the numbers behind the pictures instead"
    )
    parser.add_argument(
        "--foot",
        metavar="TEXT",
        help="text at the foot of each picture (default: the conditions of the run)",
    )
    add_options(parser, RESULTS)


def run(args: argparse.Namespace) -> int:
    """Draw a finished run's figures into files, or write their numbers; list the files."""
    from twoway.report.report import draw_figures

    folder = named_run(args)
    try:
        paths = draw_figures(folder, numbers=args.csv, foot=args.foot)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {folder}") from error
    finally:
        chown_like_parent(folder)
    for path in paths:
        print(shown(path))
    return 0
