"""The commands of `twoway lab`, for the playbooks: on the controlling machine and on lab hosts."""

import argparse
import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from twoway.commands.options import (
    EXPERIMENT,
    JSON,
    NEW_RUNS,
    RESULTS,
    option,
    results_folder,
    shorten_path,
)
from twoway.commands.report import report_on
from twoway.contract.writing import written_aside

if TYPE_CHECKING:
    from twoway.description.point import Point

HELP = "commands for the playbooks: archives, archives of runs, runs over several hosts"


def bundle(_: argparse.Namespace) -> int:
    """Make the archives that lab hosts need and print their list as JSON."""
    from twoway.guest.cache import built_guest
    from twoway.lab.bundles import make_bundles

    print(json.dumps([each.document() for each in make_bundles(built_guest())], indent=1))
    return 0


def pack(args: argparse.Namespace) -> int:
    """Write finished runs into one archive."""
    from twoway.runs.archive import finished_runs, pack_runs

    with written_aside(args.to) if args.to else nullcontext(sys.stdout.buffer) as archive:
        pack_runs(args.results, args.runs or finished_runs(args.results), archive)
    return 0


def gather(args: argparse.Namespace) -> int:
    """Unpack the runs of archives, check every file, report on each and print their folders."""
    from capture_analysis.errors import AnalysisError

    from twoway.contract.metrics import METRICS
    from twoway.errors import TwowayError
    from twoway.messages import say
    from twoway.report.pages import PAGE
    from twoway.runs.archive import unpack_runs
    from twoway.sweeps.sweep import measure_run

    results = results_folder(args)
    for path in args.archives:
        with path.open("rb") as archive:
            folders = unpack_runs(archive, results)
        for folder in folders:
            if (folder / METRICS).is_file() and not (folder / PAGE).is_file():
                try:
                    measure_run(folder)
                except (TwowayError, AnalysisError) as error:
                    say(f"{shorten_path(folder)}: no report: {error}", wrong=True)
            print(shorten_path(folder))
    return 0


def share(args: argparse.Namespace) -> int:
    """Write each host's share of a plan, and print the reference clock's host."""
    from pydantic import TypeAdapter, ValidationError

    from twoway.contract.network import READY_NS
    from twoway.contract.plan import PLAN
    from twoway.errors import UsageError
    from twoway.lab.multihost_plan import Place, shares

    try:
        places = TypeAdapter(dict[str, Place]).validate_json(args.places)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise UsageError("\n".join(f"--places: {problem}" for problem in problems)) from error
    point = _one_point(args.experiment)
    for machine, plan in shares(point, places).items():
        folder = args.to / machine
        folder.mkdir(parents=True, exist_ok=True)
        plan.write(folder / PLAN)
    # All clocks are compared with that of the last node's host: a router, close to most of the
    # others.
    reference = next(m for m, place in places.items() if point.graph.nodes[-1] in place.nodes)
    print(json.dumps({"experiment": point.id, "reference": reference, "ready_by_ns": READY_NS}))
    return 0


def node(args: argparse.Namespace) -> int:
    """Carry out this host's share of a plan."""
    from twoway.lab.multihost_run import carry_out

    carry_out(args.folder)
    return 0


def clock(args: argparse.Namespace) -> int:
    """Answer clock probes, or print the offsets of other hosts' clocks."""
    from dataclasses import asdict

    from twoway.lab.clock_probe import answer, ask

    if args.answer:
        answer(args.answer, args.port, args.seconds, args.session)
        return 0
    machines = dict(word.split("=", 1) for word in args.machines)
    found = {
        name: asdict(ask(address, args.port, session=args.session))
        for name, address in machines.items()
    }
    print(json.dumps({"now_ns": time.time_ns(), "machines": found}))
    return 0


def merge(args: argparse.Namespace) -> int:
    """Merge the folders of all hosts into one run and report on it."""
    from twoway.lab.multihost_run import Multihost
    from twoway.manifest import MACHINE
    from twoway.runs.run import run_experiment

    parts = {path.parent.name: path.parent for path in sorted(args.parts.glob(f"*/{MACHINE}"))}
    multihost = Multihost(parts, json.loads((args.parts / "times.json").read_text()))
    folder = run_experiment(
        _one_point(args.experiment), multihost, results_folder(args), took_s=multihost.took_s
    )
    return report_on(folder, as_json=args.json)


def _one_point(experiment: str) -> "Point":
    """Load the only point of an experiment.

    Raises: UsageError if the experiment has several.
    """
    from twoway.description.point import point_names
    from twoway.errors import UsageError
    from twoway.runs.points import load_point

    names = point_names(experiment)
    if len(names) > 1:
        raise UsageError(f"{experiment}: has {len(names)} points; name one", f"as {names[0]}")
    return load_point(names[0])


# By name: the line of help, the options, and the function.
COMMANDS = {
    "bundle": ("make the archives for lab hosts, and print their list", (), bundle),
    "pack": (
        "write finished runs into an archive with their checksums",
        (
            option("runs", nargs="*", help="runs, as EXPERIMENT/RUN (default: all)"),
            option("--to", type=Path, help="the archive (default: standard output)"),
            RESULTS,
        ),
        pack,
    ),
    "gather": (
        "put the runs of archives into the results, compare every checksum, and write the reports",
        (
            option("archives", type=Path, nargs="+", help="an archive that `pack` made"),
            *NEW_RUNS,
        ),
        gather,
    ),
    "share": (
        "cut an experiment's plan into the shares of several hosts",
        (
            EXPERIMENT,
            option("--places", required=True, help="a JSON file: nodes and links of each host"),
            option("--to", type=Path, required=True, help="folder for the hosts' shares"),
        ),
        share,
    ),
    "node": (
        "carry out a host's share of a plan, as root",
        (option("folder", type=Path, help="the folder with its plan.json"),),
        node,
    ),
    "clock": (
        "the offsets of other machines' clocks from this one's",
        (
            option("machines", nargs="*", metavar="NAME=ADDRESS", help="machines that answer"),
            option(
                "--answer",
                metavar="ADDRESS",
                help="answer requests at this address instead of asking other hosts",
            ),
            option("--port", type=int, default=8787, help="UDP port (default: %(default)s)"),
            option(
                "--session",
                type=int,
                metavar="NUMBER",
                help="a secret number that both hosts are given: answer only requests with it",
            ),
            option(
                "--seconds", type=float, default=60, help="with --answer: longest time to answer, s"
            ),
        ),
        clock,
    ),
    "merge": (
        "make one run from the files of several hosts, and report",
        (
            EXPERIMENT,
            option("parts", type=Path, help="folder with a folder for each host, and times.json"),
            JSON,
            *NEW_RUNS,
        ),
        merge,
    ),
}
