"""The subcommand that compares runs."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from capture_analysis.errors import AnalysisError

from twoway.commands.options import JSON, RESULTS, option, shorten_path
from twoway.errors import UsageError, in_a_sentence
from twoway.messages import say

if TYPE_CHECKING:
    from twoway.contract.comparison import Comparison, Values

HELP = (
    "the differences between runs: parameters, metrics, packets; "
    "exit code 1 if metrics or packets differ"
)
SAME, DIFFERENT = 0, 1
# The most differences of each kind to print; the page and --json have all.
_MOST_LINES = 14
OPTIONS = (
    option(
        "runs",
        nargs="+",
        help="folders, points, identities, experiments (all points of a sweep), or files of "
        "`twoway share`; or two cards of `twoway score`: card.json, or its folder",
    ),
    option("--to", type=Path, help="the page (default: comparison.html in results/)"),
    JSON,
    RESULTS,
)


def run(args: argparse.Namespace) -> int:
    """Compare runs, and write a page; or two cards: print what differs."""
    if all(_is_card(Path(name)) for name in args.runs):
        return _compare_cards(args)
    from twoway.report.comparing import compare as compare_runs
    from twoway.report.pages import write_comparison_page
    from twoway.runs.finding import find_runs

    folders = [folder for name in args.runs for folder in find_runs(name, args.results)]
    if len(folders) < 2:
        raise UsageError(
            f"compare needs two runs or more, got {folders[0]}",
            "name another run, or an experiment whose points have runs: all are compared",
        )
    page = args.to or args.results / "comparison.html"
    with in_a_sentence(", ".join(map(str, folders)), AnalysisError):
        document = compare_runs(folders)
        write_comparison_page(document, folders, page)
    if args.json:
        print(document.json_text())
    else:
        print(*_lines(document), sep="\n")
    say(f"all of it: --json, or the page {shorten_path(page)}")
    return SAME if document.same else DIFFERENT


def _is_card(path: Path) -> bool:
    """Tell whether a name is a card of `twoway score`, or the folder of one."""
    return path.suffix == ".json" or (path / "card.json").is_file()


def _compare_cards(args: argparse.Namespace) -> int:
    from twoway.report.card import read_card
    from twoway.report.card_comparing import compare_cards, comparison_table

    if len(args.runs) != 2:
        raise UsageError(f"compare takes two cards, got {len(args.runs)}")
    found = compare_cards(*(read_card(Path(name)) for name in args.runs))
    if args.json:
        print(found.json_text())
    else:
        print(*comparison_table(found), sep="\n")
    return SAME if found.same else DIFFERENT


def _lines(document: "Comparison") -> list[str]:
    """List the first differences of each kind, then the equal parts."""
    lines = [f"{number}: {run}" for number, run in enumerate(document.runs)]
    for title, rows in (("parameters", document.parameters), ("metrics", document.metrics)):
        lines.append(f"{title} that differ: {len(rows)}" if rows else f"all {title} are the same")
        lines += _cut([f"  {name}: {_values(row)}" for name, row in rows.items()])
    first = {each.run: each for each in reversed(document.partings)}
    for parting in sorted(first.values(), key=lambda each: each.run):
        lines.append(f"0 and {parting.run} part at {parting.interface}, packet {parting.packet}:")
        lines += [f"  0: {parting.first}", f"  {parting.run}: {parting.second}"]
    if more := len(document.partings) - len(first):
        lines.append(f"captures that part later: {more}")
    if document.without_captures:
        numbers = ", ".join(map(str, document.without_captures))
        names = (document.runs[number].rpartition("/")[0] for number in document.without_captures)
        commands = ", ".join(dict.fromkeys(f"`twoway run {shlex.quote(name)}`" for name in names))
        lines.append(
            f"no captures are compared: those of {numbers} were left out; {commands} makes them"
        )
    lines.append(
        f"the same: {document.common_metrics} metrics, {document.common_captures} captures"
    )
    if document.same and document.parameters:
        lines.append("only parameters differ: metrics and packets are the same")
    return lines


def _values(row: "Values") -> str:
    shown_values = (f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values)
    return " | ".join(shown_values) + (f" {row.unit}" if row.unit not in ("", "1") else "")


def _cut(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"  ... and {more} more"] if more > 1 else lines
