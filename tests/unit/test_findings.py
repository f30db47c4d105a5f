"""docs/findings.md and the pages for classes print no figure that docs/results does not have."""

import re

import pytest
from kept_results import kept_rows
from running import ROOT

PAGES = [ROOT / "docs/findings.md", *sorted((ROOT / "docs/classes").glob("*.md"))]
FINDINGS = "".join(page.read_text(encoding="utf-8") for page in PAGES)
# A measured figure: its text, and as the link's title the point and the metric that it is of.
_FIGURE = re.compile(
    r'\[([^\]]+)\]\((?:\.\./)?results/numbers/[a-z0-9-]+\.csv "(\S+) (\S+)"\)', re.DOTALL
)
# What is not measured: code, links, and in italics what a paper prints.
_ELSE = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\*[^*]+\*")
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.(\d+))?")


@pytest.mark.parametrize("figure", _FIGURE.findall(FINDINGS), ids=" ".join)
def test_a_figure_is_the_last_full_runs(figure: tuple[str, str, str]) -> None:
    """A measured figure is the metric of the point that its link names, as rounded in the text."""
    text, point, metric = figure
    number = _NUMBER.search(text)
    assert number
    measured = float(kept_rows(point)[metric]) * (100 if "%" in text else 1)
    digits = len(number[1] or "")
    written = float(number[0].replace(",", ""))
    assert written == pytest.approx(measured, abs=0.5000001 * 10**-digits)


def test_no_figure_is_without_its_source() -> None:
    """A share or a decimal that is neither a paper's, in italics, nor a setting has its link."""
    bare = _ELSE.sub("", FINDINGS.replace("**", ""))
    assert re.findall(r"\d[\d.,]*\s*%|\d+\.\d+", bare) == []
    assert len(_FIGURE.findall(FINDINGS)) > 50
