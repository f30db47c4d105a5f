"""The guides with questions of Linux engineers have the numbers that their files give."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from capture_analysis.pages.page_template import number
from support.guides import carry_out_lines, copy_listings
from support.running import ROOT, carry_out_points
from support.runs import carry_out
from support.today import DAY, DAYS
from support.warm_command import twoway

from twoway.contract.metrics import Metrics
from twoway.description.point import point_names
from twoway.description.reading import merge_patch
from twoway.report.report import analyse_run

pytestmark = pytest.mark.usefixtures("guest")

GUIDE = "linux-questions.md"


NAMES = [
    "sysctl",
    "qdisc",
    "access",
    "classes",
    "option",
    "black_hole",
    "cellular",
    "handover",
    "commands",
]


@pytest.mark.parametrize("name", NAMES)
def test_each_number_is_of_a_run(tmp_path: Path, name: str) -> None:
    """Each file of the guide runs as written, and its goodputs are those in the text below it."""
    copy_listings(GUIDE, tmp_path, f"{name}.yml")
    carry_out_points(tmp_path / f"{name}.yml", tmp_path / "r")
    done = twoway("run", f"{name}.yml", "--results", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = re.findall(rf"^{name}@\S+ +down +([\d.]+)", done.stdout, re.MULTILINE)
    assert len(measured) > 1
    text = (ROOT / "docs/guides" / GUIDE).read_text("utf-8").partition(f"`{name}.yml`")[2]
    below = text.partition("```yaml")[2].partition("```")[2].partition("\n## ")[0]
    assert [each for each in measured if each not in below] == []


PUBLIC = "public-questions.md"
TEXT = (ROOT / "docs/guides" / PUBLIC).read_text("utf-8")
# What the page says now, by number, and the fields of those that it asks itself.
NOW = dict(re.findall(r"^\| (\d+) \|.* \| ([^|]+) \|$", TEXT, re.MULTILINE))
FIELDS: dict[Any, Any] = yaml.safe_load(TEXT.partition("```yaml\n")[2].partition("```")[0])


def numbers_of(now: str) -> list[str]:
    """List the numbers of a cell, without those of names and addresses."""
    return re.findall(r"\d+(?:\.\d+)?", re.sub(r"`[^`]*`|\([^)]*\)", "", now))


def test_other_numbers_are_the_guides() -> None:
    """Each of twenty questions has an answer, from its own fields or from the other guide."""
    assert [*map(int, NOW)] == [*range(1, 21)]
    guide = (ROOT / "docs/guides" / GUIDE).read_text("utf-8")
    for name, now in NOW.items():
        assert numbers_of(now)
        if int(name) not in FIELDS:
            assert all(each in guide for each in numbers_of(now))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (k % DAYS != DAY))
        for k, name in enumerate([*FIELDS][1:])
    ],
)
def test_each_public_question_has_its_answer(tmp_path: Path, name: int) -> None:
    """A question's numbers are metrics of its sound runs, or what their programs print."""
    file = tmp_path / "q.yml"
    file.write_text(yaml.safe_dump(merge_patch(FIELDS["base"], FIELDS[name])))
    carry_out_lines(PUBLIC, "python3", tmp_path)
    said: list[str] = []
    for point in point_names(str(file)):
        run = carry_out(point, tmp_path / "results")
        analyse_run(run, page=False)
        found = Metrics.read(run / "metrics.json")
        assert found.sound
        said += [number(each.value) for each in found.metrics.values() if each.value is not None]
        said += [each.read_text() for each in run.glob("programs/*.out")]
    missing = [each for each in numbers_of(NOW[str(name)]) if each not in "\n".join(said)]
    assert missing == []
