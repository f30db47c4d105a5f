"""Cards: how a number stands beside the best, and the card that the guide shows."""

import re

import pytest
from capture_analysis.pages.page_template import number
from running import ROOT

from twoway.report.card import Card, card_table, standing

KEPT = Card.read(ROOT / "docs/results/score/quick.json")
GUIDE = (ROOT / "docs/guides/score.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("value", "best", "better", "expected"),
    [
        (10, 10, "more", "near"),
        (9, 10, "more", "near"),
        (8.9, 10, "more", "between"),
        (5, 10, "more", "between"),
        (4.9, 10, "more", "poor"),
        (10, 9, "less", "near"),
        (20, 10, "less", "between"),
        (20.1, 10, "less", "poor"),
        (1, 0, "less", "poor"),
        (0, 0, "less", "near"),
    ],
)
def test_how_a_number_stands(value: float, best: float, better: str, expected: str) -> None:
    """A number is near within a tenth of the best of its row, and poor below half as good."""
    assert standing(value, best, better) == expected


def test_the_guide_shows_the_card_that_is_kept() -> None:
    """The guide's table is that of the card in docs/results/score."""
    (block,) = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    assert block.splitlines() == [line.rstrip() for line in card_table(KEPT)]


def test_the_guide_speaks_of_every_row() -> None:
    """The guide says of each row what good looks like and what it cannot tell."""
    rows = {line.row.partition("-")[2] for line in KEPT.lines}
    assert set(re.findall(r"^\| ([a-z-]+) \| .+ \| .+ \|$", GUIDE, re.MULTILINE)) - {"row"} == rows


def test_numbers_of_the_guide_are_the_cards() -> None:
    """Each number with a point or a comma in what the guide found is a cell of the card."""
    _, _, said = GUIDE.partition("## What it says")
    cells = {number(cell.value) for line in KEPT.lines for cell in line.cells.values()}
    numbers = set(re.findall(r"\d+[.,]\d+", said))
    assert len(numbers) > 8
    assert numbers <= cells
