"""The subcommand report: analyse a finished run and print its verdicts."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from capture_analysis.errors import AnalysisError

from twoway.commands.options import shown
from twoway.contract.metrics import row_in_words
from twoway.contract.verdict import (
    NOTHING_TOLD,
    Verdict,
    marked,
    nothing_told,
    verdict_of,
)
from twoway.contract.writing import chown_like_parent
from twoway.errors import TwowayError, UsageError
from twoway.progress import say

if TYPE_CHECKING:
    from twoway.contract.metrics import Metrics


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
        chown_like_parent(folder)
    if as_json:
        print(document.model_dump_json(indent=1))
    _print_verdicts(document)
    say(f"report: {shown(folder)}/report.html", markup=False)
    return 0 if document.pass_ else 1


def _print_verdicts(document: "Metrics") -> None:
    for row in document.expect:
        say(marked(verdict_of(row), row_in_words(row)))
    if nothing_told(document.expect):
        say(marked(Verdict.FAIL, f"{NOTHING_TOLD}: vm/README.md says what each clock can tell"))
    for check in document.fidelity:
        if not check.pass_ or check.supported is not None:
            say(marked(verdict_of(check), row_in_words(check)))
    if all(check.pass_ for check in document.fidelity):
        say(marked(Verdict.PASS, f"{len(document.fidelity)} fidelity checks"))
