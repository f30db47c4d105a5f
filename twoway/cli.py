"""The command `twoway`: a table of its subcommands.

Each has a function and a line of help.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError
from capture_analysis.printable import only_printable

from twoway import __version__
from twoway.commands.options import (
    BACKEND,
    CREW,
    FORMAT,
    JSON,
    KERNEL,
    METRIC,
    RESULTS,
    RUN,
    SCHEMAS,
    Option,
    at_least_one,
    complain,
)
from twoway.errors import TwowayError
from twoway.limits import refuse_small_limits
from twoway.messages import hush
from twoway.paths import experiment_files

DEFAULT_EXPERIMENT = "kalampoukas-5.2"
EXIT_HELP = (
    "exit codes: 0 all is as the experiment's file says, 1 the run, a prediction or a fidelity "
    "check failed or a claim differs unlisted, 2 bad usage, 3 the run's clock tells too little"
)


@dataclass(frozen=True)
class Command:
    """One subcommand of `twoway`."""

    name: str
    function: str  # MODULE.NAME in twoway.commands
    help: str
    experiment: str = ""  # "one": takes an experiment; "many": takes any number
    options: tuple[Option, ...] = ()

    def __call__(self, args: argparse.Namespace) -> int:
        """Carry out the command; load its module, and no other command's."""
        module, _, name = self.function.partition(".")
        return int(getattr(import_module(f"twoway.commands.{module}"), name)(args))


