"""The subcommand that writes a run, or a sweep's runs, into one file."""

import argparse
import base64
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from twoway.commands.options import RESULTS, option, shorten_path
from twoway.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twoway.report.card import Card
    from twoway.report.results import Experiment

HELP = (
    "write a run, all points of a sweep, or a card with its runs, into one file to hand on: a "
    "browser opens its page, `twoway compare` and `twoway.load` read its runs"
)
OPTIONS = (
    option(
        "run",
        help="a run's folder, a point, an identity, or an experiment or its folder in the results: "
        "for a sweep all points; or the folder of a card, such as results/score/quick",
    ),
    option(
        "--as",
        dest="form",
        choices=("latex", "markdown", "mail"),
        help="print a card's rows in this form instead: plain ASCII of 72 columns for mail",
    ),
    option(
        "--rows",
        action="append",
        default=[],
        metavar="WORD",
        help="with --as: rows with this word in their situation or metric; may be repeated",
    ),
    option(
        "--captures",
        action="store_true",
        help="include the captures, so that receivers can read series and packets and draw "
        "pictures",
    ),
    option("--to", type=Path, metavar="FILE.html", help="(default: ID.shared.html in this folder)"),
    RESULTS,
)


def run(args: argparse.Namespace) -> int:
    """Write runs, or a card with its runs, into one file; or print rows of a card."""
    from twoway.errors import UsageError
    from twoway.manifest import captures_left_out, without_captures
    from twoway.measure.run_folder import manifest_of
    from twoway.report.card import CARD, read_card
    from twoway.report.card_text import card_text
    from twoway.report.pages import PAGE
    from twoway.report.report import analyse_run
    from twoway.report.results import read_results
    from twoway.runs.finding import find_run, find_runs
    from twoway.runs.share_file import SUFFIX, share_runs

    card = None
    if (place := Path(args.run)).suffix == ".json" or (place / CARD).is_file():
        card = read_card(place)
        if args.form:
            print(card_text(card, args.form, args.rows), end="")
            return 0
        ids = {run for line in card.lines for cell in line.cells.values() for run in cell.runs}
        folders = [find_run(each, args.results) for each in sorted(ids)]
    else:
        folders = _of_one_matrix(find_runs(args.run, args.results))
    if args.form or (args.rows and not card):
        raise UsageError(f"--as, --rows: are for a card, and {args.run:.80} is none")
    for folder in folders:
        if args.captures and without_captures(folder):
            said = captures_left_out(folder, manifest_of(folder).experiment.id)
            raise UsageError(f"--captures: {said}")
        if not (folder / PAGE).is_file():
            analyse_run(folder)
    if card:
        name, page = card.suite, _card_page(card, folders)
    else:
        (experiment,) = read_results(folders)
        alone = len(folders) == 1
        name = experiment.results[0].id if alone else experiment.id
        page = (folders[0] / PAGE).read_text("utf-8") if alone else _sweep_page(experiment)
    to = args.to or Path(f"{name}.shared{SUFFIX}")
    if to.suffix != SUFFIX:
        raise UsageError(f"--to: must end in {SUFFIX}, got {to}")
    share_runs(page, folders, to, captures=args.captures)
    say(f"{shorten_path(to)}: {to.stat().st_size / 1e6:.1f} MB")
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
        return _with_tables(path, TABLES)


def _card_page(card: "Card", folders: list[Path]) -> str:
    """Draw the page of a card, with its tables inside.

    Raises: UsageError if the runs do not give the card's numbers.
    """
    from twoway.measure.run_folder import manifest_of
    from twoway.report.card import refuse_other_runs
    from twoway.report.card_page import TABLES, write_card
    from twoway.report.results import read_results

    of_one_matrix: dict[str, list[Path]] = {}  # a control of one's own has a matrix of its own
    for folder in folders:
        of_one_matrix.setdefault(repr(manifest_of(folder).experiment.matrix), []).append(folder)
    experiments = [each for group in of_one_matrix.values() for each in read_results(group)]
    refuse_other_runs(card, (run for each in experiments for run in each.results))
    with TemporaryDirectory() as site:
        return _with_tables(write_card(card, experiments, Path(site)), TABLES)


def _with_tables(path: Path, tables: "Sequence[str]") -> str:
    """Read a page, with the tables beside it inside."""
    page = path.read_text("utf-8")
    for name in tables:
        if (path.parent / name).is_file():
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
