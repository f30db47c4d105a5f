"""The command `twoway`: a list of subcommands, one module each."""

import argparse
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from capture_analysis.errors import AnalysisError
from capture_analysis.printable import only_printable

from twoway import __version__
from twoway.commands.options import QUIET, Option, add_options, complain
from twoway.errors import TwowayError, UsageError, exit_code_after
from twoway.messages import hush

_EXIT_HELP = (
    "exit codes: 0 everything is as the experiment's file says, 1 the run or a fidelity check "
    "failed or a prediction or claim differs unlisted, 2 bad usage, 3 the run's clock tells too "
    "little, 130 Ctrl-C and 143 SIGTERM ended the command"
)
# kalampoukas-5.2 runs with 200 open files, and its guest dies with 128. numpy ends the process if
# it cannot have the address space for its threads.
_LEAST_FILES = 256
_LEAST_MIB = 512
# Objects between two collections of garbage. Loading makes many objects that stay: with Python's
# default of 700, collections take 4 % of the processor time until an experiment is read.
_COLLECTED_AFTER = 50_000
# Each is a module of twoway.commands with HELP, OPTIONS and run; `lab` has COMMANDS of its own.
COMMANDS = (
    "new",
    "vet",
    "list",
    "metrics",
    "predict",
    "compute",
    "plan",
    "run",
    "sweep",
    "papers",
    "score",
    "class",
    "patch",
    "packetdrill",
    "selftests",
    "report",
    "figures",
    "export",
    "runs",
    "compare",
    "share",
    "bisect",
    "why",
    "trace",
    "like",
    "hunt",
    "evaluate",
    "clean",
    "doctor",
    "shell",
    "calibrate",
    "build",
    "schema",
    "lab",
)


def refuse_small_limits() -> None:
    """Raise the limit of open files as far as allowed.

    Raises: UsageError if the limits leave too few, or too little memory.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < _LEAST_FILES:
        raise UsageError(f"ulimit -n: must be at least {_LEAST_FILES} open files, got {most}")
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space != resource.RLIM_INFINITY and space >> 20 < _LEAST_MIB:
        raise UsageError(f"ulimit -v: must be at least {_LEAST_MIB << 10} kB, got {space >> 10}")


def main() -> int:
    """Run the subcommand of the command line and return the exit code."""
    gc.set_threshold(_COLLECTED_AFTER)
    with only_printable():
        return _main()


def _main() -> int:
    try:
        for ending in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, _end)
        refuse_small_limits()
        if "COMP_LINE" in os.environ:  # a shell asks for completions at the cursor
            import argcomplete  # noqa: PLC0415 - only then

            argcomplete.autocomplete(_parser(os.environ["COMP_LINE"].split()[1:]))
        args = _parser(sys.argv[1:]).parse_args()
        if args.quiet:
            hush()
        status = int(args.command(args))
        sys.stdout.flush()  # a full disk is reported now, not ignored at exit
    except TwowayError as error:
        complain(str(error), error.hint)
        return error.exit_code
    except (AnalysisError, MemoryError) as error:
        complain(str(error) or "not enough memory")
        return 1
    except BrokenPipeError:  # the reader of our output has closed it
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()  # the rest of the buffer cannot be written either
        name = error.filename2 or error.filename  # the error of a renaming names its target
        complain(f"{name}: {error.strerror}" if name else str(error))
        return 1
    except KeyboardInterrupt as end:
        complain("interrupted")
        return exit_code_after(end)
    return status


def _end(number: int, _: object) -> None:
    """End the command at a signal as Ctrl-C does."""
    raise KeyboardInterrupt(number)


def _drop_output() -> None:
    with suppress(OSError):  # no file can be opened once too many are
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser, with the options of the command on the command line."""
    parser = argparse.ArgumentParser(
        prog="twoway",
        epilog=_EXIT_HELP,
        description="Two-way TCP on the real Linux kernel, in virtual time.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    named = words[0] if words and words[0] in COMMANDS else ""
    for name in COMMANDS:
        if named and name != named:
            subparsers.add_parser(name)  # importing its module takes time
            continue
        command = import_module(f"twoway.commands.{name}")
        sub = _add(subparsers, name, command.HELP)
        if not named:  # the list of commands needs their help alone
            continue
        if name == "lab":
            within = sub.add_subparsers(required=True, metavar="COMMAND")
            for each, (about, options, run) in command.COMMANDS.items():
                _fill(_add(within, each, about), options, run)
            continue
        if hasattr(command, "describe"):
            command.describe(sub)
        _fill(sub, command.OPTIONS, command.run)
    return parser


def _add(subparsers: Any, name: str, about: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = subparsers.add_parser(
        name, help=about, description=about, epilog=_EXIT_HELP
    )
    return added


def _fill(
    parser: argparse.ArgumentParser,
    options: Sequence[Option],
    run: Callable[[argparse.Namespace], int],
) -> None:
    add_options(parser, *options, QUIET)
    parser.set_defaults(command=run)


if __name__ == "__main__":
    sys.exit(main())
