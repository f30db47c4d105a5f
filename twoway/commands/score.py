"""The subcommand that compares congestion controls in a suite's situations."""

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from twoway.commands.options import (
    BACKEND,
    CREW,
    JSON,
    KEEP,
    KERNEL,
    NEW_RUNS,
    SEEDS,
    SUITE,
    option,
    results_folder,
    shorten_path,
)
from twoway.commands.sweep import run_all
from twoway.contract.writing import chown_like_parent, make_folder
from twoway.errors import UsageError
from twoway.messages import console, say, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from twoway.description.own_modules import OwnModule
    from twoway.description.point import Point
    from twoway.description.reading import ExperimentSource
    from twoway.description.suite import LoadedSuite
    from twoway.report.card import Card
    from twoway.report.card_comparing import CardComparison
    from twoway.sweeps.sweep import Outcome

HELP = "congestion controls compared: a card of yours beside Reno, CUBIC and BBR"
OPTIONS = (
    option(
        "controls",
        nargs="*",
        help="a control of the kernel, such as vegas; a C file or folder of a module that "
        "registers one, such as ./tcp_mine.c; or one of QUIC, such as quic-cubic; each also on "
        "another stack or kernel, as vegas+linux, vegas+newest; the suite's own columns are always "
        "included",
    ),
    SUITE,
    option(
        "--against",
        help="print the cells that differ from another card (card.json, or its folder), those in "
        "which the first control differs from this column, such as cubic, or those that differ on "
        "another kernel, named as for --kernel",
    ),
    JSON,
    *NEW_RUNS,
    SEEDS,
    *CREW,
    KEEP,
    BACKEND,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Run a suite for controls, and write their card."""
    from twoway.backends.registry import find_backend
    from twoway.description.suite import usual_seeds
    from twoway.report.card import card_table, printed_table
    from twoway.report.card_comparing import comparison_table

    suite, others = read_columns(args)
    args.seeds = args.seeds or usual_seeds(suite)
    columns = (*others, *suite.said.columns)
    into = results_folder(args) / "score" / suite.name
    find_backend(args.backend, args.kernel)
    outcomes: list[Outcome] = []
    against = None
    if args.against and _is_kernel(args.against):
        before, outcomes = card_on(args.against, args, suite, others, into / "against")
        against = _beside(before)
    elif args.against:
        against = _against(args.against, columns)
    card, here = card_on(args.kernel, args, suite, others, into)
    chown_like_parent(args.results / "score")
    if args.json:
        print(card.json_text())
    elif not console().quiet:
        print(*card_table(card), *printed_table(card), sep="\n")
        if against:
            print(*comparison_table(against(card)), sep="\n")
    say(card.runs_in_words)
    ended = say_failed([*outcomes, *here])
    say(f"report: {shorten_path(into / 'index.html')}")
    return ended


def read_columns(args: argparse.Namespace) -> "tuple[LoadedSuite, Mapping[str, OwnModule | None]]":
    """Read the suite, and the controls that it does not list, with their modules.

    Raises: UsageError if there is no such suite, metric, control or program.
    """
    from twoway.description.suite import control_of, load_suite

    suite = load_suite(args.suite)
    refuse_unknown_metrics(suite)
    asked = dict(control_of(name) for name in args.controls)
    _refuse_missing_programs(asked)
    return suite, {n: module for n, module in asked.items() if n not in suite.said.columns}


def say_failed(outcomes: "Iterable[Outcome]") -> int:
    """Say which runs failed; return the exit code."""
    from twoway.contract.verdicts import BAD, GOOD

    failed = [each for each in outcomes if not each.good]
    for each in failed:
        say(f"{each.id}: {each.error or each.headline}", wrong=True)
    return BAD if failed else GOOD


def card_on(
    kernel: str | None,
    args: argparse.Namespace,
    suite: "LoadedSuite",
    others: "Mapping[str, OwnModule | None]",
    into: Path,
) -> "tuple[Card, list[Outcome]]":
    """Run a suite on a kernel, None for the backend's own, and write the card with its page."""
    from twoway.description.suite import rows_for, rows_without
    from twoway.report.card import make_card
    from twoway.report.card_page import write_card
    from twoway.report.results import read_results
    from twoway.runs.clean import Room

    args = argparse.Namespace(**{**vars(args), "kernel": kernel})
    columns = (*others, *suite.said.columns)
    # those of the suite's columns, and of each other control
    loaded = [_points(suite.experiments, args)]
    for name, module in others.items():
        loaded.append(_points(rows_for(suite, name, module), args))
        if module:
            _build(loaded[-1][0], args)
    points = {point.id: point for group in loaded for point in group}
    say(f"{len(points)} runs in all, finished ones are kept: {', '.join(columns)}")
    outcomes = run_all(args, points, room=Room(args.keep))
    folders = {outcome.id: outcome.folder for outcome in outcomes if outcome.folder}
    done = ([folders[point.id] for point in group if point.id in folders] for group in loaded)
    experiments = [each for group in done for each in read_results(group)]
    failed = {outcome.id: outcome.error for outcome in outcomes if not outcome.folder}
    without = {name: rows_without(suite, name) for name, module in others.items() if not module}
    card = make_card(suite, columns, experiments, failed, without)
    make_folder(into)
    write_card(card, experiments, into)
    return card, outcomes


def _points(rows: "Iterable[ExperimentSource]", args: argparse.Namespace) -> "list[Point]":
    """Read all points of rows, each with the seeds that the command line asks for."""
    from twoway.runs.points import load_points

    return [point for row in rows for point in load_points(row, args.seeds)]


def _is_kernel(name: str) -> bool:
    """Tell whether a name is that of a kernel, as for `--kernel`, not of a card or column."""
    from twoway.guest.source import NAMED

    return name in NAMED or (Path(name).expanduser() / "Kconfig").is_file()


def _beside(before: "Card") -> "Callable[[Card], CardComparison]":
    from twoway.report.card_comparing import compare_cards

    return lambda card: compare_cards(before, card)


def _against(asked: str, columns: tuple[str, ...]) -> "Callable[[Card], CardComparison]":
    """Read the card or column to compare with, before runs may overwrite it.

    Raises: UsageError if it is neither a column nor a card.
    """
    from twoway.report.card import read_card
    from twoway.report.card_comparing import compare_columns

    if asked in columns:
        return lambda card: compare_columns(card, columns[0], asked)
    if not Path(asked).exists():
        raise UsageError(
            f"--against: {asked:.80}: neither a card, a column nor a kernel",
            f"columns are {', '.join(columns)}; name it as a control to have it as one",
        )
    return _beside(read_card(Path(asked)))


def _build(point: "Point", args: argparse.Namespace) -> None:
    """Build the module of a point, so that a compiler error stops the command at once.

    Raises: UsageError with the compiler's errors.
    """
    from twoway.backends.own_modules import own_modules
    from twoway.backends.registry import find_backend
    from twoway.backends.uml import Uml
    from twoway.plan.plan import build_plan

    backend = find_backend(args.backend, args.kernel)
    if isinstance(backend, Uml):  # other backends refuse own modules
        own_modules(backend.guest, build_plan(point, in_kernel=backend.in_kernel).own_modules)


def _refuse_missing_programs(controls: "Iterable[str]") -> None:
    """Raise UsageError if a control is QUIC's and this machine lacks the programs."""
    from twoway.backends.sandbox import GUEST_PATH
    from twoway.description.quic import PACKAGES, PROGRAMS, is_quic

    missing = [each for each in PROGRAMS if not shutil.which(each, path=GUEST_PATH)]
    for each in controls:
        if missing and is_quic(each):
            raise UsageError(
                f"{each}: this machine has no {', '.join(missing)}",
                f"sudo apt-get install {PACKAGES}",
            )


def refuse_unknown_metrics(suite: "LoadedSuite") -> None:
    """Raise UsageError if a row shows a metric that its experiment does not have."""
    from twoway.runs.points import load_points

    for row in suite.experiments:
        known = load_points(row)[0].metrics
        name = row.id.removeprefix(f"{suite.name}-")
        for each in suite.rows[row.id].shows:
            if each.metric not in known:
                raise UsageError(
                    f"suite {suite.name}: rows.{name}.shows: {each.metric:.80}: no such metric"
                    f"{suggest(each.metric, known)}",
                    f"there are {', '.join(known)}",
                )
