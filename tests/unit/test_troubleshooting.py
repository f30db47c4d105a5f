"""The errors in the troubleshooting guide are those that the command prints."""

import re
from pathlib import Path

import pytest
from support.guides import copy_listings
from support.running import ROOT
from support.warm_command import twoway

# Adjacent string literals are one text.
SOURCE = re.sub(
    r'"\s*\n\s*f?"',
    "",
    "\n".join(
        path.read_text("utf-8")
        for folder in ("twoway", "vm/guest", "capture-analysis/capture_analysis")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".c")
    ),
)
GUIDE = (ROOT / "docs/guides/troubleshooting.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("written", "mistake"),
    [
        ("duration_s", "durations_s"),
        ("my-line", "my-lines"),
        ("from: h1", "from: h9"),
        ("congestion: cubic", "congestion: cubik"),
    ],
)
def test_mistakes_of_a_file(written: str, mistake: str, tmp_path: Path) -> None:
    """Each mistake in the guide's example file gives the error that the guide prints."""
    copy_listings("own-experiment.md", tmp_path, "my-line.yml", "upload.yml")
    path = tmp_path / "upload.yml"
    path.write_text(path.read_text("utf-8").replace(written, mistake, 1), "utf-8")
    said = twoway("vet", path).stderr.replace(f"{tmp_path}/", "")
    assert any(line in GUIDE.splitlines() for line in said.splitlines() if line)


def test_names_of_nothing(tmp_path: Path) -> None:
    """A missing file and a missing run give the errors that the guide prints."""
    said = twoway("vet", tmp_path / "nofile.yml").stderr.replace(f"{tmp_path}/", "")
    assert said.splitlines()[0] in GUIDE
    said = twoway("report", "nothing", "--results", tmp_path).stderr
    assert said.partition(f" {tmp_path}")[0] in GUIDE


@pytest.mark.parametrize("error", re.findall(r"^\| `([^`]+)` \|", GUIDE, re.MULTILINE))
def test_errors_are_those_of_the_source(error: str) -> None:
    """Each error in the guide's tables is a text of the source, except for numbers and names."""
    said = re.escape(error)
    for varying in (r"\d+", r"\b(?:NAME|FILE|FIELD|VALUE)\b"):
        said = re.sub(varying, ".{1,80}?", said)
    assert re.search(said, SOURCE), f"no source says {error!r}"
