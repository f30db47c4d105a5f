"""A card's page: the matrix of harm, goodput over delay, buttons, and absent rows."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.page_text import page_text

from twoway.report.card import Card, Cell, Line, Spot
from twoway.report.card_harm import harm_tables
from twoway.report.card_page import write_card
from twoway.report.card_plane import planes

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
def card() -> Card:
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


def test_harm_is_what_goodput_lacks(card: Card) -> None:
    """Harm is the share of its goodput alone that a control loses; without a run it is None.

    The diagonal is from the row `itself`, also for the suite's own columns.
    """
    ((at, harm),) = harm_tables(card)
    assert at == AT
    assert harm == {
        "mine": {"mine": 0.5, "other": None, "reno": pytest.approx(0.2)},
        "other": {"mine": None, "other": 0.5, "reno": 0.25},
        "reno": {"mine": 0.8, "other": None, "reno": 0.4},
    }


def test_harm_is_a_table_of_its_own(card: Card, tmp_path: Path) -> None:
    """harm.csv beside the page has a row for each pair with a run; the page offers it."""
    page = page_text(write_card(card, [], tmp_path))
    assert '<a href="harm.csv">' in page
    rows = (tmp_path / "harm.csv").read_text("utf-8").splitlines()
    assert rows[:4] == [
        "at,harmed,by,harm",
        f"{AT},mine,mine,0.5",
        f"{AT},mine,reno,0.19999999999999996",
        f"{AT},other,other,0.5",
    ]
    assert len(rows) == 1 + 6


def test_a_cell_that_is_not_for_a_program_is_grey(card: Card, tmp_path: Path) -> None:
    """A cell without a number for QUIC is grey and gives the reason, with or without a run."""
    why = "not for a program: why <so>"
    cells = {
        control: card.lines[0]
        .cells[control]
        .model_copy(update={"value": None, "doubt": why, "runs": runs})
        for control, runs in (("mine", ()), ("other", ("s-alone@x",)))
    }
    line = card.lines[0].model_copy(update={"cells": {**card.lines[0].cells, **cells}})
    found = card.model_copy(update={"lines": (line, *card.lines[1:])})
    run = SimpleNamespace(id="s-alone@x", folder=tmp_path / "run")
    experiments: Any = [SimpleNamespace(results=[run])]
    page = page_text(write_card(found, experiments, tmp_path))
    assert page.count('<td class="number none"') == 2
    assert page.count('<small class="why">not for a program: why &lt;so&gt;</small>') == 2


def test_a_row_with_a_target_shows_its_number(card: Card, tmp_path: Path) -> None:
    """The arrow points at the good number; a flow that starves is red, and its run can be asked."""
    beside = card.lines[3].model_copy(update={"better": 5.0, "row": "s-alone"}).with_standing()
    cells = {**beside.cells, "reno": beside.cells["reno"].model_copy(update={"runs": ("s@reno",)})}
    line = beside.model_copy(update={"cells": cells})
    runs: Any = [SimpleNamespace(results=[SimpleNamespace(id="s@reno", folder=tmp_path)])]
    page = page_text(write_card(card.model_copy(update={"lines": (line,)}), runs, tmp_path))
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


def test_a_card_without_such_rows_has_no_harm(card: Card) -> None:
    """A suite that names no rows for harm has no table of harm."""
    assert harm_tables(card.model_copy(update={"harm": None})) == []


def test_up_and_left_is_better(card: Card) -> None:
    """A control with more goodput is higher, one with a longer round trip further right."""
    ((title, plane),) = planes(card)
    assert title == f"alone {AT}"
    (mine, reno) = [
        (float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', plane)
    ]
    assert (mine[0] < reno[0], mine[1] < reno[1]) == (True, True)
    assert "mine 10 Mbit/s, 40 ms; reno 5 Mbit/s, 80 ms" in plane


def test_labels_do_not_cover_one_another(card: Card) -> None:
    """Labels of controls with equal numbers are one below the other."""
    twin = card.spots[0].model_copy(update={"control": "other"})
    ((_, plane),) = planes(card.model_copy(update={"spots": (card.spots[0], twin)}))
    heights = [float(y) for y in re.findall(r'<text x="[\d.]+" class="end" y="([\d.]+)"', plane)]
    assert heights[0] + 10 < heights[1]


def test_the_page_has_every_part(card: Card, tmp_path: Path) -> None:
    """The page has a button with a count, the matrix of harm, a plane, and what is absent."""
    page = page_text(write_card(card, [], tmp_path))
    assert '<button data-words="goodput">goodput 4</button>' in page
    assert page.index("<table") < page.index('id="harm"') < page.index('id="planes"')
    assert page.index('id="planes"') < page.index('id="absent"')
    assert "QUIC &lt;here&gt;" in page
    assert page.count('class="number self"') == 3
