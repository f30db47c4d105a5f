"""Write a page with pictures, metrics.json and figures.

Of a finished run of twoway: into its own folder.
"""

import argparse
import sys
from pathlib import Path

from capture_analysis.report import analyse_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own."""
    parser.add_argument("path", type=Path, metavar="RUN", help="a run's folder")


def run(arguments: argparse.Namespace) -> int:
    """Write the report; what does not hold goes to stderr."""
    document = analyse_run(arguments.path)
    for row in document["expect"]:
        if not row["pass"]:
            _complain(
                f"{row['metric']}: measured {row['measured']}, "
                f"expected {row['expected']} +- {row['tolerance']} ({row['source']})"
            )
    for row in document["fidelity"]:
        if not row["pass"]:
            _complain(f"{row['check']}: {row['value']}, bound {row['bound']}")
    sys.stdout.write(f"{arguments.path / 'report.html'}\n")
    return 0 if document["pass"] else 1


def _complain(text: str) -> None:
    sys.stderr.write(f"capture-analysis: {text}\n")
