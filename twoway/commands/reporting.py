"""The subcommands about runs that there are: report, figures, export, runs, clean."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from capture_analysis.errors import AnalysisError

from twoway.commands.options import shown
from twoway.contract.judge import Verdict, marked
from twoway.contract.metrics import METRICS
from twoway.contract.verdicts import row_in_words
from twoway.contract.writing import chown_like_parent, out_of_space
from twoway.errors import TwowayError
from twoway.messages import console, say

if TYPE_CHECKING:
    from twoway.contract.verdicts import Verdicts


# Most fidelity checks that fail or cannot be told to print one by one.
MOST_CHECKS = 10


def report(args: argparse.Namespace) -> int:
    """Analyse a finished run again; rewrite metrics, verdicts and report."""
    return report_on(_named(args), as_json=args.json)


def figures(args: argparse.Namespace) -> int:
    """Draw a finished run's figures into files, or write their numbers; list the files."""
    from twoway.report.report import draw_figures

    folder = _named(args)
    try:
        paths = draw_figures(folder, numbers=args.csv, foot=args.foot)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {folder}") from error
    finally:
        chown_like_parent(folder)
    for path in paths:
        print(shown(path))
    return 0


def export(args: argparse.Namespace) -> int:
    """Write the time series of a finished run's connections for another tool."""
    from twoway.report.export import export_run

    path = export_run(_named(args), args.format, args.to)
    chown_like_parent(path)
    print(shown(path))
    return 0


def runs(args: argparse.Namespace) -> int:
    """List the finished runs, and write a page of them."""
    from twoway.contract.run_summary import RunSummary, summarize
    from twoway.report.pages import write_runs_page
    from twoway.runs.finding import finished_runs

    found: list[RunSummary] = []
    unreadable: list[str] = []
    for folder in finished_runs(args.results):
        try:
            found.append(summarize(folder, args.results))
        except ValueError as error:
            unreadable.append(str(error))
    if unreadable:
        more = f"; and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        say(f"left out: {unreadable[0]}{more}", markup=False)
    if args.json:
        print(json.dumps([asdict(run) for run in found], indent=1))
    for run in [] if args.json else found:
        print(f"{run.identity[:12]}  {run.run}  {run.experiment}  {run.verdict or 'not reported'}")
    if not found:
        say(f"{shown(args.results)}: no finished run; `twoway run` makes one", markup=False)
        return 0
    page = args.results / "index.html"
    write_runs_page(found, page)
    chown_like_parent(page)
    say(f"page: {shown(page)}", markup=False)
    return 0


def clean(args: argparse.Namespace) -> int:
    """List what can be removed: runs, and kernels of the cache; remove it if so told."""
    from twoway.contract.folders import disk_bytes
    from twoway.guest.old_kernels import old_kernels
    from twoway.runs.clean import removable, remove

    found = [*removable(args.results, args.keep, args.older_than)]
    found += old_kernels() if args.kernels else ()
    sizes = disk_bytes([run for run, _ in found])
    for (run, why), size in zip(found, sizes, strict=True):
        print(f"{shown(run)}  {size / 1e6:.1f} MB  {why}")
        if args.yes:
            remove(run)
    done = "removed" if args.yes else "nothing is removed without --yes"
    say(f"{sum(sizes) / 1e6:.1f} MB: {done}", markup=False)
    return 0


def report_on(folder: Path, *, as_json: bool) -> int:
    """Analyse a run, print its verdicts and return the exit code."""
    from twoway.report.report import analyse_run

    try:
        document = analyse_run(folder)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {folder}") from error
    except KeyboardInterrupt as error:
        hint = f"the run is whole: `twoway report {shown(folder)}` completes it"
        raise TwowayError("interrupted", hint) from error
    except OSError as error:
        if not out_of_space(error):
            raise
        hint = f"make room: the run is whole, and `twoway report {shown(folder)}` completes it"
        raise TwowayError(f"{folder}: {error.strerror}", hint) from error
    finally:
        chown_like_parent(folder)
    if as_json:
        metrics = json.loads((folder / METRICS).read_text("utf-8"))
        print(json.dumps(metrics | {"verdicts": document.model_dump(mode="json")}, indent=1))
    _print_verdicts(document)
    if not as_json:
        _print_flows(folder)
    say(f"report: {shown(folder)}/report.html", markup=False)
    return document.exit_code


def _named(args: argparse.Namespace) -> Path:
    """Find the run that the command line names; the latest if it names none."""
    from twoway.runs.finding import find_run

    return find_run(args.run or str(args.results / "latest"), args.results)


def _print_verdicts(document: "Verdicts") -> None:
    misses = document.misses
    for row in document.rows:
        say(marked(row.verdict, row_in_words(row)), wrong=row in misses)
    doubtful = [check for check in document.fidelity if check.verdict is not Verdict.PASS]
    for check in doubtful[:MOST_CHECKS]:
        say(marked(check.verdict, row_in_words(check)), wrong=check in misses)
    if len(doubtful) > MOST_CHECKS:
        say(f"     and {len(doubtful) - MOST_CHECKS} more fidelity checks", markup=False)
    if all(check.verdict is Verdict.PASS for check in document.fidelity):
        say(marked(Verdict.PASS, f"{len(document.fidelity)} fidelity checks"))
    say(document.headline, markup=False, wrong=bool(misses))


def _print_flows(folder: Path) -> None:
    """Print what came out, on standard output unless it is hushed."""
    from twoway.contract.manifest import read_manifest
    from twoway.contract.metrics import Metrics
    from twoway.report.flow_table import flow_table

    if not console().quiet:
        lines = flow_table(read_manifest(folder), Metrics.read(folder / METRICS))
        print(*lines, sep="\n", flush=True)
