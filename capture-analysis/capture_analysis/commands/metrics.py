"""`metrics FILE`: every metric of one capture as JSON."""

import argparse
import json
import sys

from capture_analysis.commands.measuring import add_options, flow_count, given
from capture_analysis.document import FLOWS_LISTED, analyse

HELP = "print the metrics of a capture, or of a run's folder, as JSON"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own."""
    add_options(parser)
    parser.add_argument(
        "--flows",
        type=flow_count,
        default=FLOWS_LISTED,
        metavar="N",
        help="list so many connections, those with most payload first (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the document.

    Raises: AnalysisError if there is nothing to measure.
    """
    document = analyse(arguments.path, given(arguments), arguments.flows)
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return 0
