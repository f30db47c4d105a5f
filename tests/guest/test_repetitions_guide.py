"""The guides to repetitions and to shared files work as written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.guides import copy_listings
from support.running import ROOT
from support.warm_command import twoway

pytestmark = pytest.mark.usefixtures("guest")

REPETITIONS, SHARING = (ROOT / f"docs/guides/{name}.md" for name in ("repetitions", "sharing"))


def test_the_guides_print_what_they_show(tmp_path: Path) -> None:
    """Five seeds print the guide's table and verdict; their shared file gives the same."""
    copy_listings(REPETITIONS.name, tmp_path, "my-line.yml", "again.yml")
    copy_listings(SHARING.name, tmp_path, "shared.py")
    done = twoway("run", "again.yml", "--results", "results", cwd=tmp_path)
    (shown,) = re.findall(
        r"^```text\n(.*?)```", REPETITIONS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    *table, verdict = shown.splitlines()
    assert done.stdout.splitlines() == table
    assert verdict in done.stderr.splitlines()
    page = (tmp_path / "results/again/index.html").read_text("utf-8")
    assert f'<span class="verdict fail">{verdict.removeprefix("again: ")}</span>' in page
    for line in re.findall(r"^\$ twoway (.*)$", SHARING.read_text("utf-8"), re.MULTILINE):
        verb, *words = line.split()
        done = twoway(verb, *words, cwd=tmp_path)
        assert done.returncode == (words[0] == "again.shared.html"), done.stderr
    said = subprocess.check_output([sys.executable, "shared.py"], cwd=tmp_path, text=True)
    words_of = [line.replace("again.yml", "again").split() for line in table]
    assert [line.split() for line in said.splitlines()] == words_of
