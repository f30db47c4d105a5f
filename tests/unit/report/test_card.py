"""Cards: a number compared with the best, the cards in the guides, and a card's page."""

import json
import re
from collections.abc import Iterator
from html import unescape
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from capture_analysis.pages.page_template import number
from site_pages import card_tables, format_numbers
from support.page_text import page_text
from support.running import ROOT

from twoway.contract.judge import Verdict
from twoway.contract.suite import Better
from twoway.description.suite import load_suite, suite_names
from twoway.errors import UsageError
from twoway.report.card import (
    Card,
    Cell,
    Line,
    Spot,
    card_cells,
    card_table,
    compare_with_best,
    printed_cells,
    printed_table,
)
from twoway.report.card_page import harm_tables, planes, write_card
from twoway.report.card_text import card_text, change_mail

SCORES = ROOT / "docs/results/score"
KEPT = {name: Card.read(SCORES / f"{name}.json") for name in suite_names()}
GUIDE = (ROOT / "docs/guides/score.md").read_text("utf-8")
# A page for each suite, docs/suites/NAME.md.
PAGES = {name: (ROOT / f"docs/suites/{name}.md").read_text("utf-8") for name in suite_names()}


@pytest.mark.parametrize(
    ("value", "best", "better", "worst", "expected"),
    [
        (10, 10, "more", 0, "near"),
        (9, 10, "more", 0, "near"),
        (8.9, 10, "more", 0, "between"),
        (5, 10, "more", 0, "between"),
        (4.9, 10, "more", 0, "poor"),
        (10, 9, "less", 0, "near"),
        (20, 10, "less", 0, "between"),
        (20.1, 10, "less", 0, "poor"),
        (1, 0, "less", 0, "poor"),
        (0, 0, "less", 0, "near"),
        # Distance from a fair share: to starve is as poor as to let the other starve.
        (4.72, 4.87, 4.87, 0, "near"),
        (9.644, 4.87, 4.87, 0, "poor"),
        (8.031, 9.73, 9.73, 0, "between"),
        (12.13, 9.73, 9.73, 0, "between"),
        (19.14, 9.73, 9.73, 0, "poor"),
        (0.3231, 9.73, 9.73, 0, "poor"),
        (0, 4.87, 4.87, 0, "poor"),
        # Jain's index of two flows counts from 1/2.
        (0.5092, 1, 1, 0.5, "poor"),
        (0.5092, 1, 1, 0, "between"),
        (0.96, 1, 1, 0.5, "near"),
        (0.2, 1, 1, 0.2, "poor"),
        (0.51, 0.99, "more", 0.5, "poor"),
        (0.51, 0.51, "more", 0.5, "near"),
    ],
)
def test_how_a_number_stands(
    value: float, best: float, better: Better, worst: float, expected: str
) -> None:
    """A number is near within a tenth of its row's best, and poor if worse than half as good."""
    assert compare_with_best(value, best, better, worst) == expected


def test_a_row_in_which_every_control_starves_has_no_green() -> None:
    """With a target the colour does not depend on the other columns."""
    for line in KEPT["share"].lines:
        (cell,) = line.cells.values()
        good = line.better
        assert isinstance(good, float)
        assert cell.value is not None
        assert (cell.standing == "near") == (abs(cell.value - good) <= good / 10)


def test_rows_of_shares_have_a_target() -> None:
    """A row of Jain's index or of shares names the number that is good, as its page has it."""
    for name in suite_names():
        for row, asked in load_suite(name).said.rows.items():
            for shown in asked.shows:
                if shown.metric.startswith(("jain_index", "share_least")):
                    assert isinstance(shown.better, float), (row, shown.metric)
            fair = re.search(rf"^\| {row} \| half of (the payload|9.7)", PAGES[name], re.MULTILINE)
            if fair:
                assert any(isinstance(shown.better, float) for shown in asked.shows), row


def test_the_guide_shows_the_card_of_quick() -> None:
    """The guide has the card that is kept of quick, with all numbers in print, and no other."""
    shown = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)
    tables = [card_table(KEPT["quick"]), printed_table(KEPT["quick"])]
    assert [block.splitlines() for block in shown] == [
        [line.rstrip() for line in lines] for lines in tables
    ]


def test_the_guide_links_every_suite() -> None:
    """The guide has a link to the page of each suite in its table."""
    linked = re.findall(r"^\| \[`([a-z0-9-]+)`\]\(\.\./suites/\1\.md\)", GUIDE, re.MULTILINE)
    assert sorted(linked) == sorted(suite_names())


