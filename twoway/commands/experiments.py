"""The subcommands about experiments as files: vet, list, metrics, plan, schema."""

import argparse
import json
from typing import Any

from twoway.commands.options import all_ids, complain
from twoway.errors import TwowayError
from twoway.paths import EXPERIMENTS
from twoway.progress import say

# In the order in which the guest carries them out.
_PARTS_OF_A_PLAN = (
    *("setup", "recorders", "captures", "sinks", "sources"),
    *("at_start", "timed_sources", "teardown"),
)


def vet(args: argparse.Namespace) -> int:
    """Check experiments without running them."""
    from twoway.spec.point import case_names, load_case

    problems: dict[str, None] = {}  # a set in order: a problem of every point is printed once
    for name in args.experiments or all_ids():
        try:
            for case in case_names(name):
                load_case(case)
        except TwowayError as error:
            problems[f"{error}\n\nhint: {error.hint}" if error.hint else str(error)] = None
    for problem in problems:
        complain(problem)
    if problems:
        return 2
    count = len(args.experiments or all_ids())
    say(f"{count} experiment{'s are' if count > 1 else ' is'} sound")
    return 0


def list_experiments(args: argparse.Namespace) -> int:
    """Print all experiments."""
    from twoway.spec.reading import load_experiment

    rows = []
    for name in all_ids():
        experiment = load_experiment(EXPERIMENTS / f"{name}.yml")
        rows.append(
            {
                "id": name,
                "title": experiment.title,
                "duration_s": experiment.duration_s,
                "source": experiment.source.where if experiment.source else None,
            }
        )
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print(f"{row['id']:<28} {row['title']}")
    return 0


def metrics(args: argparse.Namespace) -> int:
    """Print the name, unit, meaning and source of every metric of a run."""
    from twoway.measure.metric import Scope, all_estimators

    places = {scope: f".{scope.name}" for scope in Scope} | {Scope.RUN: ""}
    rows = [
        {
            "name": f"{each.name}{places[scope]}",
            "unit": each.unit,
            "meaning": each.meaning,
            "source": each.source,
        }
        for scope in Scope
        for estimator in all_estimators()
        if estimator.scope is scope
        for each in estimator.definitions
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print(f"{row['name']:<36} {row['unit']:<9} {row['meaning']}")
    return 0


def plan(args: argparse.Namespace) -> int:
    """Print every command of a run, in order, without running any."""
    from twoway.plan.plan import build_plan
    from twoway.spec.point import load_case

    document = build_plan(load_case(args.experiment))
    if args.json:
        print(json.dumps(document, indent=1))
        return 0
    for part in _PARTS_OF_A_PLAN:
        for step in document[part]:
            _print_step(step)
    return 0


def _print_step(step: dict[str, Any]) -> None:
    where = f"[{step['node'] or 'guest'}]"
    for name, value in step.get("sysctl", {}).items():
        print(f"{where} sysctl -w {name}='{value}'")
    argv = step.get("run") or step.get("check")
    if argv:
        print(where, " ".join(argv))
    for line in step.get("stdin", []):
        print(where, "   ", line)


def schema(args: argparse.Namespace) -> int:
    """Print the JSON Schema of experiments or profiles: every field described."""
    from twoway.spec.experiment import Experiment, Profile

    model = Experiment if args.kind == "experiment" else Profile
    print(json.dumps(model.model_json_schema(by_alias=True), indent=1))
    return 0
