"""Draw one picture, as PNG, SVG or a page that zooms to single packets.

The picture shows a connection of a capture, or the path between two captures.
"""

import argparse
import sys
from pathlib import Path

from capture_analysis.commands.measuring import add_options, add_second, has_rates, read_settings
from capture_analysis.errors import AnalysisError
from capture_analysis.pictures.capture_figures import NAMES
from capture_analysis.pictures.pair_pictures import FIGURES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `plot` to its parser."""
    add_options(parser, "a capture, a file: it is read twice")
    add_second(parser)
    parser.add_argument(
        "--what",
        choices=[*NAMES, *FIGURES],
        metavar="PICTURE",
        help=f"{_list_pictures(NAMES)} (default: {next(iter(NAMES))}). "
        f"Of two captures {_list_pictures(FIGURES)} (default: {next(iter(FIGURES))})",
    )
    parser.add_argument(
        "--flow",
        type=int,
        metavar="N",
        help="number of the connection, as `capture-analysis flows` counts (default: most payload)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the file to write; .png, .svg or .html decides how it is drawn",
    )


def _list_pictures(names: dict[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in names.items())


def run(arguments: argparse.Namespace) -> int:
    """Draw the picture; print the file's name to stdout.

    Raises: AnalysisError if it cannot be drawn.
    """
    from capture_analysis.pages.one_picture import plot, plot_pair

    if arguments.second:
        if arguments.flow is not None or has_rates(arguments):
            raise AnalysisError("--flow and --rate-mbit are for one capture: leave them out")
        what = arguments.what or next(iter(FIGURES))
        paths = arguments.path, arguments.second
        plot_pair(paths, what, arguments.output, inside=arguments.inside)
    else:
        what = arguments.what or next(iter(NAMES))
        plot(arguments.path, what, arguments.output, arguments.flow, read_settings(arguments))
    sys.stdout.write(f"{arguments.output}\n")
    return 0
