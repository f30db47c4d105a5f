"""The subcommand that computes the tables of theories again."""

import argparse
from typing import Any

from twoway.commands.options import all_ids, option
from twoway.messages import say
from twoway.theory import tables

HELP = "compute the tables of theories again; all by default"
OPTIONS = (option("theories", nargs="*", help="which, by name"),)


def run(args: argparse.Namespace) -> int:
    """Write the tables of theories that are too slow to compute at each reading of a file."""
    from twoway.description.point import point_names
    from twoway.description.predictions import setup_of
    from twoway.runs.points import load_point
    from twoway.theory.registry import find_theory, known_theories

    names = [name for each in all_ids() for name in point_names(each)]
    points = [load_point(name) for name in names]
    for theory in known_theories():
        module = find_theory(theory)
        if not hasattr(module, "compute") or (args.theories and theory not in args.theories):
            continue
        rows: dict[str, tuple[str, dict[str, Any], tables.Values]] = {}
        for point in points:
            used = {each.theory for each in point.predictions} | {point.experiment.theory}
            if theory in used:
                setup = setup_of(
                    point.experiment, point.profile, point.graph, list(point.connections)
                )
                parameters = module.parameters(setup)
                if str(parameters) not in rows:
                    say(f"{theory}: {point.id}")
                    rows[str(parameters)] = (point.id, parameters, module.compute(setup))
        print(tables.write(theory, rows.values()))
    return 0
