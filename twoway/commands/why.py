"""The subcommand that asks which event of a run decided a metric."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twoway.commands.options import (
    JSON,
    KERNEL,
    RESULTS,
    RUN,
    WORKERS,
    Option,
    at_least_one,
    option,
    run_again,
    seconds,
    shorten_path,
)
from twoway.commands.report import repeatable_run
from twoway.messages import say

if TYPE_CHECKING:
    from twoway.backends.backend import Backend
    from twoway.description.point import Point

HELP = "which loss, mark or pause decided a result: one more run for each, without it"
# The part of a run to look at before and after a moment, s.
_AROUND_S = 0.02
# The most events in the table; the page and --json have all.
_MOST_LINES = 14


def _pause() -> dict[str, Any]:
    from twoway.sweeps.events import PAUSE_S

    return {
        "type": seconds,
        "default": PAUSE_S,
        "metavar": "S",
        "help": "an application's silence is a pause from this time on, s (default: %(default)s)",
    }


OPTIONS = (
    RUN,
    option(
        "other",
        nargs="?",
        metavar="OTHER",
        help="a run that differs in one parameter: until when does the parameter decide?",
    ),
    option(
        "--metric",
        metavar="NAME",
        help="the metric (default: goodput of the first connection; without one, utilisation of "
        "the first queue)",
    ),
    option(
        "--most",
        type=at_least_one,
        default=40,
        metavar="N",
        help="the most events to try: bursts first, then the first event of each "
        "(default: %(default)s)",
    ),
    Option(("--pause",), _pause),
    JSON,
    RESULTS,
    WORKERS,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Run a run's experiment once more for each event, and print the events by their effect."""
    from twoway.report.flow_table import align_columns
    from twoway.report.pages import write_why_page
    from twoway.sweeps.why import ask

    folder, point, backend = repeatable_run(args, args.run)
    if args.other:
        return _turning(args, folder, point, backend)
    asked = {"most": args.most, "crew": args.workers, "pause_s": args.pause}
    answer = ask(folder, point, backend, args.metric, **asked)
    page = folder / "why.html"
    write_why_page(answer, page)
    if args.json:
        print(json.dumps(answer.document(), indent=1))
    else:
        rows = [("time", "event", "without it", "effect")] if answer.events else []
        for event in answer.events[:_MOST_LINES]:
            problem = event.problem.rpartition(": ")[2] or "undefined"
            value = problem if event.value is None else f"{event.value:.4g}"
            effect = "" if event.effect is None else f"{event.effect:+.3g}"
            rows.append((event.when, event.text, value, effect))
        print(*align_columns(rows, left=2), *answer.sentences, sep="\n")
    say(f"all of it: --json, or the page {shorten_path(page)}")
    return 0


def _turning(args: argparse.Namespace, folder: Path, point: "Point", backend: "Backend") -> int:
    """Print until when the parameter in which two runs differ decides a metric of the first."""
    from twoway.report.flow_table import align_columns
    from twoway.report.pages import write_turning_page
    from twoway.sweeps.turning import Asked, find_turning

    second = Asked(*repeatable_run(args, args.other))
    answer = find_turning(Asked(folder, point, backend), second, args.metric, args.workers)
    page = folder / "why.html"
    write_turning_page(answer, page)
    if args.json:
        print(json.dumps(answer.document(), indent=1))
    else:
        rows = [("changes at, s", answer.metric)]
        rows += [(f"{time_s:.4f}", f"{value:.4g}") for time_s, value in answer.curve]
        print(*align_columns(rows), *answer.sentences, sep="\n")
    if answer.decides:
        begin, end = max(0, answer.step[0] - _AROUND_S), answer.step[1] + _AROUND_S
        interval = ("--from", f"{begin:.3f}", "--to", f"{end:.3f}")
        words = run_again(args, args.run or point.id, *interval, command="trace")
        say(f"its packets: {words}")
    say(f"all of it: --json, or the page {shorten_path(page)}")
    return 0