COMMANDS = (
    Command(
        "vet", "experiments.vet", "check experiments without running them; all by default", "many"
    ),
    Command("list", "experiments.list_experiments", "the experiments there are", options=(JSON,)),
    Command(
        "metrics",
        "experiments.metrics",
        "every metric that an experiment can speak of: unit, meaning, source",
        options=(JSON,),
    ),
    Command(
        "compute",
        "theory.compute",
        "compute again what theories keep in tables; all by default",
        options=(("theories", {"nargs": "*", "help": "which, by name"}),),
    ),
    Command(
        "plan",
        "experiments.plan",
        "the commands of a run once it has nodes and interfaces, in order",
        "one",
        (JSON,),
    ),
    Command(
        "run",
        "running.run",
        "run an experiment in virtual time and report",
        "one",
        (JSON, RESULTS, METRIC, *CREW, BACKEND, KERNEL),
    ),
    Command(
        "sweep",
        "running.sweep",
        "run experiments, all by default, and every point of theirs that is not there yet",
        "many",
        (JSON, RESULTS, METRIC, *CREW, BACKEND, KERNEL),
    ),
    Command(
        "papers",
        "running.papers",
        "the reproduction report: `sweep`, and everything compared with the papers",
        "many",
        (JSON, RESULTS, *CREW, BACKEND, KERNEL),
    ),
    Command(
        "report",
        "reporting.report",
        "analyse a finished run again; the latest by default",
        options=(RUN, JSON, RESULTS),
    ),
    Command(
        "figures",
        "reporting.figures",
        "the pictures of a finished run's report as PNG and SVG files, into figures/ beside it",
        options=(
            RUN,
            ("--csv", {"action": "store_true", "help": "the numbers behind them instead"}),
            (
                "--foot",
                {
                    "metavar": "TEXT",
                    "help": "at the foot of each, instead of the conditions of the run",
                },
            ),
            RESULTS,
        ),
    ),
    Command(
        "export",
        "reporting.export",
        "the time series of a finished run's connections, goodput, window and round-trip time, in "
        "a file for another tool",
        options=(
            RUN,
            FORMAT,
            (
                "--to",
                {
                    "type": Path,
                    "metavar": "FILE",
                    "help": "the file (default: in the run's folder, by the experiment's id)",
                },
            ),
            RESULTS,
        ),
    ),
    Command(
        "runs",
        "reporting.runs",
        "the finished runs, with identities and verdicts; and a page of them, results/index.html",
        options=(JSON, RESULTS),
    ),
    Command(
        "compare",
        "comparing.compare",
        "what differs between runs: parameters, metrics, the first packet; exit code 1 if so",
        options=(
            (
                "runs",
                {
                    "nargs": "+",
                    "help": "folders, points, identities, or experiments: all points of a sweep",
                },
            ),
            ("--to", {"type": Path, "help": "the page (default: comparison.html in results/)"}),
            JSON,
            RESULTS,
        ),
    ),
    Command(
        "bisect",
        "comparing.bisect",
        "the first commit of a kernel's git history on which an experiment has another result: "
        "a verdict, a metric, or a packet",
        "one",
        (
            (
                "--source",
                {
                    "type": Path,
                    "required": True,
                    "metavar": "FOLDER",
                    "help": "a git repository of the kernel; it is read, and nothing changed in it",
                },
            ),
            ("--good", {"required": True, "metavar": "REV", "help": "a commit before the change"}),
            ("--bad", {"required": True, "metavar": "REV", "help": "a commit after it"}),
            JSON,
            RESULTS,
        ),
    ),
    Command(
        "clean",
        "reporting.clean",
        "list runs that failed, finished ones by number or age, and what was built for other "
        "versions; with --yes, remove them",
        options=(
            (
                "--keep",
                {"type": at_least_one, "metavar": "N", "help": "but the newest N of each"},
            ),
            (
                "--older-than",
                {"type": float, "metavar": "DAYS", "help": "if they are older"},
            ),
            (
                "--kernels",
                {"action": "store_true", "help": "of the cache, kernels that no build now is"},
            ),
            ("--yes", {"action": "store_true", "help": "remove them"}),
            RESULTS,
        ),
    ),
    Command(
        "doctor",
        "machine.doctor",
        "what this machine can do, and what is missing",
        options=(
            ("--disk", {"action": "store_true", "help": "also what runs and the cache take"}),
            JSON,
        ),
    ),
    Command("shell", "machine.shell", "the network in the guest, with Mininet's prompt", "one"),
    Command(
        "calibrate",
        "running.calibrate",
        "measure the error floor of link profiles",
        options=(
            (
                "profiles",
                {"nargs": "*", "help": "under tc-profiles/, or files; all by default"},
            ),
            JSON,
            RESULTS,
            BACKEND,
            KERNEL,
        ),
    ),
    Command(
        "build",
        "machine.build",
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
                "--copy",
                {
                    "type": Path,
                    "metavar": "FOLDER",
                    "help": "copy what runs need of it there, as a package has it",
                },
            ),
            (
                "--sanitized",
                {
                    "action": "store_true",
                    "help": "the guest with KASAN, lockdep and others, for `make test-sanitized`",
                },
            ),
            KERNEL,
        ),
    ),
    Command(
        "schema",
        "experiments.schema",
        "JSON Schema of a file format, every field described; the site of `make docs` has pages",
        options=(("kind", {"choices": SCHEMAS}),),
    ),
)


