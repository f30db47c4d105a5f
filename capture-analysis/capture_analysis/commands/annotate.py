"""Write the same packets with comments, which Wireshark shows, as pcapng.

A comment explains packets that are worth a look:

  bunch of 13 ACKs behind 12 data packets   on the first ACK: they come back to back, out of a
                                            queue; the data packets stood in it before them
  idle 34 ms: the receiver's window was full
                                            on the data that ends it: at least half of a round trip
                                            without data, and the reason
  retransmission by time-out                or by RACK, spurious, by a probe; near the sender
  late data: a hole is filled               elsewhere: sent again, or overtaken
  queue starts: round trip 24 ms, 7.3 ms above the least
                                            on the ACK that shows it; "queue is empty" likewise

In Wireshark the filter `frame.comment` shows the packets with a comment, and `frame.comment
contains "bunch"` those with bunches; so does tshark -Y. Frames, their times and all other blocks
stay unchanged, byte by byte. Idle times and queues are seen only near the data's sender, bunches
only if the rate of the ACKs' bottleneck is known (--rate-mbit gives it).
"""

import argparse
import sys
from pathlib import Path

from capture_analysis.annotation.annotate import annotate
from capture_analysis.commands.measuring import add_options, read_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `annotate` to its parser."""
    add_options(parser, "a capture, a file: it is read twice")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the file to write; its name ends in .pcapng "
        "(default: CAPTURE-annotated.pcapng in this folder)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the copy; print its name, its frames and its comments."""
    path: Path = arguments.path
    stem = path.name.split(".")[0] or path.name.strip(".")
    target = arguments.output or Path(f"{stem}-annotated.pcapng")
    frames, comments, warnings = annotate(path, target, read_settings(arguments))
    for warning in warnings:
        sys.stderr.write(f"capture-analysis: {path}: {warning}\n")
    sys.stdout.write(f"{target}: {frames} frames, {comments} comments\n")
    return 0
