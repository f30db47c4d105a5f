"""The subcommand that runs the kernel's own scripts of packetdrill."""

import argparse
from pathlib import Path

from twoway.commands import packetdrill
from twoway.errors import UsageError
from twoway.messages import suggest

HELP = "the scripts of packetdrill in a kernel's own source, on that kernel"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `selftests` to its parser."""
    parser.add_argument(
        "collection", help="a folder below tools/testing/selftests, such as net/packetdrill"
    )
    packetdrill.add_options_of_scripts(parser)


def run(args: argparse.Namespace) -> int:
    """Find the scripts in the source of a kernel, and run them on it."""
    from twoway.guest.cache import built_guest
    from twoway.guest.source import kernel_named

    guest = built_guest(kernel_named(args.kernel or "wide"))
    tests = guest.kernel.parent.parent / "source/tools/testing/selftests"
    known = sorted({str(each.parent.relative_to(tests)) for each in tests.rglob("*.pkt")})
    if args.collection not in known:
        raise UsageError(
            f"{args.collection:.80}: no scripts of packetdrill in {tests}"
            f"{suggest(args.collection, known)}",
            f"there are {', '.join(known)}; tests of other kinds are not run"
            if known
            else "the guest's source is not there, or too old to have scripts of packetdrill",
        )
    args.places = [Path(tests / args.collection)]
    return packetdrill.run(args)
