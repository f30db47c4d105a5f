"""Write a page with pictures, metrics.json and figures.

Of a capture, or of two captures of one path: into a folder of its own. Of a finished run of
twoway, a folder with manifest.json: into that folder.
"""

import argparse
import shlex
import sys
from pathlib import Path

from capture_analysis.commands.measuring import add_options, add_second, given
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.single import NOTHING
from capture_analysis.pages import capture_report
from capture_analysis.testbed.expectation import NOTHING_TOLD, in_words, misses, nothing_told
from capture_analysis.testbed.report import analyse_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own."""
    add_options(parser, "a capture, a file; or a run's folder")
    add_second(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="where to write; an earlier report is replaced (default: CAPTURE-report)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report; the page's name goes to stdout."""
    if arguments.path.is_dir():
        if arguments.second or arguments.output:
            raise AnalysisError(f"{arguments.path}: a run's report goes into its folder, alone")
        return _of_run(arguments.path)
    command = shlex.join(["capture-analysis", *sys.argv[1:]])
    if arguments.second:
        if given(arguments) != NOTHING:
            raise AnalysisError("two captures show the rate: leave --rate-mbit out")
        paths = arguments.path, arguments.second
        page = capture_report.report_pair(paths, arguments.output, command)
    else:
        page = capture_report.report(arguments.path, arguments.output, given(arguments), command)
    sys.stdout.write(f"{page}\n")
    return 0


def _of_run(folder: Path) -> int:
    """What does not hold goes to stderr."""
    document = analyse_run(folder)
    for row in document["expect"]:
        if misses(row):
            _complain(
                f"{row['metric']}: measured {row['measured']}, "
                f"expected {in_words(row)} ({row['source']})"
            )
    for row in document["fidelity"]:
        if not row["pass"]:
            _complain(f"{row['check']}: {row['value']}, bound {row['bound']}")
    if nothing_told(document["expect"]):
        _complain(NOTHING_TOLD)
    sys.stdout.write(f"{folder / 'report.html'}\n")
    return 0 if document["pass"] else 1


def _complain(text: str) -> None:
    sys.stderr.write(f"capture-analysis: {text}\n")
