"""The guide from a question to an answer, as a reader carries it out."""

from pathlib import Path

import pytest
from support.guides import copy_listings
from support.running import ROOT, twoway

GUIDE = "answers.md"


@pytest.mark.long
@pytest.mark.usefixtures("guest")
def test_the_guide_answers_what_it_prints(tmp_path: Path) -> None:
    """The guide's file leaves the table and the sentences that the guide shows."""
    copy_listings(GUIDE, tmp_path, "share.yml")
    ran = twoway("run", tmp_path / "share.yml", "--results", tmp_path / "results")
    assert ran.returncode == 0, ran.stderr
    guide = (ROOT / "docs/guides" / GUIDE).read_text("utf-8")
    assert f"```text\n{ran.stdout}```" in guide
