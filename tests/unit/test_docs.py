"""Documents: links that lead somewhere, decisions of one form, and terms of two lines."""

import re
import subprocess
from pathlib import Path

import pytest
from running import ROOT

DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
TRACKED = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", TRACKED)
def test_links(name: str) -> None:
    """Each relative link of a document leads to a file of the repository."""
    path = ROOT / name
    targets = _LINK.findall(path.read_text(encoding="utf-8"))
    assert [t for t in targets if not (path.parent / t).exists()] == []


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_decisions(path: Path) -> None:
    """A decision has date, status and its sections in order, and is in the index by its title."""
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^- Date: \d{4}-\d\d-\d\d", text, re.MULTILINE)
    assert "\n- Status: " in text
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections in (form := ["Context", "Measurement", "Choice"], [*form, "Consequences"])
    title = text.partition("\n")[0].removeprefix("# ")
    index = (path.parent / "README.md").read_text(encoding="utf-8")
    assert f"| [{path.stem[:4]}]({path.name}) | {title} |" in index


def test_decision_numbers() -> None:
    """Decisions are numbered from 1 without a gap."""
    assert [int(path.stem[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
