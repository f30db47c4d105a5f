"""Match two captures of one path, taken at two points of it, each with its own clock.

The same packets are found in both captures; offset and drift of the clocks are estimated and
removed. The path between the two taps is measured: one-way delays, loss by kind, the queue of each
direction and its period, ACK compression from both ends, reordering. The output is JSON, on the
clock of A.
"""

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from capture_analysis.commands.measuring import add_flows, add_inside
from capture_analysis.json_text import indented_json
from capture_analysis.two_captures.pair_document import FLOWS_LISTED, analyse_pair

if TYPE_CHECKING:
    from capture_analysis.two_captures.pair_export import PairsFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `match` to its parser."""
    parser.add_argument("a", type=Path, metavar="A", help="a capture; results are on its clock")
    parser.add_argument("b", type=Path, metavar="B", help="a capture at another point of the path")
    parser.add_argument(
        "--same-clock",
        action="store_true",
        help="both captures have one clock: no offset and no drift are estimated",
    )
    add_inside(parser)
    parser.add_argument(
        "--pairs",
        type=Path,
        metavar="FILE",
        help="write every packet with both its times to FILE, whose name ends in .parquet or .csv",
    )
    add_flows(parser, FLOWS_LISTED, "data packets")


def run(arguments: argparse.Namespace) -> int:
    """Print the document; print its warnings to stderr, too.

    Raises: AnalysisError if a file is not a capture, or no packet is in both.
    """
    with _pairs_file(arguments.pairs) if arguments.pairs else nullcontext() as sink:
        found = analyse_pair(
            arguments.a,
            arguments.b,
            one_clock=arguments.same_clock,
            inside=arguments.inside,
            flows=arguments.flows,
            sink=sink,
        )
    sys.stdout.write(indented_json(found) + "\n")
    for text in found["warnings"]:
        sys.stderr.write(f"capture-analysis: {text}\n")
    return 0


def _pairs_file(target: Path) -> "PairsFile":
    from capture_analysis.two_captures.pair_export import PairsFile  # loads Arrow

    return PairsFile(target)
