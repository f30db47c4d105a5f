"""The subcommand that makes archives for lab hosts."""

import argparse
import json

HELP = "make the archives for lab hosts, and print their list"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: `lab bundle` has no arguments."""


def run(args: argparse.Namespace) -> int:  # noqa: ARG001 - as all commands
    """Make the archives that lab hosts need and print their list as JSON."""
    from twoway.guest.cache import built_guest
    from twoway.lab.bundles import make_bundles

    print(json.dumps([each.document() for each in make_bundles(built_guest())], indent=1))
    return 0
