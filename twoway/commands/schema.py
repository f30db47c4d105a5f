"""The subcommand that prints the formats of files."""

import argparse
import json
from typing import TYPE_CHECKING

from twoway.commands.options import SCHEMAS

if TYPE_CHECKING:
    from pydantic import BaseModel

HELP = "JSON Schema of a file format, every field described; the site of `make docs` has pages"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `schema` to its parser."""
    parser.add_argument("kind", choices=SCHEMAS)


def run(args: argparse.Namespace) -> int:
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
