"""Any file is valid and has a plan, or is refused with a sentence; nothing else happens."""

import contextlib
import copy
import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import CLAIMED, SMALL

from twoway.description.point import point_names
from twoway.description.reading import load_profile
from twoway.errors import SpecError
from twoway.paths import PROFILES
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

pytestmark = pytest.mark.slow
# EXAMPLES=10000 searches for an hour; up to 200, as LAYER=long has, are the same every time.
EXAMPLES = int(os.environ.get("EXAMPLES", "50"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES <= 200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# An experiment with every feature that can be wrong.
FULL: dict[str, Any] = {
    **SMALL,
    "source": {"paper": "kalampoukas", "where": "here"},
    "flows": [
        *SMALL["flows"],
        {
            "name": "film",
            "from": "h1",
            "to": "h2",
            "congestion": "reno",
            "film": {"mean_mbit": 1, "frames_per_s": 25},
        },
        {
            "name": "visits",
            "from": "h2",
            "to": "h1",
            "congestion": "cubic",
            "transfers": {"per_s": 10, "mean_bytes": 1000},
        },
    ],
    "modules": {"tcp_fixed": {}},
    "observe": {"tcp_info_ms": 10},
    "matrix": {"window": {"set": ["flows.left.window_packets"], "to": [4, 6]}},
    "figures": [{"y": "goodput", "x": "rtt_p95", "for_each": "window"}],
    "claims": [CLAIMED],
    "findings": [],
    "unclaimed": [{"at": {"window": 6}, "because": "no reason"}],
}

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2**31, 2**33, 2**63, 2**64, 10**30, 10**400]),
    st.floats(),
    st.sampled_from([1e-300, 1e300, 5e-324, 0.001]),
    st.text(max_size=40),
    st.sampled_from(
        ["theory", "h1", "left", "../..", "a" * 300, "flows.left.count", "profile.forward"]
    ),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=3)
    ),
    max_leaves=8,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a document."""
    found = [path] if path else []
    if isinstance(document, list):
        document = dict(enumerate(document))
    for key, value in document.items() if isinstance(document, dict) else ():
        found += places(value, (*path, key))
    return found


def harmed(data: st.DataObject, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with one to three parts replaced, removed or added."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document) or [("schema",)]))
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        how = data.draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if how == "remove":
            del parent[path[-1]]
        elif how == "add" and isinstance(parent, dict):
            parent[data.draw(SCALARS.filter(lambda key: key == key))] = data.draw(ANYTHING)  # noqa: PLR0124
        else:
            parent[path[-1]] = data.draw(ANYTHING)
    return document


def check(path: Path) -> None:
    """Plan an experiment's first points, or return all its problems."""
    try:
        for name in islice(point_names(str(path)), 2):
            build_plan(load_point(name))
    except SpecError as error:
        said = error.problems
    else:
        return
    assert said
    for problem in said:
        assert len(problem) < 1500, problem[:200]
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", problem), repr(problem)


@SETTINGS
@given(data=st.data())
def test_any_experiment(data: st.DataObject, tmp_path: Path) -> None:
    """An experiment with any parts replaced has a plan, or is refused in printable words."""
    path = tmp_path / "any.yml"
    path.write_text(yaml.safe_dump(harmed(data, FULL), allow_unicode=True), encoding="utf-8")
    check(path)


@SETTINGS
@given(data=st.data())
def test_any_text(data: st.DataObject, tmp_path: Path) -> None:
    """An experiment's text with any bytes removed or added has a plan, or is refused in words."""
    text = yaml.safe_dump(FULL, sort_keys=False).encode()
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(at + 40, len(text))))
    put = data.draw(
        st.binary(max_size=8)
        | st.sampled_from([b"&a ", b"*a", b"<<: ", b"!!set ", b"? ", b"- ", b"{", b"[" * 500])
    )
    path = tmp_path / "any.yml"
    path.write_bytes(text[:at] + put + text[until:])
    check(path)


@SETTINGS
@given(data=st.data())
def test_any_profile(data: st.DataObject, tmp_path: Path) -> None:
    """A link profile with any parts replaced is read, or refused in printable words."""
    known = data.draw(st.sampled_from(sorted(PROFILES.glob("*.yml"))))
    path = tmp_path / "any.yml"
    document = yaml.safe_load(known.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(harmed(data, document), allow_unicode=True), encoding="utf-8")
    with contextlib.suppress(SpecError):
        load_profile(path)