# `twoway lab ...`: what the playbooks call, on the controlling machine and on lab hosts.
LAB_COMMANDS = (
    Command(
        "bundle", "lab.bundle", "make the archives that lab hosts are given, and print their list"
    ),
    Command(
        "pack",
        "lab.pack",
        "write finished runs into an archive with their checksums",
        options=(
            ("runs", {"nargs": "*", "help": "<experiment>/<run>; all by default"}),
            ("--to", {"type": Path, "help": "the archive (default: standard output)"}),
            RESULTS,
        ),
    ),
    Command(
        "gather",
        "lab.gather",
        "put the runs of archives into the results, every checksum compared",
        options=(("archives", {"type": Path, "nargs": "+", "help": "made by `pack`"}), RESULTS),
    ),
    Command(
        "share",
        "multihost.share",
        "cut an experiment's plan into what each of several hosts does",
        "one",
        (
            ("--places", {"required": True, "help": "JSON: nodes and links of each host"}),
            ("--to", {"type": Path, "required": True, "help": "folder for theirs"}),
        ),
    ),
    Command(
        "node",
        "multihost.node",
        "carry out a host's share of a plan, as root",
        options=(("folder", {"type": Path, "help": "the one with its plan.json"}),),
    ),
    Command(
        "clock",
        "multihost.clock",
        "how far other machines' clocks are ahead of this one's",
        options=(
            ("machines", {"nargs": "*", "metavar": "NAME=ADDRESS", "help": "who answers"}),
            ("--answer", {"metavar": "ADDRESS", "help": "answer there instead, and end"}),
            ("--port", {"type": int, "default": 8787, "help": "UDP (default: %(default)s)"}),
            ("--seconds", {"type": float, "default": 60, "help": "for --answer: how long at most"}),
        ),
    ),
    Command(
        "merge",
        "multihost.merge",
        "make a run of what several hosts left, and report",
        "one",
        (
            ("parts", {"type": Path, "help": "folder with a folder for each, and times.json"}),
            JSON,
            RESULTS,
        ),
    ),
)


def main() -> int:
    """Run the subcommand of the command line and return the exit code."""
    with only_printable():
        return _main()


def _main() -> int:
    try:
        for ending in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, signal.default_int_handler)
        refuse_small_limits()
        if "COMP_LINE" in os.environ:  # a shell asks what may stand at the cursor
            import argcomplete  # noqa: PLC0415 - only then

            argcomplete.autocomplete(_parser(os.environ["COMP_LINE"].split()))
        args = _parser(sys.argv[1:]).parse_args()
        if args.quiet:
            hush()
        status = int(args.command(args))
        sys.stdout.flush()  # a full disk is said now, not passed over at the end
    except TwowayError as error:
        complain(str(error), error.hint)
        return error.exit_code
    except AnalysisError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()  # what it still holds cannot be written either
        name = error.filename2 or error.filename  # of a renaming what it was to become
        complain(f"{name}: {error.strerror}" if name else str(error))
        return 1
    except KeyboardInterrupt:
        complain("interrupted")
        return 1
    return status


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser, with the options of those commands that the command line names."""
    parser = argparse.ArgumentParser(
        prog="twoway",
        epilog=EXIT_HELP,
        description="Two-way TCP on the real Linux kernel, in virtual time.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    _add(subparsers, COMMANDS, words)
    about = "what the playbooks call: archives, archives of runs, runs over several hosts"
    inner = subparsers.add_parser("lab", help=about, description=about, epilog=EXIT_HELP)
    _add(inner.add_subparsers(required=True, metavar="COMMAND"), LAB_COMMANDS, words)
    return parser


def _add(subparsers: Any, commands: Iterable[Command], words: Sequence[str]) -> None:
    for command in commands:
        sub = subparsers.add_parser(
            command.name, help=command.help, description=command.help, epilog=EXIT_HELP
        )
        sub.set_defaults(command=command)
        if command.name not in words:
            continue
        if command.experiment == "one":
            named: Any = sub.add_argument(
                "experiment",
                nargs="?",
                default=DEFAULT_EXPERIMENT,
                help=f"an id or a file (default: {DEFAULT_EXPERIMENT})",
            )
            named.completer = _experiments
        elif command.experiment == "many":
            named = sub.add_argument("experiments", nargs="*", help="ids or files; all by default")
            named.completer = _experiments
        for name, settings in command.options:
            sub.add_argument(name, **(settings() if callable(settings) else settings))
        quiet = "print on standard error only what is wrong"
        sub.add_argument("--quiet", "-q", action="store_true", help=quiet)


def _experiments(prefix: str, **_: Any) -> list[str]:
    """List what may stand where an experiment is asked for: ids, or files under a folder."""
    if "/" in prefix or prefix.startswith("."):
        return [str(path) for path in Path().glob(f"{prefix}*")]
    return list(experiment_files())


if __name__ == "__main__":
    sys.exit(main())
