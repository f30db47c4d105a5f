"""The subcommand that prints the formats of files."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from twoway.commands.options import PUBLISHED, SCHEMAS, option

if TYPE_CHECKING:
    from pydantic import BaseModel

# Parts of a schema that have fields, or further parts, by name.
_MAPS = {"properties", "$defs"}
HELP = "JSON Schema of a file format, every field described; the site of `make docs` has pages"
OPTIONS = (option("kind", choices=SCHEMAS),)


def run(args: argparse.Namespace) -> int:
    """Print the JSON Schema of a kind of file: every field described."""
    print(_text(_schema(args.kind)))
    return 0


def _text(schema: Any, key: str = "", indent: str = "") -> str:
    """Format a schema as JSON: each field is one line, and so is the rest of each part."""
    if not isinstance(schema, dict) or not (key in _MAPS or _MAPS & {*schema}):
        return json.dumps(schema)
    inner = f"{indent} "
    rest = {k: v for k, v in schema.items() if key not in _MAPS and k not in _MAPS}
    rows = [json.dumps(rest)[1:-1]] if rest else []
    rows += [f"{json.dumps(k)}: {_text(v, k, inner)}" for k, v in schema.items() if k not in rest]
    return "\n".join(["{", ",\n".join(inner + row for row in rows), f"{indent}}}"])


def _schema(kind: str) -> Any:
    from twoway.contract.metrics import Metrics
    from twoway.contract.plan import Plan
    from twoway.contract.suite import Suite
    from twoway.contract.verdicts import Verdicts
    from twoway.description.experiment import Experiment, Profile
    from twoway.manifest import Manifest
    from twoway.sweeps.evaluate import Evaluation

    models: tuple[type[BaseModel], ...] = (
        Experiment,
        Profile,
        Suite,
        Plan,
        Manifest,
        Metrics,
        Verdicts,
        Evaluation,
    )
    model = dict(zip(SCHEMAS, models, strict=True))[kind]
    if kind in PUBLISHED:
        schema = model.model_json_schema()
        if model is Suite:
            named = Experiment.model_json_schema()["properties"]
            fields = {"enum": [field for field in named if field != "base"]}
            schema["properties"]["base"]["propertyNames"] = fields
            schema["$defs"]["Row"]["properties"]["experiment"]["propertyNames"] = fields
        return _without_steps(schema)
    # In the form in which documents are written, with the commands of a plan's steps.
    return model.model_json_schema(mode="serialization")


def _without_steps(schema: Any) -> Any:
    """Remove `multipleOf` of fractions: to an editor, 20.1 in binary is no multiple of 1e-6."""
    if isinstance(schema, list):
        return [_without_steps(each) for each in schema]
    if isinstance(schema, dict):
        steps = isinstance(step := schema.get("multipleOf"), float) and step < 1
        return {
            key: _without_steps(value)
            for key, value in schema.items()
            if not (steps and key == "multipleOf")
        }
    return schema
