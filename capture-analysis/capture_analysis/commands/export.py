"""Write the packets of a capture as Parquet or CSV.

One row per TCP packet, in file order: what the capture says of it, and what it meant to its
connection (new data or a retransmission, the bytes it acknowledged, the round trip it showed).
Reads and writes piece by piece: the capture may be larger than memory.
"""

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("capture", type=Path, metavar="CAPTURE")
    parser.add_argument("target", type=Path, metavar="FILE.parquet|FILE.csv")


def run(args: argparse.Namespace) -> int:
    """Export."""
    from capture_analysis.capture import Capture
    from capture_analysis.export import export

    capture = Capture(args.capture)
    rows = export(capture, args.target)
    for warning in capture.warnings:
        sys.stderr.write(f"capture-analysis: {args.capture}: {warning}\n")
    sys.stdout.write(f"{args.target}: {rows} packets\n")
    return 0
