"""The subcommand that removes old runs and builds."""

import argparse
import math

from twoway.commands.options import RESULTS, at_least_one, option, shorten_path
from twoway.messages import say

HELP = (
    "list runs that failed or cannot be analysed, finished ones by number or age, and builds for "
    "other versions; with --yes, remove them"
)


def _days(text: str) -> float:
    """Read a time in days, or with a unit in days or hours."""
    number, hours = (text[:-1], text[-1] == "h") if text[-1:] in ("d", "h") else (text, False)
    try:
        days = float(number) / (24 if hours else 1)
    except ValueError:
        days = math.nan
    if not 0 <= days < math.inf:
        raise argparse.ArgumentTypeError(f'must be days or hours, such as 7d or 12h, got "{text}"')
    return days


OPTIONS = (
    option("--keep", type=at_least_one, metavar="N", help="keep the newest N runs of each point"),
    option(
        "--older-than", type=_days, metavar="DAYS", help="only runs that are older: 7, 7d or 12h"
    ),
    option(
        "--kernels",
        action="store_true",
        help="also list kernels in the cache that no present version builds",
    ),
    option("--yes", action="store_true", help="remove the listed files"),
    RESULTS,
)


def run(args: argparse.Namespace) -> int:
    """List runs and cached kernels that can be removed; remove them with --yes."""
    from twoway.contract.folders import disk_bytes
    from twoway.runs.clean import old_kernels, removable, remove

    found = [*removable(args.results, args.keep, args.older_than)]
    found += old_kernels() if args.kernels else ()
    sizes = disk_bytes([run for run, _ in found])
    for (run, why), size in zip(found, sizes, strict=True):
        print(f"{shorten_path(run)}  {size / 1e6:.1f} MB  {why}")
        if args.yes:
            remove(run)
    done = "removed" if args.yes else "nothing is removed without --yes"
    say(f"{sum(sizes) / 1e6:.1f} MB: {done}")
    return 0
