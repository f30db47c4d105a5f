"""The pages of findings and of classes have only figures from docs/results."""

import re

import pytest
from finding_bars import FINDINGS
from kept_results import kept_rows
from running import ROOT

PAGES = sorted([*(ROOT / "docs").glob("findings*.md"), *(ROOT / "docs/classes").glob("*.md")])
TEXTS = "".join(page.read_text(encoding="utf-8") for page in PAGES)
# A measured figure is a link: its text is the figure, its title the point and the metric.
_FIGURE = re.compile(
    r'\[([^\]]+)\]\((?:\.\./)?results/numbers/[a-z0-9-]+\.csv "(\S+) (\S+)"\)', re.DOTALL
)
# Text without measurements: pictures, code and links; a paper's numbers are in italics.
_ELSE = re.compile(r"<[^>]*>|`[^`]*`|\[[^\]]*\]\([^)]*\)|\*[^*]+\*")
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.(\d+))?")


@pytest.mark.parametrize("figure", _FIGURE.findall(TEXTS), ids=" ".join)
def test_a_figure_is_the_last_full_runs(figure: tuple[str, str, str]) -> None:
    """A measured figure is the metric at the point that its link names, rounded as in the text."""
    text, point, metric = figure
    number = _NUMBER.search(text)
    assert number
    measured = float(kept_rows(point)[metric]) * (100 if "%" in text else 1)
    digits = len(number[1] or "")
    written = float(number[0].replace(",", ""))
    assert written == pytest.approx(measured, abs=0.5000001 * 10**-digits)


def test_no_figure_is_without_its_source() -> None:
    """A share or decimal has a link, unless it is in italics, as a paper's, or a setting."""
    bare = _ELSE.sub("", TEXTS.replace("**", ""))
    assert re.findall(r"\d[\d.,]*\s*%|\d+\.\d+", bare) == []
    assert len(_FIGURE.findall(TEXTS)) > 50


def test_ten_findings_have_a_picture_and_three_sentences() -> None:
    """Each of the ten findings has a headline, a picture, three sentences and a link to more."""
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    findings = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert len(findings) == len(FINDINGS) == 10
    for name, finding in zip(FINDINGS, findings, strict=True):
        _, picture, words, more = finding.strip().split("\n\n")
        assert f'src="assets/finding-{name}-light.svg"' in picture
        assert [line[-1] for line in words.splitlines()] == ["."] * 3
        assert more.startswith("More: [")
