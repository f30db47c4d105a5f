"""The subcommand report: analyse a finished run and print its verdicts."""

import argparse
import json
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError

from twoway.commands.options import shown
from twoway.contract.verdict import NOTHING_TOLD, in_words, nothing_told
from twoway.contract.writing import hand_over
from twoway.errors import TwowayError, UsageError
from twoway.progress import say


def report(args: argparse.Namespace) -> int:
    """Analyse a finished run again; rewrite metrics, figures and report."""
    return report_on(args.run or args.results / "latest", as_json=args.json)


def report_on(folder: Path, *, as_json: bool) -> int:
    """Analyse a run, print its verdicts and return the exit code."""
    from twoway.report.report import analyse_run

    if not (folder / "manifest.json").is_file():
        raise UsageError(f"{folder}: not a finished run", "`twoway run` makes one")
    folder = folder.resolve()
    try:
        document = analyse_run(folder)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {folder}") from error
    finally:
        hand_over(folder)
    if as_json:
        print(json.dumps(document, indent=1))
    _print_verdicts(document)
    say(f"report: {shown(folder)}/report.html", markup=False)
    return 0 if document["pass"] else 1


def _print_verdicts(document: dict[str, Any]) -> None:
    for row in document["expect"]:
        measured = "none" if row["measured"] is None else f"{row['measured']:.4g}"
        say(
            f"{_mark(row)} {row['metric']:<32} {measured:>8} measured, "
            f"{in_words(row)} {row['source']}"
            f"{'; ' + row['limit'] if 'limit' in row else ''}"
        )
    if nothing_told(document["expect"]):
        say(f"[red]FAIL[/] {NOTHING_TOLD}: vm/README.md says what each clock can tell")
    checks = document["fidelity"]
    for row in checks:
        if not row["pass"] or "supported" in row:
            say(f"{_mark(row)} {row['check']}: {row['value']}, bound {row['bound']}")
    if all(row["pass"] for row in checks):
        say(f"[green]pass[/] {len(checks)} fidelity checks")


def _mark(row: dict[str, Any]) -> str:
    if not row.get("supported", True):
        return "[yellow]?   [/]"
    return "[green]pass[/]" if row["pass"] else "[red]FAIL[/]"
