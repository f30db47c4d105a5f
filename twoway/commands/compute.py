"""The subcommand that computes the tables of theories again."""

import argparse

from twoway.commands.options import all_ids
from twoway.messages import say

HELP = "compute the tables of theories again; all by default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `compute` to its parser."""
    parser.add_argument("theories", nargs="*", help="which, by name")


def run(args: argparse.Namespace) -> int:
    """Write the tables of theories that are too slow to compute at each reading of a file."""
    from twoway.runs.cases import load_case
    from twoway.spec.point import case_names
    from twoway.spec.predictions import setup_of
    from twoway.theory import tables
    from twoway.theory.registry import find_theory, known_theories

    names = [name for each in all_ids() for name in case_names(each)]
    cases = [load_case(name) for name in names]
    for theory in known_theories():
        module = find_theory(theory)
        if not hasattr(module, "compute") or (args.theories and theory not in args.theories):
            continue
        rows = []
        for case in cases:
            used = {each.theory for each in case.predictions} | {case.experiment.theory}
            if theory in used:
                say(f"{theory}: {case.id}")
                setup = setup_of(case.experiment, case.profile, case.graph, list(case.connections))
                rows.append((case.id, module.parameters(setup), module.compute(setup)))
        print(tables.write(theory, rows))
    return 0
