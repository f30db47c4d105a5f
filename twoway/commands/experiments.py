"""The subcommands about experiments as files: vet, list, metrics, plan, schema."""

import argparse
import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from twoway.commands.options import SCHEMAS, all_ids, complain
from twoway.errors import TwowayError
from twoway.messages import say
from twoway.paths import experiment_files

if TYPE_CHECKING:
    from pydantic import BaseModel

    from twoway.contract.plan import Daemon, Step

# In the order in which the guest carries them out.
_PARTS_OF_A_PLAN = (
    *("setup", "recorders", "captures", "sinks", "sources"),
    *("at_start", "timed_sources", "user_programs", "teardown"),
)


def vet(args: argparse.Namespace) -> int:
    """Check experiments without running them."""
    from twoway.runs.cases import load_case, reference_problems
    from twoway.spec.point import case_names

    # With their hints. A set in order: a problem of every point is printed once.
    problems: dict[tuple[str, str], None] = {}
    for name in args.experiments or all_ids():
        try:
            for case in case_names(name):
                found = reference_problems(load_case(case))
                problems.update(dict.fromkeys((problem, "") for problem in found))
        except TwowayError as error:
            problems[str(error), error.hint] = None
    for problem, hint in problems:
        complain(problem, hint)
    if problems:
        return 2
    count = len(args.experiments or all_ids())
    say(f"{count} experiment{'s are' if count > 1 else ' is'} sound")
    return 0


def list_experiments(args: argparse.Namespace) -> int:
    """Print all experiments."""
    from twoway.spec.reading import load_experiment

    rows = []
    for name, path in experiment_files().items():
        experiment = load_experiment(path)
        rows.append(
            {
                "id": name,
                "folder": path.parent.name,
                "title": experiment.title,
                "duration_s": experiment.duration_s,
                "source": experiment.source.where if experiment.source else None,
            }
        )
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for folder, those in groupby(rows, key=itemgetter("folder")):
        print(f"{folder}/")
        for row in those:
            print(f"  {row['id']:<28} {row['title']}")
    return 0


def metrics(args: argparse.Namespace) -> int:
    """Print the name, unit, meaning and source of every metric of a run."""
    from twoway.measure.metric import Scope
    from twoway.measure.registry import of_scope

    places = {scope: f".{scope.name}" for scope in Scope} | {Scope.RUN: ""}
    rows = [
        {
            "name": f"{each.name}{places[scope]}",
            "unit": each.unit,
            "meaning": each.meaning,
            "source": each.source,
        }
        for scope in Scope
        for estimator in of_scope(scope)
        for each in estimator.definitions
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        source = f" ({row['source']})" if row["source"] else ""
        print(f"{row['name']:<36} {row['unit']:<9} {row['meaning']}{source}")
    return 0


def plan(args: argparse.Namespace) -> int:
    """Print the commands of a run's plan, in order, without running any."""
    from twoway.plan.plan import build_plan
    from twoway.runs.cases import load_case

    document = build_plan(load_case(args.experiment), in_kernel=True)
    if args.json:
        print(document.model_dump_json(indent=1))
        return 0
    for part in _PARTS_OF_A_PLAN:
        for step in getattr(document, part):
            _print_step(step)
    return 0


def _print_step(step: "Step | Daemon") -> None:
    where = f"[{step.node or 'guest'}]"
    if step.kind == "set_sysctls":
        for name, value in step.sysctls.items():
            print(f"{where} sysctl -w {name}='{value}'")
        return
    if step.kind == "set_offloads":
        print(where, "ethtool -K", step.interface, *(f"{name} off" for name in step.off))
        return
    for written in getattr(step, "lines", ()):
        print(f"[{written.node or 'guest'}] echo '{written.text}' > /dev/twoway_testbed")
    if step.run:
        print(where, " ".join(step.run))
    for line in getattr(step, "stdin", ()):
        print(where, "   ", line)


def schema(args: argparse.Namespace) -> int:
    """Print the JSON Schema of a kind of file: every field described."""
    from twoway.contract.manifest import Manifest
    from twoway.contract.metrics import Metrics
    from twoway.contract.plan import Plan
    from twoway.contract.verdicts import Verdicts
    from twoway.spec.experiment import Experiment, Profile

    models: tuple[type[BaseModel], ...] = (Experiment, Profile, Plan, Manifest, Metrics, Verdicts)
    model = dict(zip(SCHEMAS, models, strict=True))[args.kind]
    # As documents are written: with the commands of a plan's steps.
    print(json.dumps(model.model_json_schema(mode="serialization"), indent=1))
    return 0
