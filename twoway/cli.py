"""The `twoway` command: one table of subcommands, each a function and a line of help."""

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capture_analysis.errors import AnalysisError
from rich.markup import escape

from twoway.backend import BACKENDS
from twoway.errors import TwowayError, UsageError
from twoway.paths import EXPERIMENTS, ROOT
from twoway.progress import say

if TYPE_CHECKING:
    from twoway.sweep import Outcome

DEFAULT_EXPERIMENT = "kalampoukas-5.2"
# In the order in which the guest comes to them.
_PARTS_OF_A_PLAN = (
    *("setup", "recorders", "captures", "sinks", "sources"),
    *("at_start", "timed_sources", "teardown"),
)
EXIT_HELP = (
    "exit codes: 0 all expectations and fidelity checks hold, 1 the run or one of them failed, "
    "2 bad usage"
)


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    name: str
    function: Callable[[argparse.Namespace], int]
    help: str
    experiment: str = ""  # "one": takes an experiment; "many": takes any number
    options: tuple[tuple[str, dict[str, Any]], ...] = ()


def vet(args: argparse.Namespace) -> int:
    """Check experiments without running them."""
    from twoway.case import case_names, load_case

    problems: dict[str, None] = {}  # what is wrong at every point is said once
    for name in args.experiments or _all_ids():
        try:
            for case in case_names(name):
                load_case(case)
        except TwowayError as error:
            problems[f"{error}\n\nhint: {error.hint}" if error.hint else str(error)] = None
    for problem in problems:
        _complain(problem)
    if problems:
        return 2
    count = len(args.experiments or _all_ids())
    say(f"{count} experiment{'s are' if count > 1 else ' is'} sound")
    return 0


def list_experiments(args: argparse.Namespace) -> int:
    """Print the experiments there are."""
    from twoway.spec_file import load_experiment

    rows = []
    for name in _all_ids():
        experiment = load_experiment(EXPERIMENTS / f"{name}.yml")
        rows.append(
            {
                "id": name,
                "title": experiment.title,
                "duration_s": experiment.duration_s,
                "source": experiment.source.where if experiment.source else None,
            }
        )
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print(f"{row['id']:<28} {row['title']}")
    return 0


def plan(args: argparse.Namespace) -> int:
    """Print every command of a run, in order, without running any."""
    from twoway.case import load_case
    from twoway.plan import build_plan

    document = build_plan(load_case(args.experiment))
    if args.json:
        print(json.dumps(document, indent=1))
        return 0
    for part in _PARTS_OF_A_PLAN:
        for step in document[part]:
            _print_step(step)
    return 0


def run(args: argparse.Namespace) -> int:
    """Run an experiment, analyse it, and write its report; of a sweep, every point."""
    from twoway.backends import find_backend
    from twoway.case import case_names, load_case
    from twoway.run import run_watched

    names = case_names(args.experiment)
    if len(names) > 1 or args.scheduler:
        args.experiments = [args.experiment]
        return sweep(args)
    case = load_case(names[0])
    folder = run_watched(case, find_backend(args.backend), args.results)
    return _report(folder, as_json=args.json)


def sweep(args: argparse.Namespace) -> int:
    """Run many experiments and all their points, those that are not there yet."""
    return _judge(_run_all(args))


def papers(args: argparse.Namespace) -> int:
    """Run all experiments that are not there yet, and write the reproduction report."""
    from capture_analysis.papers.site import write_site

    outcomes = _run_all(args)
    done = [outcome.folder for outcome in outcomes if outcome.folder]
    document = write_site(done, args.results / "papers")
    if args.json:
        print(json.dumps(document, indent=1))
    status = _judge(outcomes)
    say(f"report: {_shown(args.results / 'papers/index.html')}", markup=False)
    return status


def report(args: argparse.Namespace) -> int:
    """Analyse a finished run again and rewrite its metrics, figures and report."""
    return _report(args.run or args.results / "latest", as_json=args.json)


