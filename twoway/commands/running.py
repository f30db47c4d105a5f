"""The subcommands that run experiments: run, sweep, papers, calibrate."""

import argparse
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from twoway.commands.options import all_ids, shown
from twoway.commands.reporting import report_on
from twoway.contract.judge import Verdict, marked
from twoway.contract.verdicts import BAD, GOOD, TELLS_LITTLE
from twoway.contract.writing import chown_like_parent, make_folder
from twoway.errors import UsageError
from twoway.messages import console, say

if TYPE_CHECKING:
    from twoway.sweeps.sweep import Outcome


def run(args: argparse.Namespace) -> int:
    """Run an experiment, or all points of a sweep, and report on it."""
    from twoway.backends.registry import find_backend
    from twoway.runs.cases import load_case, refuse_lost_references
    from twoway.runs.run import run_watched
    from twoway.spec.point import case_names

    names = case_names(args.experiment)
    if len(names) > 1 or args.scheduler:
        args.experiments = [args.experiment]
        return sweep(args)
    case = load_case(names[0])
    refuse_lost_references([case])
    # The guest has a processor of its own meanwhile.
    Thread(target=_prepare_report, daemon=True).start()
    folder = run_watched(case, find_backend(args.backend, args.kernel), args.results)
    return report_on(folder, as_json=args.json)


def _prepare_report() -> None:
    """Load what the analysis and the page of a run take."""
    import twoway.report.report  # noqa: F401 - for what it imports
    from twoway.report.pages import prepare

    prepare()


def sweep(args: argparse.Namespace) -> int:
    """Run all points of experiments; skip those with a finished run."""
    outcomes = _run_all(args, args.metric)
    if args.json:
        print(json.dumps([outcome.document() for outcome in outcomes], indent=1))
    elif not console().quiet:
        _print_flows(outcomes)
    pages = _write_pages(outcomes, args)
    status = _judge(outcomes)
    for page in pages:
        say(f"report: {shown(page)}", markup=False)
    return status


def _write_pages(outcomes: "list[Outcome]", args: argparse.Namespace) -> list[Path]:
    """Write a page for each sweep that has a run."""
    from twoway.report.sweep_page import write_sweep_page

    done = [outcome.folder for outcome in outcomes if outcome.folder]
    failed = {Path(o.name).name.replace(".yml@", "@"): o.error for o in outcomes if not o.folder}
    pages = write_sweep_page(done, args.results, failed, args.metric)
    for page in pages:
        chown_like_parent(page.parent)
    return pages


def _print_flows(outcomes: "list[Outcome]") -> None:
    """Print what came out of each point."""
    from twoway.contract.manifest import read_manifest
    from twoway.contract.metrics import METRICS, Metrics
    from twoway.report.flow_table import sweep_table

    done = [(outcome.name, outcome.folder) for outcome in outcomes if outcome.folder]
    runs = ((name, read_manifest(at), Metrics.read(at / METRICS)) for name, at in done)
    for line in sweep_table(runs):
        print(line)


def papers(args: argparse.Namespace) -> int:
    """Run experiments as `sweep` does, and write the reproduction report."""
    from twoway.report.papers_site import COUNTED, write_site

    outcomes = _run_all(args)
    done = [outcome.folder for outcome in outcomes if outcome.folder]
    make_folder(args.results / "papers")
    document = write_site(done, args.results / "papers", len(all_ids()))
    chown_like_parent(args.results / "papers")
    if args.json:
        print(json.dumps(document, indent=1))
    status = _judge(outcomes)
    for paper in document["papers"]:
        words = [f"{paper[each]} {each}" for each in (v.value for v in COUNTED) if paper[each]]
        claims = f"{paper['claims']} claims: {', '.join(words)}; " if paper["claims"] else ""
        kept = f"{paper['kept']} of {paper['predictions']} predictions kept"
        say(f"{paper['title']}: {claims}{kept}", markup=False)
    say(f"report: {shown(args.results / 'papers/index.html')}", markup=False)
    return status


def calibrate(args: argparse.Namespace) -> int:
    """Measure the error floor of link profiles with a constant-rate stream."""
    from twoway.backends.registry import find_backend
    from twoway.runs.calibrate import calibrate_profiles

    rows = calibrate_profiles(find_backend(args.backend, args.kernel), args.profiles, args.results)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["pass"] for row in rows) else 1


def _run_all(args: argparse.Namespace, families: Sequence[str] = ()) -> "list[Outcome]":
    """Run every point of the experiments on the command line, all by default.

    Raises: UsageError if no experiment has one of the families of metrics.
    """
    from twoway.backends.registry import find_backend
    from twoway.progress import SweepBar
    from twoway.runs.cases import load_case, refuse_lost_references
    from twoway.spec.point import case_names
    from twoway.sweeps.sweep import cost, run_points
    from twoway.sweeps.workers import workers

    names = [case for name in args.experiments or all_ids() for case in case_names(name)]
    cases = {name: load_case(name) for name in names}
    refuse_lost_references(cases.values())
    known = dict.fromkeys(
        name.partition(".")[0] for each in cases.values() for name in each.metrics
    )
    if missing := [family for family in families if family not in known]:
        raise UsageError(
            f"--metric: {missing[0]:.80}: no such metric", f"there are {', '.join(known)}"
        )
    if args.scheduler and args.kernel:
        raise UsageError(
            f"--kernel: a lab's workers have kernels of their own, got {args.kernel:.80}",
            "an experiment's field `kernel` asks each of them for one",
        )
    backend = find_backend(args.backend, args.kernel)
    if args.scheduler:
        from twoway.sweeps.scheduler import lab_workers

        crew = lab_workers(args.scheduler, args.certificates.expanduser())
    else:
        crew = workers(args.workers)
    with SweepBar(len(cases), sum(map(cost, cases.values()))) as bar, crew as who:
        return run_points(
            cases, backend, args.results, who, lambda case, o: bar.show(_line(o), cost(case))
        )


def _judge(outcomes: "list[Outcome]") -> int:
    """Print the failed points and how to rerun them; return the exit code."""
    bad = [outcome for outcome in outcomes if not outcome.good]
    for outcome in bad:
        say(_line(outcome), wrong=True)
        for line in (*outcome.missed, f"twoway run {shlex.quote(outcome.name)}"):
            say(f"     {line}", markup=False, wrong=True)
    say(f"{len(outcomes) - len(bad)} of {len(outcomes)} points are as their files say")
    if any(outcome.folder is None or outcome.exit_code == BAD for outcome in outcomes):
        return BAD
    return TELLS_LITTLE if bad else GOOD


def _line(outcome: "Outcome") -> str:
    """Format a point's outcome as a line for people."""
    if outcome.error:
        return marked(Verdict.FAIL, f"{outcome.name}: {outcome.error}")
    time = "kept" if outcome.kept else f"{outcome.wall_s:.1f} s"
    if outcome.good:
        return marked(Verdict.PASS, f"{outcome.name} ({time})")
    verdict = Verdict.FAIL if outcome.missed else Verdict.CANNOT_TELL
    return marked(verdict, f"{outcome.name}: {outcome.headline} ({time})")
