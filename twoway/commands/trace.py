"""The subcommand that shows an interval of a run, packet by packet."""

import argparse
import json

from twoway.commands.options import JSON, KERNEL, RESULTS, RUN, option, shorten_path
from twoway.commands.report import repeatable_run
from twoway.messages import say

HELP = (
    "an interval of a finished run packet by packet, from inside its kernel: the run once more, "
    "with a probe that changes no byte"
)
# The most lines on a terminal; the page and --json have all.
_MOST_LINES = 60
OPTIONS = (
    RUN,
    *(
        option(
            f"--{name}",
            dest=f"{name}_s",
            type=float,
            required=True,
            metavar="S",
            help=f"{what} of the interval, s after the traffic's start",
        )
        for name, what in (("from", "start"), ("to", "end"))
    ),
    JSON,
    RESULTS,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Run a run's experiment with a probe, and print what happens in the interval."""
    from twoway.report.flow_table import align_columns
    from twoway.report.trace_page import TITLES, cells, write_trace_page
    from twoway.sweeps.trace import trace

    folder, point, backend = repeatable_run(args, args.run)
    found = trace(folder, point, backend, (args.from_s, args.to_s))
    page = folder / "trace.html"
    write_trace_page(found, page)
    if args.json:
        print(json.dumps(found.document(), indent=1))
    else:
        rows = [TITLES, *map(cells, found.moments[:_MOST_LINES])]
        print(*(line.rstrip() for line in align_columns(rows, left=len(TITLES))), sep="\n")
    if more := len(found.moments) - _MOST_LINES:
        say(f"and {more} more") if more > 0 and not args.json else None
    for sentence in found.sentences:
        say(sentence)
    say(f"all of it: --json, or the page {shorten_path(page)}")
    return 0