def build(args: argparse.Namespace) -> int:
    """Build the guest kernel, its modules and programs into the cache."""
    from twoway.build import Flavour, build_guest, find_guest
    from twoway.progress import Steps

    flavour: Flavour = "sanitized" if args.sanitized else "guest"
    guest = find_guest(flavour)
    if guest is None:
        with Steps() as steps:
            guest = build_guest(steps, flavour)
    if args.kernel_dir:
        print(guest.kernel.parent)
    return 0


def bundle(args: argparse.Namespace) -> int:  # noqa: ARG001 - as all commands
    """Print what lab hosts are given, made if need be, as a JSON document."""
    from twoway.backends import built_guest
    from twoway.bundles import make_bundles

    print(json.dumps([each.document() for each in make_bundles(built_guest())], indent=1))
    return 0


def pack(args: argparse.Namespace) -> int:
    """Write finished runs into one archive."""
    from twoway.parcel import finished_runs, wrap

    with args.to.open("wb") as archive:
        wrap(args.results, args.runs or finished_runs(args.results), archive)
    return 0


def gather(args: argparse.Namespace) -> int:
    """Put the runs of archives into the results, each file checked; print their folders."""
    from twoway.parcel import unwrap

    for path in args.archives:
        with path.open("rb") as archive:
            for folder in unwrap(archive, args.results):
                print(_shown(folder))
    return 0


def doctor(args: argparse.Namespace) -> int:
    """Say what this machine can do, and what is missing."""
    from twoway.doctor import examine

    findings = examine()
    if args.json:
        print(json.dumps(findings, indent=1))
    else:
        for finding in findings:
            mark = "ok     " if finding["ok"] else "missing"
            print(f"{mark} {finding['what']:<28} {finding['found']}")
            if not finding["ok"]:
                print(f"        {finding['remedy']}")
    return 0 if all(f["ok"] for f in findings if f["required"]) else 1


def shell(args: argparse.Namespace) -> int:
    """Open an experiment's network in the guest, with Mininet's prompt and the host's clock."""
    from twoway.backends import built_guest
    from twoway.case import load_case
    from twoway.shell import open_shell

    return open_shell(load_case(args.experiment), built_guest())


def calibrate(args: argparse.Namespace) -> int:
    """Measure the error floor of link profiles with a constant-rate stream."""
    from twoway.backends import find_backend
    from twoway.calibrate import calibrate_profiles

    rows = calibrate_profiles(find_backend(args.backend), args.profiles, args.results)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(row["pass"] for row in rows) else 1


def schema(args: argparse.Namespace) -> int:
    """Print the JSON Schema of experiments or profiles: every field described."""
    from twoway.spec import Experiment, Profile

    model = Experiment if args.kind == "experiment" else Profile
    print(json.dumps(model.model_json_schema(by_alias=True), indent=1))
    return 0


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'must be a whole number from 1, got "{text}"')
    return int(text)


_JSON = ("--json", {"action": "store_true", "help": "machine-readable output on stdout"})
_RESULTS = (
    "--results",
    {
        "type": Path,
        "default": ROOT / "results",
        "metavar": "FOLDER",
        "help": "where runs are kept (default: results/)",
    },
)
_BACKEND = (
    "--backend",
    {
        "choices": BACKENDS,
        "default": "uml",
        "help": "where it runs: uml, virtual time (default); qemu, a distribution's own kernel, "
        "with KVM if it works, else emulated; native, this machine's, as root",
    },
)
_WORKERS = (
    "--workers",
    {
        "type": _at_least_one,
        "default": len(os.sched_getaffinity(0)),
        "metavar": "N",
        "help": "how many points of a sweep run at once (default: a processor each, %(default)s)",
    },
)

