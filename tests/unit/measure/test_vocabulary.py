"""The names of all quantities, of runs and of captures."""

import json
import subprocess
import sys
from pathlib import Path

from capture_analysis.concepts import concepts
from capture_analysis.definition import Definition

from twoway.measure.registry import all_estimators


def everywhere() -> list[Definition]:
    """Return the definitions of all estimators, with repetitions."""
    of_captures = [each for concept in concepts() for each in concept.definitions]
    return of_captures + [each for made in all_estimators() for each in made.definitions]


def test_a_name_is_defined_once() -> None:
    """All estimators of a metric use one definition of its name."""
    found: dict[str, Definition] = {}
    for each in everywhere():
        assert found.setdefault(each.name, each) is each, each.name


def test_definitions_are_whole() -> None:
    """Each definition has a unit, a meaning of one line, and a range that is not empty."""
    for each in everywhere():
        assert each.unit
        assert each.meaning
        assert "\n" not in each.meaning
        assert each.least < each.most


def test_the_lists_are_complete() -> None:
    """`twoway metrics` and `capture-analysis metrics --list` name every quantity, with its unit."""
    folder = Path(sys.executable).parent
    said = subprocess.check_output([folder / "capture-analysis", "metrics", "--list"], text=True)
    listed = {line.split()[0]: line.split()[1] for line in said.splitlines() if line[:2] == "  "}
    assert listed == {e.name: e.unit for concept in concepts() for e in concept.definitions}
    rows = json.loads(subprocess.check_output([folder / "twoway", "metrics", "--json"], text=True))
    assert {row["name"].partition(".")[0]: row["unit"] for row in rows} == {
        each.name: each.unit for made in all_estimators() for each in made.definitions
    }
