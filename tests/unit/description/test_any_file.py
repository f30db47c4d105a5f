"""Any file is valid and has a plan, or is refused with a sentence, at once."""

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
from support.mutations import places
from support.running import CLAIMED, SMALL, problems_of

from twoway.description.parsing import show_text
from twoway.description.point import point_names
from twoway.description.reading import load_profile
from twoway.errors import SpecError
from twoway.paths import PROFILES
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

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


def harmed(data: st.DataObject, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with one to three parts replaced, removed or added."""
    changed: Any = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([*places(changed)] or [("schema",)]))
        parent = changed
        for key in path[:-1]:
            parent = parent[key]
        how = data.draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if how == "remove":
            del parent[path[-1]]
        elif how == "add" and isinstance(parent, dict):
            parent[data.draw(SCALARS.filter(lambda key: key == key))] = data.draw(ANYTHING)  # noqa: PLR0124
        else:
            parent[path[-1]] = data.draw(ANYTHING)
    return changed  # type: ignore[no-any-return]


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


@pytest.mark.slow
@SETTINGS
@given(data=st.data())
def test_any_experiment(data: st.DataObject, tmp_path: Path) -> None:
    """An experiment with any parts replaced has a plan, or is refused in printable words."""
    path = tmp_path / "any.yml"
    path.write_text(yaml.safe_dump(harmed(data, FULL), allow_unicode=True), encoding="utf-8")
    check(path)


@pytest.mark.slow
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


@pytest.mark.slow
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


# Endless, huge, deep or disguised files.


BASE = yaml.safe_dump(SMALL, sort_keys=False)
FLOW = SMALL["flows"][0]
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 12))
MERGES = "m0: &m0 {a: 1}\n" + "".join(
    f"m{n}: &m{n}\n  <<: [{f'*m{n - 1}, ' * 9}]\n" for n in range(1, 12)
)
FIELDS = ["left.window_packets", "right.window_packets", "left.start_s", "right.start_s"]


def _refused(folder: Path, text: str) -> str:
    path = folder / "hostile.yml"
    path.write_text(text, encoding="utf-8")
    problems = problems_of(path)
    assert problems
    assert all(len(problem) < 500 for problem in problems)
    return "\n".join(problems)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BOMB, "stands for more than 20000 values"),
        (MERGES, "stands for more than 20000 values"),
        ("a: &a [*a]", "an alias of a node that contains it"),
        (f"{BASE}x: {'[' * 3000}", "nested too deep"),
        (f"{BASE}x: {'{a: ' * 3000}", "nested too deep"),
        (f"{BASE}x: {'[' * 60_000}{']' * 60_000}", "nested too deep"),
        (BASE.replace("1.5", "9" * 5001), "Exceeds the limit (4300 digits)"),
        (BASE + "x: " + "y" * (1 << 17), "more than 128 KiB"),
        (BASE + '"\\e[2J": 1\n', "a control character"),
        (BASE.replace("For tests.", '"\\a"'), "a control character"),
        (BASE + "k" * 1000 + ": 1\n", "...: unknown field"),
        (BASE.replace("1.5", "v" * 1000), "got 'vvvv"),
        (BASE.replace("schema: 1", "schema: yes"), "schema: must be 1, got 'yes'"),
        (BASE.replace("1.5", "true"), "duration_s: must be a number, got True"),
        (BASE.replace("1.5", "'1.5'"), "duration_s: must be a number, got '1.5'"),
        (BASE.replace("1.5", "1:30"), "duration_s: must be a valid number"),
        (BASE.replace("For tests.", "!!binary aGVsbG8="), "could not determine a constructor"),
        (f"{BASE}<<: {{a: 1}}\n<<: {{b: 1}}\n", '"<<" is given twice'),
        ("", "must be a mapping of fields, got NoneType"),
    ],
)
def test_unneeded_text_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    """Hostile YAML is refused with its own sentence, which is cut and printable."""
    assert sentence in _refused(tmp_path, text)


def _set(field: str, value: Any) -> dict[str, Any]:
    return {"matrix": {"a": {"set": [field], "to": [value]}}}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"flows": [{**FLOW, "count": 0}]}, "must be 1 to 4000 connections together, got 0"),
        (
            {"flows": [{**FLOW, "name": f"f{n}", "count": 1000} for n in range(9)]},
            "must be 1 to 4000 connections together, got 9000",
        ),
        ({"flows": [FLOW] * 1001}, "at most 1000 items"),
        (
            {
                "matrix": {
                    f"a{n}": {"set": [f"flows.{field}"], "to": [*range(1, 101)]}
                    for n, field in enumerate(FIELDS)
                }
            },
            "matrix: 100000000 points, at most 10000 can be run",
        ),
        (_set("schema.x.y", 1), "schema.x.y: leads to no field"),
        (_set("title.x.y", 1), "title.x.y: leads to no field"),
        (_set("profile.forward.queue_packets", 2**33), "must be less than or equal to 10000000"),
        (_set("profile.forward.cell_bytes", 10**12), "must be less than or equal to 65535"),
        (_set("profile.forward.rate_mbit", 1e300), "must be less than or equal to 100000"),
        (_set("observe.tcp_info_ms", 1e30), "must be less than or equal to 3600000"),
        ({"topology": {"name": "dumbbell", "parameters": {"pairs": 10**30}}}, "less than or equal"),
        ({"topology": {"name": "dumbbell", "parameters": {"x": 1}}}, "TypeError"),
        *(
            ({"flows": [{**FLOW, "congestion": "reno", "window_packets": None, **kind}]}, sentence)
            for kind, sentence in (
                ({"film": {"mean_mbit": 1, "frames_per_s": 1e12}}, "less than or equal to 100000"),
                ({"film": {"mean_mbit": 1, "frames_per_s": 90_000}}, "at most 15000 are sent"),
                ({"transfers": {"per_s": 1e12, "mean_bytes": 1}}, "less than or equal to 1000000"),
                ({"rate_mbit": 1e14}, "less than or equal to 100000"),
            )
        ),
    ],
)
def test_excessive_numbers_are_refused(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    """A number or a count beyond any guest's limits is refused before a guest starts."""
    document = copy.deepcopy(SMALL) | change
    assert sentence in _refused(tmp_path, yaml.safe_dump(document))


def test_cells_need_a_link_of_cells(tmp_path: Path) -> None:
    """A header of cells is refused on a link without cells."""
    change = {"set": [f"profile.forward.{f}" for f in ("cell_bytes", "cell_overhead_bytes")]}
    document = SMALL | {"matrix": {"a": {**change, "to": [[0, 5]]}}}
    problem = _refused(tmp_path, yaml.safe_dump(document))
    assert "cell_overhead_bytes: a link without cell_bytes has none, got 5" in problem


@pytest.mark.slow
def test_many_problems_are_counted(tmp_path: Path) -> None:
    """A file with hundreds of problems has fifty printed and the others counted."""
    text = BASE + "".join(f"x{number}: 1\n" for number in range(60))
    assert "10 problems more" in _refused(tmp_path, text)


def test_shown_text_is_cut_and_printable() -> None:
    """A quoted text is cut to its bound, and its control characters are escaped."""
    assert show_text("a" * 81) == "a" * 80 + "..."
    assert show_text("\x1b[2J\n") == "\\u001b[2J\n"
