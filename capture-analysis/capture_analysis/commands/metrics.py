"""Print every metric of a capture, or of a run's folder, as JSON.

Numbers that are undefined are null, with the reason beside them.
"""

import argparse
import json
import sys

from capture_analysis.commands.measuring import add_options, flow_count, given

LISTED = 100


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_options(parser)
    parser.add_argument(
        "--flows",
        type=flow_count,
        default=LISTED,
        metavar="N",
        help="list so many connections, those with most payload first (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the document.

    Raises: AnalysisError if there is nothing to measure.
    """
    if args.path.is_dir():
        from capture_analysis.analysis import Analysis
        from capture_analysis.metrics import compute

        document = compute(Analysis(args.path))
    else:
        from capture_analysis.document import analyse

        document = analyse(args.path, given(args), args.flows)
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return 0
