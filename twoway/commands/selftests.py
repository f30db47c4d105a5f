"""The subcommand that runs the kernel's own selftests."""

import argparse
from functools import partial

from twoway.commands import packetdrill
from twoway.commands.options import add_options, option
from twoway.errors import UsageError
from twoway.messages import suggest

HELP = "the selftests of the network in a kernel's own source, on that kernel, in virtual time"
OPTIONS = (
    option(
        "collection",
        metavar="COLLECTION[:TEST]",
        help="a folder below tools/testing/selftests, such as net/packetdrill or net/mptcp",
    ),
    *packetdrill.OF_SCRIPTS,
)


def run(args: argparse.Namespace) -> int:
    """Find the tests in the source of a kernel, and run them on it."""
    from twoway.guest.cache import built_guest
    from twoway.guest.selftests import build_selftests, collections_in, selftests_of
    from twoway.guest.source import kernel_named
    from twoway.progress import Steps
    from twoway.runs.selftests import Selftest, run_selftest

    guest = built_guest(kernel_named(args.kernel or "wide"))
    tests, known = selftests_of(guest), collections_in(selftests_of(guest))
    collection, _, only = args.collection.partition(":")
    if collection not in known:
        network = [each for each in known if each.startswith("net")]
        raise UsageError(
            f"{collection:.80}: no selftests in {tests}{suggest(collection, known)}",
            f"there are {', '.join(network)}" if network else "the guest's source is not there",
        )
    scripts = sorted(each.name for each in (tests / collection).glob("*.pkt"))
    if scripts:
        if only and only not in scripts:
            raise UsageError(f"{only:.80}: no test of {collection}{suggest(only, scripts)}")
        args.places = [tests / collection / only]
        return packetdrill.run(args)
    usual = argparse.ArgumentParser()
    add_options(usual, *packetdrill.OF_SCRIPTS)
    of_scripts = ("packetdrill", "variant", "tolerance", "percent")
    if given := [f"--{n}" for n in of_scripts if getattr(args, n) != usual.get_default(n)]:
        raise UsageError(f"{collection}: has no scripts of packetdrill for {', '.join(given)}")
    with Steps() as steps:
        names = build_selftests(guest, collection, only, steps)
    found = [Selftest(tests, collection, name) for name in names]
    about = f"kernel {guest.release} ({guest.key})"
    return packetdrill.report(args, "selftests", about, found, partial(run_selftest, guest=guest))
