"""Write a page with pictures, and its numbers as JSON.

The report is on a capture, or on two captures of one path, in a folder of its own.
"""

import argparse
import json
import shlex
import sys
import webbrowser
from pathlib import Path

from capture_analysis.commands.measuring import add_options, add_second, has_rates, read_settings
from capture_analysis.errors import AnalysisError
from capture_analysis.pages import capture_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `report` to its parser."""
    add_options(parser, "a capture, a file")
    add_second(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder of the report; an earlier report is replaced (default: CAPTURE-report, or "
        "CAPTURE-SECOND-report)",
    )
    parser.add_argument(
        "--figures",
        action="store_true",
        help="also draw each picture as PNG and SVG, for papers and slides; takes seconds",
    )
    parser.add_argument("--open", action="store_true", help="show the page in the browser")


def run(arguments: argparse.Namespace) -> int:
    """Write the report; print the page's name to stdout."""
    if arguments.path.is_dir():
        raise AnalysisError(f"{arguments.path}: a folder; a report is of one capture or of two")
    command = shlex.join(["capture-analysis", *sys.argv[1:]])
    if arguments.second:
        if has_rates(arguments):
            raise AnalysisError("two captures show the rate: omit --rate-mbit")
        paths = arguments.path, arguments.second
        page = capture_report.report_pair(
            paths, arguments.output, command, inside=arguments.inside, drawn=arguments.figures
        )
    else:
        page = capture_report.report(
            arguments.path,
            arguments.output,
            read_settings(arguments),
            command,
            drawn=arguments.figures,
        )
    sys.stdout.write(f"{page}\n")
    document = page.with_name(capture_report.PAIR if arguments.second else capture_report.CAPTURE)
    for text in json.loads(document.read_text("utf-8"))["warnings"]:
        sys.stderr.write(f"capture-analysis: {text}\n")
    if arguments.open and not webbrowser.open(page.resolve().as_uri()):
        raise AnalysisError(f"{page}: no browser could be started to show it")
    return 0
