"""The subcommand that checks experiments."""

import argparse

from twoway.commands.options import add_experiments, all_ids, complain
from twoway.errors import TwowayError
from twoway.messages import say

HELP = "check experiments without running them; all by default"
_STAYS = "a prediction stays as it was committed; `contradicted` says where runs contradict it"
_INSTALL = "a guest has the programs of this machine's /usr: install it, or bring it in `files`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `vet` to its parser."""
    add_experiments(parser)


def run(args: argparse.Namespace) -> int:
    """Check experiments without running them."""
    from twoway.runs.cases import load_case, reference_problems
    from twoway.runs.installed import missing_programs
    from twoway.runs.predicted import shrunk
    from twoway.spec.point import case_names

    # With their hints. A set in order: a problem of every point is printed once.
    problems: dict[tuple[str, str], None] = {}
    warnings: list[str] = []
    for name in args.experiments or all_ids():
        try:
            for point in case_names(name):
                case = load_case(point)
                problems.update(dict.fromkeys((each, "") for each in reference_problems(case)))
                missing = missing_programs(name, case.experiment.programs, case.files)
                problems.update(dict.fromkeys((each, _INSTALL) for each in missing))
            warnings += shrunk(name)
        except TwowayError as error:
            problems[str(error), error.hint] = None
    for warning in warnings:
        complain(f"warning: {warning}", _STAYS)
    for problem, hint in problems:
        complain(problem, hint)
    if problems:
        return 2
    count = len(args.experiments or all_ids())
    say(f"{count} experiment{'s are' if count > 1 else ' is'} sound")
    return 0
