"""The `capture-analysis` command."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from capture_analysis import metrics
from capture_analysis.analysis import Analysis
from capture_analysis.errors import AnalysisError
from capture_analysis.report import analyse_run

EXIT_HELP = (
    "Exit status: 0 if it worked and all that was to hold holds, 1 if an expectation or a "
    "fidelity check does not, 2 if the command line or the folder cannot be used."
)


@dataclass(frozen=True)
class Command:
    """One subcommand: its function takes a run's folder and returns the exit status."""

    name: str
    function: Callable[[Path], int]
    help: str


def report(folder: Path) -> int:
    """Write everything derived from a run beside it; what does not hold goes to stderr."""
    document = analyse_run(folder)
    for row in document["expect"]:
        if not row["pass"]:
            _complain(
                f"{row['metric']}: measured {row['measured']}, "
                f"expected {row['expected']} +- {row['tolerance']} ({row['source']})"
            )
    for row in document["fidelity"]:
        if not row["pass"]:
            _complain(f"{row['check']}: {row['value']}, bound {row['bound']}")
    sys.stdout.write(f"{folder / 'report.html'}\n")
    return 0 if document["pass"] else 1


def print_metrics(folder: Path) -> int:
    """Compute what metrics.json holds and print it; the folder is left as it is."""
    document = metrics.compute(Analysis(folder))
    sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return 0


COMMANDS = (
    Command("report", report, "write metrics.json, figures/ and report.html into a run's folder"),
    Command("metrics", print_metrics, "print metrics, expectations and fidelity checks as JSON"),
)


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments after the command's name; the process's own by default.

    Returns: the exit status, see EXIT_HELP.
    """
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.function(arguments.folder)
    except (AnalysisError, OSError) as error:
        _complain(str(error))
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="capture-analysis",
        description="Ack compression, efficiency and queues, measured from a run's captures.",
        epilog=EXIT_HELP,
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = subparsers.add_parser(
            command.name, help=command.help, description=command.help, epilog=EXIT_HELP
        )
        sub.set_defaults(function=command.function)
        sub.add_argument(
            "folder", type=Path, metavar="FOLDER", help="a finished run, with its manifest.json"
        )
    return parser


def _complain(text: str) -> None:
    sys.stderr.write(f"capture-analysis: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
