"""The subcommand that lists experiments."""

import argparse
import json
from itertools import groupby
from operator import itemgetter

from twoway.commands.options import JSON, add_options
from twoway.paths import experiment_files

HELP = "all experiments"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list` to its parser."""
    add_options(parser, JSON)


def run(args: argparse.Namespace) -> int:
    """Print all experiments."""
    from twoway.description.reading import load_experiment

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
