"""The subcommand that cuts a plan into the shares of several hosts."""

import argparse
import json
from pathlib import Path

from twoway.commands.lab.one_point import one_point
from twoway.commands.options import add_experiment

HELP = "cut an experiment's plan into the shares of several hosts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `lab share` to its parser."""
    add_experiment(parser)
    parser.add_argument("--places", required=True, help="a JSON file: nodes and links of each host")
    parser.add_argument("--to", type=Path, required=True, help="folder for the hosts' shares")


def run(args: argparse.Namespace) -> int:
    """Write each host's share of a plan, and print the reference clock's host."""
    from pydantic import TypeAdapter, ValidationError

    from twoway.contract.network import READY_NS
    from twoway.contract.plan import PLAN
    from twoway.errors import UsageError
    from twoway.lab.multihost_plan import Place, shares

    try:
        places = TypeAdapter(dict[str, Place]).validate_json(args.places)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise UsageError("\n".join(f"--places: {problem}" for problem in problems)) from error
    point = one_point(args.experiment)
    for machine, plan in shares(point, places).items():
        folder = args.to / machine
        folder.mkdir(parents=True, exist_ok=True)
        plan.write(folder / PLAN)
    # All clocks are compared with that of the last node's host: a router, close to most of the
    # others.
    reference = next(m for m, place in places.items() if point.graph.nodes[-1] in place.nodes)
    print(json.dumps({"experiment": point.id, "reference": reference, "ready_by_ns": READY_NS}))
    return 0
