"""Endless, huge, deep or disguised files end with a sentence, at once."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, problems_of

from twoway.description.parsing import show_text

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
    problems = problems_of(str(path))
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
    """Of hundreds of problems in a file, fifty are printed and the others counted."""
    text = BASE + "".join(f"x{number}: 1\n" for number in range(60))
    assert "10 problems more" in _refused(tmp_path, text)


def test_shown_text_is_cut_and_printable() -> None:
    """A quoted text is cut to its bound, and its control characters are escaped."""
    assert show_text("a" * 81) == "a" * 80 + "..."
    assert show_text("\x1b[2J\n") == "\\u001b[2J\n"
