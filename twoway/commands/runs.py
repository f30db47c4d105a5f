"""The subcommand that lists finished runs."""

import argparse
import json
from dataclasses import asdict

from twoway.commands.options import JSON, RESULTS, shorten_path
from twoway.contract.writing import chown_like_parent
from twoway.errors import in_a_sentence
from twoway.messages import say

HELP = "the finished runs, with identities and verdicts; and a page of them, results/index.html"
OPTIONS = (JSON, RESULTS)


def run(args: argparse.Namespace) -> int:
    """List the finished runs, and write a page of them."""
    from twoway.report.pages import write_runs_page
    from twoway.report.results import RunSummary, summarize
    from twoway.runs.finding import finished_runs

    found: list[RunSummary] = []
    unreadable: list[str] = []
    for folder in finished_runs(args.results):
        try:
            with in_a_sentence(folder, ValueError):
                found.append(summarize(folder, args.results))
        except ValueError as error:
            unreadable.append(str(error))
    if unreadable:
        more = f"; and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        say(f"left out: {unreadable[0]}{more}")
    if args.json:
        print(json.dumps([asdict(run) for run in found], indent=1))
    for run in [] if args.json else found:
        print(f"{run.identity[:12]}  {run.run}  {run.experiment}  {run.verdict or 'not reported'}")
    if not found:
        say(f"{shorten_path(args.results)}: no finished runs; `twoway run` makes one")
        return 0
    page = args.results / "index.html"
    write_runs_page(found, page)
    chown_like_parent(page)
    say(f"page: {shorten_path(page)}")
    return 0
