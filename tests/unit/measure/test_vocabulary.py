"""The names of all quantities, of runs and of captures, and estimators that agree."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.concepts import concepts
from capture_analysis.definition import Definition
from capture_analysis.two_captures.pair import PairOfCaptures
from capture_analysis.two_captures.pair_document import document
from two_vantage import PROPAGATION_NS, TwoWayPath

from twoway.measure.queues import Passage, occupancy
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


# The estimators of a run and of two captures agree on the same traffic.

PATH = TwoWayPath()


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return the results of two complete captures with one clock."""
    return document(
        PairOfCaptures(("a", "b"), lambda: PATH.capture("a"), lambda: PATH.capture("b")).measure()
    )


@pytest.mark.parametrize("way", [0, 1])
def test_the_queue_is_that_of_a_run(plain: dict[str, Any], way: int) -> None:
    """Peak and mean of a streamed queue equal those from whole arrays (queues.occupancy)."""
    rows = way == PATH.way
    first, second = (PATH.a_ns, PATH.b_ns) if way == 0 else (PATH.b_ns, PATH.a_ns)
    order = np.argsort(first[rows], kind="stable")
    entering = PATH.packets.where(np.flatnonzero(rows)[order]).widen()
    entering.time_ns[:] = first[rows][order]
    passed: Any = Passage(entering, second[rows][order] - PROPAGATION_NS, entering.flow >= 0)
    whole = occupancy(passed)
    found = plain["ways"][("a_to_b", "b_to_a")[way]]
    start, stop = int(whole.time_ns[0]), int(whole.time_ns[-1])
    assert found["queue_peak"]["value"] == whole.packets.max()
    assert found["queue_mean"]["value"] == pytest.approx(whole.mean(start, stop), rel=1e-9)
