"""The subcommand that compares the clocks of hosts."""

import argparse
import json
import time

HELP = "the offsets of other machines' clocks from this one's"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab clock` to its parser."""
    parser.add_argument("machines", nargs="*", metavar="NAME=ADDRESS", help="machines that answer")
    parser.add_argument(
        "--answer",
        metavar="ADDRESS",
        help="answer requests at this address instead of asking other hosts",
    )
    parser.add_argument("--port", type=int, default=8787, help="UDP port (default: %(default)s)")
    parser.add_argument(
        "--session",
        type=int,
        metavar="NUMBER",
        help="a secret number that both hosts are given: answer only requests with it",
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="with --answer: longest time to answer, s"
    )


def run(args: argparse.Namespace) -> int:
    """Answer clock probes, or print the offsets of other hosts' clocks."""
    from twoway.lab.clock_probe import answer, ask

    if args.answer:
        answer(args.answer, args.port, args.seconds, args.session)
        return 0
    machines = dict(word.split("=", 1) for word in args.machines)
    found = {
        name: ask(address, args.port, session=args.session).document()
        for name, address in machines.items()
    }
    print(json.dumps({"now_ns": time.time_ns(), "machines": found}))
    return 0
