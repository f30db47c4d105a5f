"""`match A B`: the same packets in two captures of one path."""

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path

from capture_analysis.commands.measuring import flow_count
from capture_analysis.pair_document import FLOWS_LISTED, analyse_pair
from capture_analysis.pair_export import PairsFile

HELP = "match two captures of one path: clocks, delay, loss, ACK compression, the queue between"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own."""
    parser.add_argument("a", type=Path, metavar="A", help="a capture; results are on its clock")
    parser.add_argument("b", type=Path, metavar="B", help="a capture at another point of the path")
    parser.add_argument(
        "--same-clock",
        action="store_true",
        help="both captures have one clock: no offset and no drift are estimated",
    )
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="write every packet with both its times to FILE.parquet or FILE.csv",
    )
    parser.add_argument(
        "--flows",
        type=flow_count,
        default=FLOWS_LISTED,
        metavar="N",
        help="list so many connections, those with most packets first (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the document; warnings go to stderr, too.

    Raises: AnalysisError if a file is no capture, or they have no packet in common.
    """
    with PairsFile(arguments.pairs) if arguments.pairs else nullcontext() as sink:
        found = analyse_pair(
            arguments.a,
            arguments.b,
            one_clock=arguments.same_clock,
            flows=arguments.flows,
            sink=sink,
        )
    sys.stdout.write(json.dumps(found, indent=1, allow_nan=False) + "\n")
    for text in found["warnings"]:
        sys.stderr.write(f"capture-analysis: {text}\n")
    return 0
