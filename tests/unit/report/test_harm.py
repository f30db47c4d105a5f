"""Harm: a connection beside others compared with itself alone; and two cards of a suite."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import ROOT
from support.synthetic_run import CONNECTIONS, SENDER, manifest, metrics_of
from support.warm_command import twoway

from twoway.contract.metrics import Metric, Metrics
from twoway.manifest import Manifest
from twoway.report.card import read_card
from twoway.report.card_comparing import compare_cards, compare_columns
from twoway.report.harm import HARMS, with_harm

GOODPUT, RTT = HARMS[0], HARMS[3]


def metric(value: float | None, error: float | None = 0) -> Metric:
    """Make a measured number."""
    return Metric(value=value, unit="1", error=error)


@pytest.mark.parametrize(
    ("alone", "beside", "goodput", "rtt"),
    [
        (8, 2, 0.75, -3),
        (2, 8, -3, 0.75),
        (5, 5, 0, 0),
        (0, 0, 0, 0),
        (4, 0, 1, None),
        (0, 4, None, 1),
        (None, 4, None, None),
        (4, None, None, None),
    ],
)
def test_harm_of_two_values(
    alone: float | None, beside: float | None, goodput: float | None, rtt: float | None
) -> None:
    """Harm is the relative loss: (x - y) / x, or (y - x) / y if less is better."""
    for harm, value in ((GOODPUT, goodput), (RTT, rtt)):
        assert harm.compute(metric(alone), metric(beside)) == metric(value)


def test_the_error_is_that_of_both() -> None:
    """The harm's error combines both values' errors, and is unknown if one has no bound."""
    assert GOODPUT.compute(metric(8, 0.8), metric(2, 0.4)).error == pytest.approx(0.075)
    assert GOODPUT.compute(metric(8, None), metric(2, 0.4)).error is None


def run(point: dict[str, Any], goodputs: dict[str, float], **more: Any) -> tuple[Manifest, Metrics]:
    """Make a point's run, with goodputs of its connections."""
    document = manifest() | {
        "point": point,
        "connections": [{**SENDER, **each} for each in CONNECTIONS if each["name"] in goodputs],
        **more,
    }
    found = {
        f"{harm.of.name}.{name}": {"value": None, "unit": "1"}
        for harm in HARMS
        for name in goodputs
    } | {f"goodput.{name}": {"value": goodputs[name], "unit": "Mbit/s"} for name in goodputs}
    return Manifest.model_validate(document), metrics_of(document, found)


def harms(*runs: tuple[Manifest, Metrics]) -> list[dict[str, float | None]]:
    """Return the harms of each run."""
    found = with_harm({str(number): each for number, each in enumerate(runs)})
    return [
        {name: each.value for name, each in metrics.metrics.items() if name.startswith("harm_")}
        for _, metrics in found.values()
    ]


def test_a_sweep_has_the_harm_to_what_it_has_alone() -> None:
    """A connection is compared with the point that differs in one axis and has it alone."""
    alone = [run({"beside": 0, "buffer": each}, {"first": each}) for each in (8, 4)]
    beside = [run({"beside": 1, "buffer": each}, {"first": 2, "second": 9}) for each in (8, 4)]
    zero = {"harm_goodput.first": 0}
    assert harms(*alone, *beside) == [
        *(zero, zero),
        *({"harm_goodput.first": 0.75}, {"harm_goodput.first": 0.5}),
    ]


def test_what_is_not_the_same_connection_is_not_compared() -> None:
    """Points are not compared if links differ, or if no point has that connection alone."""
    both = run({"beside": 1}, {"first": 2, "second": 9})
    slower = {"profile": {"directions": {"forward": {"queue_packets": 1}}}}
    assert harms(both, run({"beside": 0}, {"first": 4}, **slower))[0] == {}
    assert harms(both, run({"beside": 0}, {"second": 18}))[0] == {"harm_goodput.second": 0.5}
    assert harms(run({"beside": 0}, {"first": 4}), run({"beside": 2}, {"first": 4})) == [{}, {}]
    assert harms(both) == [{}]


# Two cards of a suite, compared.

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
    line = line.model_copy(update={"better": 4.0})
    cells = {
        name: line.cells[name].model_copy(update={"value": value})
        for name, value in (("vegas", 3.0), ("cubic", 5.0))
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
