"""Cards: a number compared with the best, and the card in the guide."""

import json
import re
from pathlib import Path

import pytest
from capture_analysis.pages.page_template import number
from running import ROOT

from twoway.contract.judge import Verdict
from twoway.contract.suite import Better
from twoway.report.card import Card, card_table, printed_table, standing
from twoway.report.card_harm import harm_tables
from twoway.spec.suite import load_suite, suite_names

# The rows that the guide shows, of suites that it does not show whole.
SHOWN = {
    "two-way": "goodput.down",
    "tcpeval": "^(decrease|increase|steps|impact|basic)|buffer (0.25bdp|2bdp)",
    "rfc9743": "^(alone|itself|beside|short-and-long|tail-drop|path-change) ",
}
SCORES = ROOT / "docs/results/score"
KEPT = {name: Card.read(SCORES / f"{name}.json") for name in suite_names()}
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
def test_how_a_number_stands(value: float, best: float, better: Better, expected: str) -> None:
    """A number is near within a tenth of its row's best, and poor if worse than half as good."""
    assert standing(value, best, better) == expected


@pytest.mark.parametrize(
    ("value", "target", "worst", "expected"),
    [
        (4.72, 4.87, 0, "near"),
        (9.644, 4.87, 0, "poor"),
        (8.031, 9.73, 0, "between"),
        (12.13, 9.73, 0, "between"),
        (19.14, 9.73, 0, "poor"),
        (0.3231, 9.73, 0, "poor"),
        (0, 4.87, 0, "poor"),
        (0.5092, 1, 0.5, "poor"),
        (0.5092, 1, 0, "between"),
        (0.96, 1, 0.5, "near"),
        (0.2, 1, 0.2, "poor"),
    ],
)
def test_a_number_beside_a_target(value: float, target: float, worst: float, expected: str) -> None:
    """Distance from the fair share decides: to starve is as poor as to let the other starve."""
    assert standing(value, target, target, worst) == expected


def test_jains_index_counts_from_one_over_n() -> None:
    """Jain's index of two flows is poor near 1/2, even where a suite says that more is better."""
    assert standing(0.51, 0.99, "more", 0.5) == "poor"
    assert standing(0.51, 0.51, "more", 0.5) == "near"


def test_a_row_in_which_every_control_starves_has_no_green() -> None:
    """With a target the colour does not depend on the other columns."""
    for line in KEPT["share"].lines:
        (cell,) = line.cells.values()
        good = line.better
        assert isinstance(good, float)
        assert cell.value is not None
        assert (cell.standing == "near") == (abs(cell.value - good) <= good / 10)


def test_rows_of_shares_have_a_target() -> None:
    """A row of Jain's index or of shares names the number that is good, as the guide has it."""
    for name in suite_names():
        for row, asked in load_suite(name).said.rows.items():
            for shown in asked.shows:
                if shown.metric.startswith(("jain_index", "share_least")):
                    assert isinstance(shown.better, float), (row, shown.metric)
            fair = re.search(
                rf"^\| {row.removeprefix(name + '-')} \| half of (the payload|9.7)",
                GUIDE,
                re.MULTILINE,
            )
            if fair:
                assert any(isinstance(shown.better, float) for shown in asked.shows), row


def test_the_guide_shows_the_cards_that_are_kept() -> None:
    """The guide's tables are rows of the kept cards, with all printed numbers.

    It shows all rows of quick and bbr, and some of other suites.
    """
    expected = []
    for name, card in KEPT.items():
        head, *lines = [line.rstrip() for line in card_table(card)]
        pattern = SHOWN.get(name, "")
        expected.append([head, *(line for line in lines if re.search(pattern, line))])
        if printed := [line.rstrip() for line in printed_table(card)]:
            expected.append(printed)
    shown = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    assert sorted(block.splitlines() for block in shown) == sorted(expected)


@pytest.mark.parametrize("path", sorted(SCORES.glob("*.json")), ids=lambda path: path.stem)
def test_kept_cards_are_of_todays_suites(path: Path) -> None:
    """Each kept card has the digest, the aims and the colours that follow from its suite."""
    card, suite = Card.read(path), load_suite(Card.read(path).suite)
    assert card.suite_sha256 == suite.sha256
    for line in card.lines:
        shown = {each.metric: each.better for each in suite.said.rows[line.row].shows}
        assert line.better == shown.get(line.metric, "more")
        assert line == line.with_standing()


