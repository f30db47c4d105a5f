"""The subcommand that checks experiments."""

import argparse
from collections.abc import Iterator

from twoway.commands.options import add_experiments, all_ids, complain
from twoway.errors import TwowayError
from twoway.messages import say

HELP = "check experiments without running them; all by default"
_STAYS = "a prediction stays as it was committed; `contradicted` says where runs contradict it"
_INSTALL = "a guest has the programs of this machine's /usr: install it, or list it in `files`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `vet` to its parser."""
    add_experiments(parser)


def run(args: argparse.Namespace) -> int:
    """Check experiments without running them."""
    from twoway.runs.predicted import shrunk
    from twoway.spec.point import point_names

    # Problems with their hints, in order of appearance; one that every point has is printed once.
    problems: dict[tuple[str, str], None] = {}
    warnings: list[str] = []
    names = args.experiments or all_ids()
    for name in names:
        found = dict.fromkeys(_problems(name))
        problems.update(found)
        try:
            warnings += () if found else shrunk(name)
        except TwowayError as error:
            problems[str(error), error.hint] = None
    for warning in warnings:
        complain(f"warning: {warning}", _STAYS)
    for problem, hint in problems:
        complain(problem, hint)
    if problems:
        return 2
    number = sum(len(point_names(name)) for name in names)
    points = f": {number} points" if number > len(names) else ""
    say(f"{len(names)} experiment{'s are' if len(names) > 1 else ' is'} sound{points}")
    return 0


def _problems(name: str) -> Iterator[tuple[str, str]]:
    """List the problems of an experiment at each of its points, with hints."""
    from twoway.runs.installed import missing_programs
    from twoway.runs.points import load_point, reference_problems
    from twoway.spec.point import point_names

    try:
        names = point_names(name)
    except TwowayError as error:
        yield str(error), error.hint
        return
    for each in names:
        try:
            point = load_point(each)
            missing = missing_programs(name, point.experiment.programs, point.files)
            yield from ((problem, "") for problem in reference_problems(point))
            yield from ((program, _INSTALL) for program in missing)
        except TwowayError as error:
            yield str(error), error.hint
