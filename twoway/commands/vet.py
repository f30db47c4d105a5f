"""The subcommand that checks experiments."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from twoway.commands.options import EXPERIMENTS_OR_ALL, all_ids, complain
from twoway.errors import SpecError, TwowayError
from twoway.messages import say

if TYPE_CHECKING:
    from twoway.description.point import Point

HELP = "check experiments, or all rows of suites, without running them; all experiments by default"
_STAYS = "a prediction stays as it was committed; `contradicted` says where runs contradict it"
_PRESET = "`stack: {preset: linux}` gives hosts the kernel's own defaults; docs/limits.md, Hosts"
OPTIONS = (EXPERIMENTS_OR_ALL,)


def run(args: argparse.Namespace) -> int:
    """Check experiments without running them."""
    from twoway.description.point import point_names
    from twoway.runs.predicted import find_shrunk

    # Problems with their hints, in order of appearance; one that every point has is printed once.
    problems: dict[tuple[str, str], None] = {}
    warnings: list[str] = []
    names: list[str] = []
    for name in args.experiments or all_ids():
        try:
            names += _rows_of(name) or [name]
        except TwowayError as error:
            problems.update(dict.fromkeys(_of_error(error)))
    without_preset: list[str] = []
    for name in names:
        points: list[Point] = []
        found = dict.fromkeys(_problems(name, points))
        problems.update(found)
        if any("preset" not in each.experiment.stack.model_fields_set for each in points):
            without_preset.append(name)
        try:
            warnings += () if found else find_shrunk(name, points)
        except TwowayError as error:
            problems.update(dict.fromkeys(_of_error(error)))
    for warning in warnings:
        complain(f"warning: {warning}", _STAYS)
    for hint, alike in groupby(problems, itemgetter(1)):
        complain("\n".join(problem for problem, _ in alike), hint)
    if problems:
        return 2
    if without_preset:
        complain(
            f"no stack.preset, hosts have the papers' TCP: {', '.join(without_preset)}", _PRESET
        )
    number = sum(len(point_names(name)) for name in names)
    of_points = f": {number} points" if number > len(names) else ""
    say(f"{len(names)} experiment{'s are' if len(names) > 1 else ' is'} sound{of_points}")
    return 0


def _rows_of(name: str) -> list[str]:
    """List the rows of a suite; none if a name is no suite's.

    Raises: SpecError with every problem of the suite.
    """
    from twoway.description.suite import load_suite, rows_of_suite

    if rows := rows_of_suite(name):
        load_suite(name)
    return rows


def _problems(name: str, points: list["Point"]) -> Iterator[tuple[str, str]]:
    """List the problems of an experiment at each of its points, with hints; add sound points."""
    from twoway.contract.expression import derived_problems
    from twoway.description.point import point_names

    try:
        names = point_names(name)
    except TwowayError as error:
        yield from _of_error(error)
        yield from _missing_programs(name)
        return
    # Problems that only the point's name distinguishes are one problem.
    found: dict[tuple[str, str], list[str]] = {}
    for each in names:
        point = f": point {each.partition('@')[2]}"
        for problem, hint in _problems_at(name, each, points):
            found.setdefault((problem.replace(point, "", 1), hint), []).append(problem)
    if not found:
        sound = points[-len(names) :]
        asked, axes = sound[0].experiment.metrics, {axis for each in sound for axis in each.values}
        metrics = {metric for each in sound for metric in each.metrics if metric not in asked}
        yield from ((f"{name}: {p}", "") for p in derived_problems(asked, metrics, axes))
    for (_, hint), alike in found.items():
        others = len({*alike}) - 1
        so = f"; so at {others} more point{'s' if others > 1 else ''}" if others else ""
        yield f"{alike[0]}{so}", hint


def _problems_at(name: str, point_name: str, points: list["Point"]) -> Iterator[tuple[str, str]]:
    """List the problems of an experiment's point, with hints; add the point if it is read."""
    from twoway.backends.registry import refuse_kernel
    from twoway.guest.source import version_named
    from twoway.runs.points import load_point, reference_problems
    from twoway.runs.program_search import INSTALL, missing_programs

    try:
        point = load_point(point_name)
        points.append(point)
        refuse_kernel(point, "uml", lambda: version_named(point.experiment.kernel))
        missing = missing_programs(name, point.experiment, point.files)
        yield from ((problem, "") for problem in reference_problems(point))
        yield from ((program, INSTALL) for program in missing)
    except TwowayError as error:
        yield from _of_error(error)
        yield from _missing_programs(name)


def _missing_programs(name: str) -> Iterator[tuple[str, str]]:
    """List missing programs of an experiment with other problems, as far as its file tells."""
    from twoway.description.point import find_source
    from twoway.description.reading import load_experiment
    from twoway.runs.program_search import INSTALL, missing_programs

    with suppress(SpecError):
        experiment = load_experiment(find_source(name.partition("@")[0]))
        yield from ((each, INSTALL) for each in missing_programs(name, experiment, {}))


def _of_error(error: TwowayError) -> list[tuple[str, str]]:
    return [(line, error.hint) for line in str(error).splitlines()]