_SCHEDULER = (
    "--scheduler",
    {
        "metavar": "ADDRESS",
        "help": "have a lab's workers run the points: Dask's scheduler, as tls://lab1:8786",
    },
)
_CERTIFICATES = (
    "--certificates",
    {
        "type": Path,
        "default": Path.home() / ".config/twoway/lab",
        "metavar": "FOLDER",
        "help": "for --scheduler tls://...: ca.crt, client.crt, client.key (default: %(default)s)",
    },
)
_CREW = (_WORKERS, _SCHEDULER, _CERTIFICATES)

COMMANDS = (
    Command("vet", vet, "check experiments without running them; all by default", "many"),
    Command("list", list_experiments, "the experiments there are", options=(_JSON,)),
    Command("plan", plan, "every command of a run, in order", "one", (_JSON,)),
    Command(
        "run",
        run,
        "run an experiment in virtual time and report",
        "one",
        (_JSON, _RESULTS, *_CREW, _BACKEND),
    ),
    Command(
        "sweep",
        sweep,
        "run experiments, all by default, and every point of theirs that is not there yet",
        "many",
        (_RESULTS, *_CREW, _BACKEND),
    ),
    Command(
        "papers",
        papers,
        "the reproduction report: `sweep`, and everything held against the papers",
        "many",
        (_JSON, _RESULTS, *_CREW, _BACKEND),
    ),
    Command(
        "report",
        report,
        "analyse a finished run again; the latest by default",
        options=(
            ("run", {"type": Path, "nargs": "?", "help": "the run's folder"}),
            _JSON,
            _RESULTS,
        ),
    ),
    Command("bundle", bundle, "make the archives that lab hosts are given, and print their list"),
    Command(
        "pack",
        pack,
        "write finished runs into an archive with their checksums",
        options=(
            ("runs", {"nargs": "*", "help": "<experiment>/<run>; all by default"}),
            ("--to", {"type": Path, "required": True, "help": "the archive"}),
            _RESULTS,
        ),
    ),
    Command(
        "gather",
        gather,
        "put the runs of archives into the results, every checksum compared",
        options=(("archives", {"type": Path, "nargs": "+", "help": "made by `pack`"}), _RESULTS),
    ),
    Command("doctor", doctor, "what this machine can do, and what is missing", options=(_JSON,)),
    Command("shell", shell, "the network in the guest, with Mininet's prompt", "one"),
    Command(
        "calibrate",
        calibrate,
        "measure the error floor of link profiles",
        options=(
            ("profiles", {"nargs": "*", "help": "names under tc-profiles/; all by default"}),
            _JSON,
            _RESULTS,
            _BACKEND,
        ),
    ),
    Command(
        "build",
        build,
        "build the guest into the cache, if anything of it changed",
        options=(
            (
                "--kernel-dir",
                {
                    "action": "store_true",
                    "help": "print the kernel's build folder, to build modules against",
                },
            ),
            (
                "--sanitized",
                {
                    "action": "store_true",
                    "help": "the guest with KASAN, lockdep and others, for `make test-sanitized`",
                },
            ),
        ),
    ),
    Command(
        "schema",
        schema,
        "JSON Schema of a file format, every field described",
        options=(("kind", {"choices": ("experiment", "profile")}),),
    ),
)