@pytest.mark.parametrize("path", sorted(SCORES.glob("*.json")), ids=lambda path: path.stem)
def test_kept_cards_are_of_todays_suites(path: Path) -> None:
    """Each kept card has the digest, the aims and the colours that follow from its suite."""
    card, suite = Card.read(path), load_suite(Card.read(path).suite)
    assert card.suite_sha256 == suite.sha256
    for line in card.lines:
        shown = {each.metric: each.better for each in suite.rows[line.row].shows}
        assert line.better == shown.get(line.metric, "more")
        assert line == line.with_standing()


@pytest.mark.parametrize("path", sorted(SCORES.glob("*.json")), ids=lambda path: path.stem)
def test_each_row_of_a_card_is_a_line_of_its_file(path: Path) -> None:
    """A kept card is as today's writer writes it; a row, or the spots of a point, is a line."""
    card, text = Card.read(path), path.read_text("utf-8")
    assert text == f"{card.json_text()}\n"
    lines = [json.loads(f"[{line.rstrip(',')}]") for line in text.splitlines() if '"row"' in line]
    assert [*chain(*lines)] == [each.model_dump(mode="json") for each in (*card.lines, *card.spots)]


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


@pytest.mark.parametrize("at", ["host fifo", "host fq"])
def test_should_i_switch_has_the_cards_numbers(at: str) -> None:
    """The page's table is that of `format_numbers`: twelve situations, marked."""
    table = format_numbers(KEPT["switch"], at)
    assert f"\n\n{table}\n\n" in PAGES["switch"]
    rows = table.splitlines()[2:]
    assert len(rows) == 12
    (lossy,) = (row for row in rows if "switch/lossy" in row)
    cubic, bbr = lossy.split(" | ")[1:3]
    assert ("**" not in cubic, "**" in bbr, "~~" in bbr) == (True, True, True)


def test_a_row_without_axes_has_no_space_before_its_metric() -> None:
    """A terminal's rows are "row axis value: metric", or "row: metric"."""
    card = KEPT["switch"]
    plain = card.lines[0].model_copy(update={"at": ""})
    row = card_table(card.model_copy(update={"lines": (plain,)}))[1]
    assert row.startswith(f"{plain.situation('switch')}: {plain.metric}")


def test_rows_of_a_card_as_text() -> None:
    """Chosen rows have each number as mail of 72 ASCII columns, as LaTeX and as Markdown."""
    card, line = KEPT["quick"], next(x for x in KEPT["quick"].lines if x.metric == "jain_index")
    seeds = line.cells["bbr"].model_copy(update={"runs": ("a", "b"), "doubt": "\u00e9"})
    line = line.model_copy(update={"cells": {**line.cells, "bbr": seeds}})
    card = card.model_copy(update={"lines": (line, *card.lines[-2:]), "title": "caf\u00e9"})
    for form, bbr in (("mail", "bbr "), ("latex", "& "), ("markdown", "| ")):
        text = card_text(card, form, ["jain"])
        value = number(seeds.value)
        assert f"{bbr}{value} ({value} to {value})?" in text
        assert all(number(cell.value) in text for cell in line.cells.values())
        assert "rate-steps" not in text
        whole = text.replace("\n    ", " ")
        assert "median of 2 runs" in whole
        assert f"twoway score {' '.join(card.columns)} --suite quick --seeds 2" in whole
        if form == "mail":
            assert text.isascii()
            assert max(map(len, text.splitlines())) <= 72
    with pytest.raises(UsageError, match="--rows: nosuch: no such row"):
        card_text(card, "mail", ["nosuch"])


def test_a_mail_has_the_cells_that_changed_beyond_chance() -> None:
    """A cell is in the mail if the ranges of its runs are apart; one that overlaps is counted."""
    kept = KEPT["quick"]
    line = next(each for each in kept.lines if each.metric == "goodput.cubic")

    def card(least: float, most: float) -> Card:
        runs = {"value": (least + most) / 2, "least": least, "most": most, "runs": ("a", "b")}
        reno = line.cells["reno"].model_copy(update=runs)
        row = line.model_copy(update={"cells": {**line.cells, "reno": reno}})
        lines = tuple(row if each is line else each for each in kept.lines)
        return kept.model_copy(update={"lines": lines})

    mail = change_mail(
        card(4, 5), card(6, 7), "[PATCH] caf\N{LATIN SMALL LETTER E WITH ACUTE}", ["x"]
    )
    assert "reno: 4.5 (4 to 5) -> 6.5 (6 to 7), worse" in mail
    assert "\n1 of " in mail
    assert max(map(len, mail.splitlines())) <= 72
    assert mail.isascii()
    mail = change_mail(card(4, 5), card(5, 7), "x", ["x"])
    assert "reno:" not in mail
    assert "\n0 of " in mail
    assert "1 more within" in mail


