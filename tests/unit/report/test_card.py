"""Cards: how a number stands beside the best, and the card that the guide shows."""

import re

import pytest
from capture_analysis.pages.page_template import number
from running import ROOT

from twoway.report.card import Card, card_table, standing

KEPT = {n: Card.read(ROOT / f"docs/results/score/{n}.json") for n in ("quick", "two-way")}
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


def test_the_guide_shows_the_cards_that_are_kept() -> None:
    """The guide's tables are the kept cards' own: all of quick, and the goodputs of two-way."""
    quick, goodputs = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    assert quick.splitlines() == [line.rstrip() for line in card_table(KEPT["quick"])]
    head, *lines = [line.rstrip() for line in card_table(KEPT["two-way"])]
    assert goodputs.splitlines() == [head, *(line for line in lines if "goodput.down" in line)]


def test_the_guide_speaks_of_every_row() -> None:
    """The guide says of each row what good looks like and what it cannot tell."""
    rows = {line.situation(name) for name, card in KEPT.items() for line in card.lines}
    said = set(re.findall(r"^\| ([a-z-]+) \| .+ \| .+ \|$", GUIDE, re.MULTILINE))
    assert said - {"row", "situation"} == rows


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("quick", GUIDE.partition("## What it says")[2]),
        ("two-way", GUIDE.partition("Written after looking; ")[2].partition("## A suite")[0]),
    ],
)
def test_numbers_of_the_guide_are_the_cards(suite: str, said: str) -> None:
    """Each number with a point or a comma in what the guide found is a cell of the card."""
    cells = {number(cell.value) for line in KEPT[suite].lines for cell in line.cells.values()}
    numbers = set(re.findall(r"\d+[.,]\d+", said))
    assert len(numbers) > 8
    assert numbers <= cells