def main() -> int:
    """Entry point; returns the exit code."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    args = _parser().parse_args()
    try:
        return int(args.function(args))
    except TwowayError as error:
        _complain(str(error))
        if error.hint:
            say(f"\nhint: {error.hint}", markup=False)
        return error.exit_code
    except AnalysisError as error:
        _complain(str(error))
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = None
        return 0
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="twoway",
        epilog=EXIT_HELP,
        description="Two-way TCP on the real Linux kernel, in virtual time.",
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = subparsers.add_parser(
            command.name, help=command.help, description=command.help, epilog=EXIT_HELP
        )
        sub.set_defaults(function=command.function)
        if command.experiment == "one":
            sub.add_argument(
                "experiment",
                nargs="?",
                default=DEFAULT_EXPERIMENT,
                help=f"an id or a file (default: {DEFAULT_EXPERIMENT})",
            )
        elif command.experiment == "many":
            sub.add_argument("experiments", nargs="*", help="ids or files; all by default")
        for name, settings in command.options:
            sub.add_argument(name, **settings)
    return parser


def _run_all(args: argparse.Namespace) -> "list[Outcome]":
    """Every point of the experiments that the command line names, all by default."""
    from twoway.backends import find_backend
    from twoway.case import case_names, load_case
    from twoway.progress import SweepBar
    from twoway.sweep import cost, run_points, workers

    names = [case for name in args.experiments or _all_ids() for case in case_names(name)]
    cases = {name: load_case(name) for name in names}
    backend = find_backend(args.backend)
    if args.scheduler:
        from twoway.lab import lab_workers

        crew = lab_workers(args.scheduler, args.certificates)
    else:
        crew = workers(args.workers)
    with SweepBar(len(cases), sum(map(cost, cases.values()))) as bar, crew as who:
        return run_points(
            cases, backend, args.results, who, lambda case, o: bar.show(_line(o), cost(case))
        )


def _judge(outcomes: "list[Outcome]") -> int:
    """Say what failed and how to run it again; the exit code."""
    bad = [outcome for outcome in outcomes if not outcome.good]
    for outcome in bad:
        say(_line(outcome))
        for line in (*outcome.missed, f"twoway run {shlex.quote(outcome.name)}"):
            say(f"     {line}", markup=False)
    say(f"{len(outcomes) - len(bad)} of {len(outcomes)} points hold what is expected of them")
    return 1 if bad else 0


def _line(outcome: "Outcome") -> str:
    """A point's outcome for people."""
    if outcome.error:
        return f"[red]FAIL[/] {outcome.name}: {escape(outcome.error)}"
    time = "kept" if outcome.kept else f"{outcome.wall_s:.1f} s"
    if outcome.missed:
        return f"[red]FAIL[/] {outcome.name}: {len(outcome.missed)} do not hold ({time})"
    return f"[green]pass[/] {outcome.name} ({time})"


def _report(folder: Path, *, as_json: bool) -> int:
    from capture_analysis.testbed.report import analyse_run

    if not (folder / "manifest.json").is_file():
        raise UsageError(f"{folder}: not a finished run", "`twoway run` makes one")
    folder = folder.resolve()
    try:
        document = analyse_run(folder)
    except AnalysisError as error:
        raise TwowayError(str(error), f"the run is in {folder}") from error
    if as_json:
        print(json.dumps(document, indent=1))
    _print_verdicts(document)
    say(f"report: {_shown(folder)}/report.html", markup=False)
    return 0 if document["pass"] else 1


def _shown(path: Path) -> Path:
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _print_verdicts(document: dict[str, Any]) -> None:
    for row in document["expect"]:
        measured = "none" if row["measured"] is None else f"{row['measured']:.4g}"
        say(
            f"{_mark(row)} {row['metric']:<32} {measured:>8} measured, "
            f"{row['expected']:.4g} +- {row['tolerance']:.2g} {row['source']}"
            f"{'; ' + row['limit'] if 'limit' in row else ''}"
        )
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


def _print_step(step: dict[str, Any]) -> None:
    where = f"[{step['node'] or 'guest'}]"
    for name, value in step.get("sysctl", {}).items():
        print(f"{where} sysctl -w {name}='{value}'")
    argv = step.get("run") or step.get("check")
    if argv:
        print(where, " ".join(argv))
    for line in step.get("stdin", []):
        print(where, "   ", line)


def _all_ids() -> list[str]:
    return sorted(path.stem for path in EXPERIMENTS.glob("*.yml"))


def _complain(text: str) -> None:
    for line in text.splitlines():
        print(f"twoway: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
