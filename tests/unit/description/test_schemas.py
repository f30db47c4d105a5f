"""The schemas for editors equal the code's; every file names its schema and meets it."""

import json
from os.path import relpath
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from support.running import ROOT
from support.warm_command import twoway

from twoway.commands.options import PUBLISHED
from twoway.description.reading import read_document
from twoway.paths import PROFILES, SCHEMAS, SUITES, experiment_files

FILES = {
    "experiment": [*experiment_files().values()],
    "profile": sorted(PROFILES.glob("*.yml")),
    "suite": sorted(SUITES.glob("*.yml")),
}
_LINE = "# yaml-language-server: $schema="


@pytest.mark.parametrize("kind", PUBLISHED)
def test_the_schema_is_that_of_the_code(kind: str) -> None:
    """The published schema is the output of `twoway schema`; `make schemas` writes it."""
    assert (SCHEMAS / f"{kind}.json").read_text("utf-8") == twoway("schema", kind).stdout


def test_a_field_is_a_line() -> None:
    """A published schema has a line for each field, and is the JSON of the model's schema."""
    text = twoway("schema", "profile").stdout
    schema = json.loads(text)
    parts = [schema, *schema["$defs"].values()]
    fields = [name for part in parts for name in part.get("properties", {})]
    lines = [line.strip() for line in text.splitlines()]
    assert len(fields) > 50
    for name in {*fields}:
        found = [line for line in lines if line.startswith(f'"{name}": {{"')]
        assert len(found) >= fields.count(name), name
        assert all(isinstance(json.loads(f"{{{line.rstrip(',')}}}")[name], dict) for line in found)


@pytest.mark.parametrize("kind", PUBLISHED)
def test_every_file_names_its_schema_and_keeps_it(kind: str) -> None:
    """The first line of each file leads to the schema of its kind, which the file meets."""
    schema = SCHEMAS / f"{kind}.json"
    validator = jsonschema.Draft202012Validator(json.loads(schema.read_text("utf-8")))
    for path in FILES[kind]:
        text = path.read_text("utf-8")
        assert text.partition("\n")[0] == f"{_LINE}{relpath(schema, path.parent)}", path
        problems = [error.message for error in validator.iter_errors(read_document(path))]
        assert problems == [], path.relative_to(ROOT)


def test_a_wrong_field_is_seen() -> None:
    """The schema of experiments refuses an unknown field, and text where a number belongs."""
    validator = jsonschema.Draft202012Validator(json.loads(twoway("schema", "experiment").stdout))
    fields = read_document(FILES["experiment"][0])
    wrong = fields | {"durations": 1, "duration_s": "long"}
    messages = sorted(error.message for error in validator.iter_errors(wrong))
    assert messages == [
        "'long' is not of type 'number'",
        "Additional properties are not allowed ('durations' was unexpected)",
    ]


def test_new_files_name_their_schemas(tmp_path: Path) -> None:
    """Both files of `twoway new` name a schema that exists, from any folder."""
    assert twoway("new", "mine.yml", cwd=tmp_path).returncode == 0
    for name, kind in (("mine.yml", "experiment"), ("mine-link.yml", "profile")):
        line = (tmp_path / name).read_text("utf-8").partition("\n")[0]
        assert line == f"{_LINE}{(SCHEMAS / kind).as_uri()}.json"