@pytest.mark.parametrize("suite", suite_names())
def test_a_suites_page_speaks_of_every_row(suite: str) -> None:
    """For each row the page says which values are good, and what the row cannot tell."""
    title, *rows = re.findall(r"^\| (\S+) \| .+ \| .+ \|$", PAGES[suite], re.MULTILINE)
    assert title in {"row", "situation", "criterion", "case", "change"}
    assert rows == list(dict.fromkeys(line.situation(suite) for line in KEPT[suite].lines))


@pytest.mark.parametrize("suite", suite_names())
def test_numbers_of_a_suites_page_are_the_cards(suite: str) -> None:
    """Each number with a point or comma in the page's findings is in a card that the page links.

    It is in a cell, or in the matrix of harm, or the release of the card's kernel.
    """
    names = re.findall(r"\]\(\.\./results/score/([a-z0-9-]+)\.json\)", PAGES[suite])
    assert suite in names
    known = {each for name in names for each in _numbers(Card.read(SCORES / f"{name}.json"))}
    findings = re.findall(r"^- .*(?:\n  .*)*", PAGES[suite], re.MULTILINE)
    numbers = set(re.findall(r"\d+[.,]\d+", "\n".join(findings)))
    assert len(numbers) > 4
    assert numbers <= known


def _numbers(card: Card) -> Iterator[str]:
    """Yield the numbers of a card as texts print them."""
    for line in card.lines:
        yield from (number(cell.value) for cell in line.cells.values())
    for table in harm_tables(card):
        shares = (harm for row in table.harm.values() for harm in row.values())
        yield from (f"{harm:.2f}" for harm in shares if harm is not None)
    yield from (".".join(kernel.split(".")[:2]) for kernel in card.kernels)


@pytest.mark.parametrize("suite", suite_names())
def test_the_site_has_the_whole_card(suite: str) -> None:
    """A suite's page has one place for the card; the site shows each row and each print there."""
    assert PAGES[suite].count("\n<!-- the card -->\n") == 1
    card = KEPT[suite]
    lines = [*filter(None, card_tables(suite).splitlines())]
    shown = [line for line in lines if not line.startswith("| ---")]
    rows = [tuple(unescape(line)[2:-2].split(" | ")) for line in shown]
    assert rows == [*card_cells(card), *printed_cells(card)]


# A card's page: the matrix of harm, goodput over delay, buttons, and absent rows.


AT = "buffer 1bdp"


def _line(row: str, at: str, metric: str, values: dict[str, float | None]) -> Line:
    cells = {
        control: Cell(
            value=value, least=value, most=value, standing=None, doubt="", said=(), runs=()
        )
        for control, value in values.items()
    }
    words = {"asks": "?", "source": "us", "unit": "Mbit/s"}
    return Line(row=row, at=at, metric=metric, better="more", worst=0, cells=cells, **words)


@pytest.fixture
def small_card() -> Card:
    """Make a card of one control beside those of a suite; one spot contains markup."""
    rows = {"alone": "s-alone", "itself": "s-itself", "beside": "s-beside"}
    return Card.model_validate(
        {
            "suite": "s",
            "suite_sha256": "0" * 64,
            "title": "Some",
            "columns": ("mine", "other", "reno"),
            "kernels": ("6.12",),
            "harm": rows,
            "absent": "QUIC <here>",
            "spots": (
                Spot(row="s-alone", at=AT, control="mine", goodput=10, rtt_p95=40),
                Spot(row="s-alone", at=AT, control="reno", goodput=5, rtt_p95=80),
            ),
            "lines": (
                _line("s-alone", AT, "goodput.flow", {"mine": 10, "other": 8, "reno": 10}),
                _line("s-itself", AT, "goodput.other", {"mine": 5, "other": 4, "reno": 6}),
                _line(
                    "s-beside",
                    f"other reno, {AT}",
                    "goodput.other",
                    {"mine": 2, "other": None, "reno": 1},
                ),
                _line(
                    "s-beside",
                    f"other reno, {AT}",
                    "goodput.flow",
                    {"mine": 8, "other": 6, "reno": 9},
                ),
            ),
        }
    )


def test_harm_is_what_goodput_lacks(small_card: Card) -> None:
    """Harm is the share of its goodput alone that a control loses; without a run it is None.

    The diagonal is from the row `itself`, also for the suite's own columns.
    """
    ((at, harm),) = harm_tables(small_card)
    assert at == AT
    assert harm == {
        "mine": {"mine": 0.5, "other": None, "reno": pytest.approx(0.2)},
        "other": {"mine": None, "other": 0.5, "reno": 0.25},
        "reno": {"mine": 0.8, "other": None, "reno": 0.4},
    }


