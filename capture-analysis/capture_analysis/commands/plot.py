"""Draw one picture of a connection, as PNG, SVG or a page that zooms to single packets."""

import argparse
import sys
from pathlib import Path

from capture_analysis.commands.measuring import add_options, given
from capture_analysis.pages.capture_report import plot
from capture_analysis.pictures.capture_figures import NAMES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own."""
    add_options(parser, "a capture, a file: it is read twice")
    parser.add_argument(
        "--what",
        choices=NAMES,
        default="time-sequence",
        metavar="PICTURE",
        help="; ".join(f"{name}: {text}" for name, text in NAMES.items())
        + " (default: %(default)s)",
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
        help="what to write; .png, .svg or .html says how it is drawn",
    )


def run(arguments: argparse.Namespace) -> int:
    """Draw it; the file's name goes to stdout."""
    plot(arguments.path, arguments.what, arguments.output, arguments.flow, given(arguments))
    sys.stdout.write(f"{arguments.output}\n")
    return 0
