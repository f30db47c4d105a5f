"""The subcommand that carries out a host's share of a plan."""

import argparse
from pathlib import Path

HELP = "carry out a host's share of a plan, as root"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab node` to its parser."""
    parser.add_argument("folder", type=Path, help="the folder with its plan.json")


def run(args: argparse.Namespace) -> int:
    """Carry out this host's share of a plan."""
    from twoway.lab.multihost_run import carry_out

    carry_out(args.folder)
    return 0