def test_harm_is_a_table_of_its_own(small_card: Card, tmp_path: Path) -> None:
    """harm.csv beside the page has a row for each pair with a run; the page offers it."""
    page = page_text(write_card(small_card, [], tmp_path))
    assert '<a href="harm.csv">' in page
    rows = (tmp_path / "harm.csv").read_text("utf-8").splitlines()
    assert rows[:4] == [
        "at,harmed,by,harm",
        f"{AT},mine,mine,0.5",
        f"{AT},mine,reno,0.19999999999999996",
        f"{AT},other,other,0.5",
    ]
    assert len(rows) == 1 + 6


def test_a_cell_that_is_not_for_a_program_is_grey(small_card: Card, tmp_path: Path) -> None:
    """A cell without a number for QUIC is grey and gives the reason, with or without a run."""
    why = "not for a program: why <so>"
    cells = {
        control: small_card.lines[0]
        .cells[control]
        .model_copy(update={"value": None, "doubt": why, "runs": runs})
        for control, runs in (("mine", ()), ("other", ("s-alone@x",)))
    }
    line = small_card.lines[0].model_copy(update={"cells": {**small_card.lines[0].cells, **cells}})
    found = small_card.model_copy(update={"lines": (line, *small_card.lines[1:])})
    run = SimpleNamespace(id="s-alone@x", folder=tmp_path / "run")
    experiments: Any = [SimpleNamespace(results=[run])]
    page = page_text(write_card(found, experiments, tmp_path))
    assert page.count('<td class="number none"') == 2
    assert page.count('<small class="why">not for a program: why &lt;so&gt;</small>') == 2


def test_a_row_with_a_target_shows_its_number(small_card: Card, tmp_path: Path) -> None:
    """The arrow points at the good number; a flow that starves is red, and its run can be asked."""
    beside = (
        small_card.lines[3].model_copy(update={"better": 5.0, "row": "s-alone"}).with_standing()
    )
    cells = {**beside.cells, "reno": beside.cells["reno"].model_copy(update={"runs": ("s@reno",)})}
    line = beside.model_copy(update={"cells": cells})
    runs: Any = [SimpleNamespace(results=[SimpleNamespace(id="s@reno", folder=tmp_path)])]
    page = page_text(write_card(small_card.model_copy(update={"lines": (line,)}), runs, tmp_path))
    assert '<span title="near 5 is better">→&nbsp;5</span>' in page
    assert {n: cell.standing for n, cell in beside.cells.items()} == {
        "mine": "poor",
        "other": "between",
        "reno": "poor",
    }
    assert page.count('<td class="number poor"') == 2
    assert "twoway why s@reno --metric goodput.flow" in page
    csv = (tmp_path / "card.csv").read_text("utf-8")
    assert csv.count(",goodput.flow,Mbit/s,5.0,") == 3


def test_a_card_without_such_rows_has_no_harm(small_card: Card) -> None:
    """A suite that names no rows for harm has no table of harm."""
    assert harm_tables(small_card.model_copy(update={"harm": None})) == []


def test_up_and_left_is_better(small_card: Card) -> None:
    """A control with more goodput is higher, one with a longer round trip further right."""
    ((title, plane),) = planes(small_card)
    assert title == f"alone {AT}"
    (mine, reno) = [
        (float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', plane)
    ]
    assert (mine[0] < reno[0], mine[1] < reno[1]) == (True, True)
    assert "mine 10 Mbit/s, 40 ms; reno 5 Mbit/s, 80 ms" in plane


def test_labels_do_not_cover_one_another(small_card: Card) -> None:
    """Labels of controls with equal numbers are one below the other."""
    twin = small_card.spots[0].model_copy(update={"control": "other"})
    ((_, plane),) = planes(small_card.model_copy(update={"spots": (small_card.spots[0], twin)}))
    heights = [float(y) for y in re.findall(r'<text x="[\d.]+" class="end" y="([\d.]+)"', plane)]
    assert heights[0] + 10 < heights[1]


def test_the_page_has_every_part(small_card: Card, tmp_path: Path) -> None:
    """The page has a button with a count, the matrix of harm, a plane, and what is absent."""
    page = page_text(write_card(small_card, [], tmp_path))
    assert '<button data-words="goodput">goodput 4</button>' in page
    assert page.index("<table") < page.index('id="harm"') < page.index('id="planes"')
    assert page.index('id="planes"') < page.index('id="absent"')
    assert "QUIC &lt;here&gt;" in page
    assert page.count('class="number self"') == 3
