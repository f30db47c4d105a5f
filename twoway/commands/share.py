"""The subcommand that writes a run, or a sweep's runs, into one file."""

import argparse
import base64
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from twoway.commands.options import RESULTS, add_options, shown
from twoway.messages import say

if TYPE_CHECKING:
    from twoway.report.results import Experiment

HELP = (
    "write a run, or all points of a sweep, into one file to hand on: a browser opens its page, "
    "`twoway compare` and `twoway.load` read its runs"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `share` to its parser."""
    help_text = "a run's folder, a point, an identity, or an experiment: for a sweep all points"
    parser.add_argument("run", help=help_text)
    help_text = (
        "include the captures, so that receivers can read series and packets and draw pictures"
    )
    parser.add_argument("--captures", action="store_true", help=help_text)
    help_text = "(default: ID.shared.html in this folder)"
    parser.add_argument("--to", type=Path, metavar="FILE.html", help=help_text)
    add_options(parser, RESULTS)


def run(args: argparse.Namespace) -> int:
    """Write a run, or the runs of a sweep, into one file with a page that shows them."""
    from twoway.errors import UsageError
    from twoway.manifest import captures_left_out, without_captures
    from twoway.measure.run_folder import manifest_of
    from twoway.report.report import PAGE, analyse_run
    from twoway.report.results import read_results
    from twoway.runs.finding import find_runs
    from twoway.runs.shared import SUFFIX, share_runs

    folders = _of_one_matrix(find_runs(args.run, args.results))
    for folder in folders:
        if args.captures and without_captures(folder):
            said = captures_left_out(folder, manifest_of(folder).experiment.id)
            raise UsageError(f"--captures: {said}")
        if not (folder / PAGE).is_file():
            analyse_run(folder)
    (experiment,) = read_results(folders)
    name = experiment.results[0].id if len(folders) == 1 else experiment.id
    to = args.to or Path(f"{name}.shared{SUFFIX}")
    if to.suffix != SUFFIX:
        raise UsageError(f"--to: must end in {SUFFIX}, got {to}")
    page = _sweep_page(experiment) if len(folders) > 1 else (folders[0] / PAGE).read_text("utf-8")
    share_runs(page, folders, to, captures=args.captures)
    say(f"{shown(to)}: {to.stat().st_size / 1e6:.1f} MB", markup=False)
    return 0


def _of_one_matrix(folders: list[Path]) -> list[Path]:
    """Leave out points of an earlier matrix of the experiment."""
    from twoway.measure.run_folder import manifest_of

    matrices = [manifest_of(folder).experiment.matrix for folder in folders]
    newest = max(range(len(folders)), key=lambda number: folders[number].name)
    pairs = zip(folders, matrices, strict=True)
    return [folder for folder, matrix in pairs if matrix == matrices[newest]]


def _sweep_page(experiment: "Experiment") -> str:
    """Draw the page of a sweep, with its tables inside."""
    from twoway.report.sweep_page import TABLES, write_sweep_pages

    with TemporaryDirectory() as site:
        (path,) = write_sweep_pages([experiment], Path(site), _without_a_run(experiment))
        page = path.read_text("utf-8")
        for name in TABLES:
            content = base64.b64encode((path.parent / name).read_bytes()).decode()
            data = f"data:application/octet-stream;base64,{content}"
            page = page.replace(f'href="{name}"', f'download="{name}" href="{data}"')
    return page


def _without_a_run(experiment: "Experiment") -> dict[str, str]:
    """List the points of a sweep's matrix that have no finished run."""
    there = {result.id for result in experiment.results}
    axes = experiment.axes
    points = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    words = (",".join(f"{axis}={value}" for axis, value in point.items()) for point in points)
    names = (f"{experiment.id}@{each}" for each in words)
    return {name: "no finished runs here" for name in names if name not in there}
