"""The subcommand that lists experiments and the rows of suites."""

import argparse
import json
from itertools import groupby
from operator import itemgetter

from twoway.commands.options import JSON
from twoway.paths import experiment_files

HELP = "all experiments, and the rows of all suites"
OPTIONS = (JSON,)


def run(args: argparse.Namespace) -> int:
    """Print all experiments and rows of suites."""
    from twoway.description.point import find_source
    from twoway.description.reading import load_experiment
    from twoway.description.suite import row_names, suite_names

    folders = {name: path.parent.name for name, path in experiment_files().items()}
    folders |= {row: f"suites/{suite}" for suite in suite_names() for row in row_names(suite)}
    rows = []
    for name, folder in folders.items():
        experiment = load_experiment(find_source(name))
        rows.append(
            {
                "id": name,
                "folder": folder,
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
