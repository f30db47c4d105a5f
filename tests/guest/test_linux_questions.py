"""The guide with questions of a Linux engineer has the numbers that its files give."""

import re
from pathlib import Path

import pytest
from support.guides import copy_listings
from support.running import ROOT, carry_out_points
from support.warm_command import twoway

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
    for number in measured:
        assert number in below