@pytest.mark.parametrize("path", sorted(SCORES.glob("*.json")), ids=lambda path: path.stem)
def test_each_row_of_a_card_is_a_line_of_its_file(path: Path) -> None:
    """A kept card is as today's writer writes it; each row and each spot is one line of JSON."""
    card, text = Card.read(path), path.read_text("utf-8")
    assert text == f"{card.json_text()}\n"
    found = [json.loads(line.rstrip(",")) for line in text.splitlines() if line.startswith("  {")]
    assert found == [each.model_dump(mode="json") for each in (*card.lines, *card.spots)]


def test_a_card_without_rows_is_json() -> None:
    """A card that has no rows yet is read back as it was."""
    empty = KEPT["quic"].model_copy(update={"lines": (), "spots": ()})
    assert Card.model_validate(json.loads(empty.json_text())) == empty


def test_the_guide_counts_what_is_in_print() -> None:
    """The guide says how many numbers are in print, and how many of them quick's card meets."""
    verdicts = [
        said.verdict
        for line in KEPT["quick"].lines
        for cell in line.cells.values()
        for said in cell.said
    ]
    agree = verdicts.count(Verdict.AGREES)
    assert len(verdicts) >= 14
    assert {*verdicts} == {Verdict.AGREES, Verdict.UNEXPLAINED}
    assert f"{len(verdicts)} numbers and bounds are in print: {agree} agree" in GUIDE


def test_the_guide_speaks_of_every_row() -> None:
    """For each row the guide says which values are good, and what the row cannot tell."""
    rows = {line.situation(name) for name, card in KEPT.items() for line in card.lines}
    said = set(re.findall(r"^\| ([a-z-]+) \| .+ \| .+ \|$", GUIDE, re.MULTILINE))
    assert said - {"row", "situation", "criterion", "case", "change"} == rows


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("quick", GUIDE.partition("## What it says")[2].partition("\nWho harms")[0]),
        ("quick-more", GUIDE.partition("quick-more.json`")[2]),
        ("two-way", GUIDE.partition("numbers of two-way's card")[2].partition("\n## ")[0]),
        ("rfc9743", GUIDE.partition("numbers of rfc9743's card")[2].partition("\nWho harms")[0]),
        ("bbr", GUIDE.partition("numbers of bbr's card")[2].partition("\n## ")[0]),
        ("share", GUIDE.partition("numbers of share's card")[2].partition("- **The kernel")[0]),
        ("share-newest", GUIDE.partition("share-newest.json")[2].partition("- **The verdict")[0]),
        ("tcpeval", GUIDE.partition("numbers of tcpeval's card")[2].partition("\n## ")[0]),
        ("quic", GUIDE.partition("numbers of quic's card")[2].partition("\n### ")[0]),
        ("ecn", GUIDE.partition("numbers of ecn's card")[2].partition("\n## ")[0]),
    ],
)
def test_numbers_of_the_guide_are_the_cards(suite: str, said: str) -> None:
    """Each number with a point or comma in the guide's findings is in a cell of the card."""
    card = Card.read(ROOT / f"docs/results/score/{suite}.json")
    cells = {number(cell.value) for line in card.lines for cell in line.cells.values()}
    numbers = set(re.findall(r"\d+[.,]\d+", said))
    assert len(numbers) > 4
    assert numbers <= cells


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("quick", GUIDE.partition("\nWho harms whom, from")[2].partition("\n`twoway score")[0]),
        ("rfc9743", GUIDE.partition("\nWho harms whom on this")[2].partition("\n## ")[0]),
    ],
)
def test_what_the_guide_says_of_harm(suite: str, said: str) -> None:
    """Each share in the guide's paragraph on harm is in the matrix of the suite's card."""
    found = {
        f"{harm:.2f}"
        for table in harm_tables(KEPT[suite])
        for row in table.harm.values()
        for harm in row.values()
        if harm is not None
    }
    shares = set(re.findall(r"\d\.\d\d", said))
    assert len(shares) > 8
    assert shares <= found
