"""Print every metric as JSON.

The input is one capture, or all captures below a folder, measured on all cores or on the workers of
a Dask scheduler. For two captures of one path, see `match`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from capture_analysis.commands.measuring import add_flows, add_options, at_least_one, read_settings
from capture_analysis.json_text import indented_json
from capture_analysis.one_capture.document import FLOWS_LISTED, document


class _List(argparse.Action):
    """An option that prints every metric's name, unit and meaning, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from capture_analysis.concepts import captures_for, concepts

        lines = ["NAME, UNIT, FROM HOW MANY CAPTURES, MEANING"]
        for concept in concepts():
            lines += ["", concept.title]
            lines += [
                f"  {each.name:28} {each.unit:9} {captures_for(each):5} {each.meaning}"
                for each in concept.definitions
            ]
        sys.stdout.write("\n".join(lines) + "\n")
        parser.exit()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `metrics` to its parser."""
    parser.add_argument(
        "--list",
        action=_List,
        nargs=0,
        help="print every metric's name, unit and meaning, and exit",
    )
    add_options(parser, "a capture (- is standard input), or a folder of captures")
    add_flows(parser, FLOWS_LISTED, "payload")
    parser.add_argument(
        "--workers",
        type=at_least_one,
        default=os.cpu_count() or 1,
        metavar="N",
        help="largest number of processes (default: one per core, %(default)s)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="for a folder: the workers of this Dask scheduler, which see it under the same path",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the document of a capture, or those of a folder's captures.

    Raises: AnalysisError if there is nothing to measure.
    """
    path = arguments.path
    if path.is_dir():
        return _print_each(_of_folder(arguments))
    from capture_analysis import parallel_analysis

    measured = parallel_analysis.measure_file(path, read_settings(arguments), arguments.workers)
    found = document(measured, arguments.flows)
    sys.stdout.write(indented_json(found) + "\n")
    for text in found["warnings"]:
        sys.stderr.write(f"capture-analysis: {text}\n")
    return 0


def _of_folder(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from capture_analysis import parallel_analysis

    captures = parallel_analysis.captures_in(arguments.path)
    with parallel_analysis.dask(arguments.workers, arguments.scheduler) as executor:
        yield from parallel_analysis.analyse_all(
            captures, executor, arguments.workers, read_settings(arguments), arguments.flows
        )


def _print_each(documents: Iterator[dict[str, Any]]) -> int:
    """Print one document that holds those of all captures.

    Each capture's document is printed as soon as it is done.
    """
    status = 0
    for number, each in enumerate(documents):
        sys.stdout.write(",\n" if number else '{\n"schema": 1,\n"captures": [\n')
        sys.stdout.write(json.dumps(each, allow_nan=False))
        sys.stdout.flush()
        if "error" in each:
            sys.stderr.write(f"capture-analysis: {each['error']}\n")
            status = 2
    sys.stdout.write("\n]\n}\n")
    return status
