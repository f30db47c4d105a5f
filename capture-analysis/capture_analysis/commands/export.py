"""Write the packets of a capture as Parquet or CSV.

One row per TCP packet, in file order: its fields, and its role in its connection (new data or a
retransmission, the bytes it acknowledged, the round trip it showed). Reads and writes piece by
piece: the capture may be larger than memory.
"""

import argparse
import sys
from pathlib import Path

from capture_analysis.commands.measuring import add_inside
from capture_analysis.reading.capture import Capture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `export` to its parser."""
    parser.add_argument("path", type=Path, metavar="CAPTURE", help="a capture; - is standard input")
    parser.add_argument(
        "target",
        type=Path,
        metavar="FILE",
        help="the file to write; its name ends in .parquet or .csv",
    )
    add_inside(parser)


def run(arguments: argparse.Namespace) -> int:
    """Export the packets."""
    from capture_analysis.export import export  # loads Arrow

    capture = Capture(arguments.path, inside=arguments.inside)
    rows = export(capture, arguments.target)
    for warning in capture.warnings:
        sys.stderr.write(f"capture-analysis: {arguments.path}: {warning}\n")
    sys.stdout.write(f"{arguments.target}: {rows} packets\n")
    return 0
