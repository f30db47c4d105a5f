"""Options of the commands that measure one capture."""

import argparse
from pathlib import Path

from capture_analysis.one_capture.single import Given


def add_options(
    parser: argparse.ArgumentParser, what: str = "a capture; - is standard input"
) -> None:
    """Add the capture, and the options for the user's knowledge of it."""
    parser.add_argument("path", type=Path, metavar="CAPTURE", help=what)
    parser.add_argument(
        "--rate-mbit",
        type=positive_rate,
        metavar="R",
        help="rate of the bottleneck in the direction of most data, Mbit/s (default: estimated)",
    )
    parser.add_argument(
        "--ack-rate-mbit",
        type=positive_rate,
        metavar="R",
        help="rate of the bottleneck in the other direction, Mbit/s (default: estimated)",
    )
    add_inside(parser)


def add_inside(parser: argparse.ArgumentParser) -> None:
    """Add the option that reads tunnels."""
    parser.add_argument(
        "--inside",
        action="store_true",
        help="read the TCP inside tunnels, too (default: only where there is none outside)",
    )


def add_second(parser: argparse.ArgumentParser) -> None:
    """Add a second, optional capture to a command's parser."""
    parser.add_argument(
        "second",
        type=Path,
        nargs="?",
        metavar="CAPTURE2",
        help="a capture of another point of the same path",
    )


def add_flows(parser: argparse.ArgumentParser, default: int, most: str) -> None:
    """Add the option for the number of connections to list, those with most of something first."""
    parser.add_argument(
        "--flows",
        type=flow_count,
        default=default,
        metavar="N",
        help=f"number of connections to list, those with most {most} in one direction first "
        "(default: %(default)s)",
    )


def read_settings(arguments: argparse.Namespace) -> Given:
    """Return the user's settings for the capture."""
    return Given(arguments.rate_mbit, arguments.ack_rate_mbit, inside=arguments.inside)


def has_rates(arguments: argparse.Namespace) -> bool:
    """Tell whether the user gave a rate."""
    return arguments.rate_mbit is not None or arguments.ack_rate_mbit is not None


def positive_rate(text: str) -> float:
    """Parse a rate from the command line, Mbit/s.

    Raises: argparse.ArgumentTypeError if the text is not a rate.
    """
    try:
        rate = float(text)
    except ValueError:
        rate = float("nan")
    if not 1e-6 <= rate <= 1e9:
        raise argparse.ArgumentTypeError(f"must be a rate in Mbit/s, 0.000001..1e9, got {text!r}")
    return rate


def flow_count(text: str) -> int:
    """Parse the number of connections to list.

    Raises: argparse.ArgumentTypeError if the text is not a number.
    """
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number of connections, got {text!r}")
    return int(text)


def at_least_one(text: str) -> int:
    """Parse a number of workers.

    Raises: argparse.ArgumentTypeError if the text is not a number of at least 1.
    """
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text!r}")
    return int(text)
