"""The subcommand that reports on a finished run again; others report with it, too."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from capture_analysis.errors import AnalysisError

from twoway.commands.options import JSON, RESULTS, RUN, shorten_path
from twoway.contract.writing import chown_like_parent, out_of_space
from twoway.errors import CommandEndedError, TwowayError
from twoway.messages import console, say

if TYPE_CHECKING:
    from twoway.backends.backend import Backend
    from twoway.contract.verdicts import Verdicts
    from twoway.description.point import Point

HELP = "analyse a finished run again; the latest by default"
OPTIONS = (RUN, JSON, RESULTS)
# Most failed or undecided fidelity checks to print one by one.
_MOST_CHECKS = 10


def run(args: argparse.Namespace) -> int:
    """Analyse a finished run again; rewrite metrics, verdicts and report."""
    return report_on(named_run(args), as_json=args.json)


def report_on(folder: Path, *, as_json: bool) -> int:
    """Analyse a run, print its verdicts and return the exit code."""
    from twoway.contract.metrics import METRICS
    from twoway.manifest import read_manifest
    from twoway.report.report import analyse_run

    try:
        document = analyse_run(folder)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {folder}") from error
    except KeyboardInterrupt as error:
        hint = f"the run is whole: `twoway report {shorten_path(folder)}` completes it"
        raise CommandEndedError(error, hint) from error
    except OSError as error:
        if not out_of_space(error):
            raise
        hint = (
            f"make room: the run is whole, and `twoway report {shorten_path(folder)}` completes it"
        )
        raise TwowayError(f"{folder}: {error.strerror}", hint) from error
    finally:
        chown_like_parent(folder)
    if as_json:
        metrics = json.loads((folder / METRICS).read_text("utf-8"))
        print(json.dumps(metrics | {"verdicts": document.model_dump(mode="json")}, indent=1))
    _print_verdicts(document)
    manifest = read_manifest(folder)
    for won in (each for each in manifest.settings if each.instead_of is not None):
        nodes = ", ".join(won.nodes) or "all nodes"
        say(f"{won.why}.{won.name}: {won.value} at {nodes}, instead of {won.instead_of}")
    for line in (*manifest.intervened, *(each.sentence for each in manifest.not_proven)):
        say(line)
    if not as_json:
        _print_flows(folder)
    say(f"report: {shorten_path(folder)}/report.html")
    return document.exit_code


def named_run(args: argparse.Namespace) -> Path:
    """Find the run that the command line names; the latest if it names none."""
    from twoway.runs.finding import find_run

    return find_run(args.run or str(args.results / "latest"), args.results)


def repeatable_run(args: argparse.Namespace, named: str | None) -> "tuple[Path, Point, Backend]":
    """Find a run, the latest if none is named, with its experiment of today and its backend.

    The experiment's file is the one that is named, or the one in the current folder, if any; or a
    row of a suite.
    """
    from twoway.backends.registry import backend_for, find_backend
    from twoway.description.suite import row_names, suite_names
    from twoway.errors import SpecError
    from twoway.manifest import read_manifest
    from twoway.paths import experiment_files
    from twoway.runs.finding import find_run
    from twoway.runs.points import load_point

    folder = find_run(named or str(args.results / "latest"), args.results)
    name = read_manifest(folder).experiment.id
    experiment, at, values = name.partition("@")
    given = Path((named or "").partition("@")[0])
    suites = [suite for suite in suite_names() if experiment.startswith(f"{suite}-")]
    rows = {row.replace("/", "-"): row for suite in suites for row in row_names(suite)}
    name = f"{rows.get(experiment, experiment)}{at}{values}"
    for file in (Path(f"{experiment}.yml"), given):
        if file.suffix in {".yml", ".yaml"} and file.is_file():
            name = f"{file}{at}{values}"
    known = {*rows, *experiment_files()}
    if name == experiment + at + values and experiment not in known:
        raise SpecError(
            [f"{folder}: {experiment}.yml, which this is a run of, is not in this folder"],
            f"name the file instead of the folder: PATH/{experiment}.yml",
        )
    point = load_point(name)
    return folder, point, backend_for(point, find_backend("uml", args.kernel))


def _print_verdicts(document: "Verdicts") -> None:
    from twoway.contract.judge import Verdict, mark_verdict
    from twoway.contract.verdicts import row_in_words

    misses = document.misses
    for row in document.rows:
        say(mark_verdict(row.verdict, row_in_words(row)), markup=True, wrong=row in misses)
    doubtful = [check for check in document.fidelity if check.verdict is not Verdict.PASS]
    for check in doubtful[:_MOST_CHECKS]:
        say(mark_verdict(check.verdict, row_in_words(check)), markup=True, wrong=check in misses)
    if len(doubtful) > _MOST_CHECKS:
        say(f"     and {len(doubtful) - _MOST_CHECKS} more fidelity checks")
    if not doubtful:
        say(mark_verdict(Verdict.PASS, f"{len(document.fidelity)} fidelity checks"), markup=True)
    if doubtful or document.rows:  # otherwise the line above says all
        say(document.headline, wrong=bool(misses))


def _print_flows(folder: Path) -> None:
    """Print a run's results on standard output, unless it is hushed."""
    from twoway.contract.metrics import METRICS, Metrics
    from twoway.manifest import read_manifest
    from twoway.report.flow_table import flow_table

    if not console().quiet:
        lines = flow_table(read_manifest(folder), Metrics.read(folder / METRICS))
        print(*lines, sep="\n", flush=True)
