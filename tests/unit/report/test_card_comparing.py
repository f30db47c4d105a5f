"""Two cards of a suite, compared."""

import json
from pathlib import Path

import pytest
from support.running import ROOT
from support.warm_command import twoway

from twoway.report.card import read_card
from twoway.report.card_comparing import compare_cards, compare_columns

KEPT = ROOT / "docs/results/score/quick.json"


def test_what_the_guide_says_of_the_toy_module() -> None:
    """The toy module differs from Reno where losses are random, and other columns do not differ."""
    toy = read_card(KEPT.with_name("quick-more.json"))
    module = compare_columns(toy, "aimd", "reno")
    assert len(toy.lines) == 57
    assert [each.row for each in module.cells] == ["quick-random-loss"] * 3
    assert compare_columns(toy, "dctcp", "reno").same
    assert compare_cards(read_card(KEPT), toy).same


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Make a folder with the kept card of quick, in which one number of bbr is better."""
    card = json.loads(KEPT.read_text())
    card["lines"][0]["cells"]["bbr"]["value"] = 1.0
    (tmp_path / "card.json").write_text(json.dumps(card))
    return tmp_path


def test_a_cell_that_differs_is_named(other: Path) -> None:
    """The cell is printed with both numbers and the better one; the exit code is 1."""
    done = twoway("compare", KEPT, other)
    assert done.returncode == 1
    title, row, last = done.stdout.splitlines()
    assert title.split() == ["cells", "that", "differ", "first", "second"]
    assert row.startswith("alone line 20mbit-100ms, buffer 0.2bdp: utilisation.forward  bbr  ")
    assert row.endswith("1  the second is better")
    assert last.startswith("1 of ")
    found = json.loads(twoway("compare", other, KEPT, "--json").stdout)
    assert [each["better"] for each in found["cells"]] == ["first"]


def test_nearer_to_the_target_is_better() -> None:
    """A flow that leaves CUBIC half is better than one that starves itself."""
    card = read_card(KEPT)
    found = {(each.at, each.metric): each for each in compare_columns(card, "vegas", "cubic").cells}
    for buffer in ("1bdp", "4bdp", "16bdp"):
        duel = found[f"line 10mbit-40ms, buffer {buffer}", "goodput.cubic"]
        assert (duel.first or 0) > (duel.second or 0)
        assert duel.better == "second"
    line = next(each for each in card.lines if each.metric == "goodput.cubic")
    cells = {
        name: line.cells[name].model_copy(update={"value": value})
        for name, value in (("vegas", 4.87 - 1), ("cubic", 4.87 + 1))
    }
    even = card.model_copy(update={"lines": (line.model_copy(update={"cells": cells}),)})
    (pair,) = compare_columns(even, "vegas", "cubic").cells
    assert pair.better is None


def test_a_card_is_its_own_equal() -> None:
    """A card compared with itself differs in no cell, and the exit code is 0."""
    done = twoway("compare", KEPT, KEPT)
    assert done.returncode == 0
    assert done.stdout.startswith("0 of ")


def test_columns_and_rows_of_one_card_alone(other: Path) -> None:
    """A column that only one card has is named, and a missing row makes the cards differ."""
    card = json.loads(KEPT.read_text())
    card["columns"].remove("reno")
    for line in card["lines"]:
        del line["cells"]["reno"]
    (other / "card.json").write_text(json.dumps(card))
    done = twoway("compare", KEPT, other)
    assert (done.returncode, "in the first card alone: reno\n" in done.stdout) == (0, True)
    del card["lines"][0]
    (other / "card.json").write_text(json.dumps(card | {"suite_sha256": "0"}))
    done = twoway("compare", KEPT, other)
    assert done.returncode == 1
    assert "rows in one card alone: 1\n" in done.stdout
    assert "the suite's files differ" in done.stdout


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    """Cards of two suites, three cards, or a file that is no card are refused with a sentence."""
    suites = twoway("compare", KEPT, KEPT.with_name("two-way.json"))
    assert (suites.returncode, "a card of quick and one of two-way" in suites.stderr) == (2, True)
    assert twoway("compare", KEPT, KEPT, KEPT).returncode == 2
    (tmp_path / "none.json").write_text("{}")
    none = twoway("compare", KEPT, tmp_path / "none.json")
    assert (none.returncode, "no card of `twoway score`" in none.stderr) == (2, True)
