"""The subcommand that opens a network in the guest."""

import argparse

from twoway.commands.options import EXPERIMENT

HELP = "the network in the guest, with Mininet's prompt"
OPTIONS = (EXPERIMENT,)


def run(args: argparse.Namespace) -> int:
    """Open an experiment's network in the guest, with Mininet's prompt.

    The guest has the host's clock.
    """
    from twoway.guest.cache import built_guest
    from twoway.runs.points import load_point
    from twoway.runs.shell import open_shell

    return open_shell(load_point(args.experiment), built_guest())
