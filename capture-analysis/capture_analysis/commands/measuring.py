"""What the commands that measure one capture have in common: its options."""

import argparse
from pathlib import Path

from capture_analysis.one_capture.single import Given


def add_options(
    parser: argparse.ArgumentParser, what: str = "a capture; - is standard input"
) -> None:
    """The capture, and what the user knows of it."""
    parser.add_argument("path", type=Path, metavar="CAPTURE", help=what)
    parser.add_argument(
        "--rate-mbit",
        type=positive_rate,
        metavar="R",
        help="rate of the bottleneck on the way that most data go, Mbit/s; estimated if not given",
    )
    parser.add_argument(
        "--ack-rate-mbit",
        type=positive_rate,
        metavar="R",
        help="rate of the bottleneck on the opposite way, Mbit/s; estimated if not given",
    )


def add_second(parser: argparse.ArgumentParser) -> None:
    """The other capture, of commands that take one or two."""
    parser.add_argument(
        "second",
        type=Path,
        nargs="?",
        metavar="CAPTURE2",
        help="a capture of another point of the same path",
    )


def given(arguments: argparse.Namespace) -> Given:
    """What the options say."""
    return Given(arguments.rate_mbit, arguments.ack_rate_mbit)


def positive_rate(text: str) -> float:
    """A rate on the command line, Mbit/s.

    Raises: argparse.ArgumentTypeError if it is none.
    """
    try:
        rate = float(text)
    except ValueError:
        rate = float("nan")
    if not 1e-6 <= rate <= 1e9:
        raise argparse.ArgumentTypeError(f"must be a rate in Mbit/s, 0.000001..1e9, got {text!r}")
    return rate


def flow_count(text: str) -> int:
    """How many connections to list.

    Raises: argparse.ArgumentTypeError if it is no number.
    """
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number of connections, got {text!r}")
    return int(text)


def at_least_one(text: str) -> int:
    """A number of workers.

    Raises: argparse.ArgumentTypeError if it is none.
    """
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text!r}")
    return int(text)
