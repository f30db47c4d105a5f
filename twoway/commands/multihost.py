"""The subcommands of a multi-host run, which playbooks/multihost.yml calls."""

import argparse
import json
import time
from typing import TYPE_CHECKING

from twoway.commands.reporting import report_on

if TYPE_CHECKING:
    from twoway.spec.point import Case


def share(args: argparse.Namespace) -> int:
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
    case = _one_case(args.experiment)
    for machine, plan in shares(case, places).items():
        folder = args.to / machine
        folder.mkdir(parents=True, exist_ok=True)
        plan.write(folder / PLAN)
    # All clocks are compared with that of the last node's host: a router, near most of the others.
    reference = next(m for m, place in places.items() if case.graph.nodes[-1] in place.nodes)
    print(json.dumps({"experiment": case.id, "reference": reference, "ready_by_ns": READY_NS}))
    return 0


def node(args: argparse.Namespace) -> int:
    """Carry out this host's share of a plan."""
    from twoway.lab.multihost_run import carry_out

    carry_out(args.folder)
    return 0


def clock(args: argparse.Namespace) -> int:
    """Answer clock probes, or print how far other hosts' clocks are ahead."""
    from twoway.lab.clock_probe import answer, ask

    if args.answer:
        answer(args.answer, args.port, args.seconds)
        return 0
    machines = dict(word.split("=", 1) for word in args.machines)
    found = {name: ask(address, args.port).document() for name, address in machines.items()}
    print(json.dumps({"now_ns": time.time_ns(), "machines": found}))
    return 0


def merge(args: argparse.Namespace) -> int:
    """Merge the folders of all hosts into one run and report on it."""
    from twoway.contract.manifest import MACHINE
    from twoway.lab.multihost_run import Multihost
    from twoway.runs.run import run_case

    parts = {path.parent.name: path.parent for path in sorted(args.parts.glob(f"*/{MACHINE}"))}
    multihost = Multihost(parts, json.loads((args.parts / "times.json").read_text()))
    folder = run_case(_one_case(args.experiment), multihost, args.results, took_s=multihost.took_s)
    return report_on(folder, as_json=args.json)


def _one_case(experiment: str) -> "Case":
    """Load the only point of an experiment.

    Raises: UsageError if the experiment has several.
    """
    from twoway.errors import UsageError
    from twoway.runs.cases import load_case
    from twoway.spec.point import case_names

    names = case_names(experiment)
    if len(names) > 1:
        raise UsageError(f"{experiment}: has {len(names)} points; name one", f"as {names[0]}")
    return load_case(names[0])
