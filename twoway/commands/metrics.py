"""The subcommand that lists the metrics of a run."""

import argparse
import json

from twoway.commands.options import JSON

HELP = "every metric that an experiment may name: unit, meaning, source"
OPTIONS = (JSON,)


def run(args: argparse.Namespace) -> int:
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
