"""Pages of many connections: distributions, and the worst connections."""

import re
from pathlib import Path

import pytest
from support.page_text import page_text
from support.synthetic_run import write_run

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow, Metric, Metrics
from twoway.contract.network import Connection
from twoway.manifest import read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report import connections as many
from twoway.report.connections import MANY, WORST, checks_of, shown_names, spreads, summary
from twoway.report.figures import all_figures
from twoway.report.report import analyse_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[Connection, ...], Metrics]:
    """Return the two connections of a run made by hand, and its metrics."""
    folder = write_run(tmp_path_factory.mktemp("run"))
    return read_manifest(folder).connections, compute(Analysis(folder))


def crowd(
    measured: tuple[tuple[Connection, ...], Metrics], values: list[float | None], *, transfers: bool
) -> tuple[tuple[Connection, ...], Metrics]:
    """Make connections c0, c1 and so on, with these goodputs, or completion times for transfers."""
    (first, _), metrics = measured
    names = [f"c{n}" for n in range(len(values))]
    size = 1000 if transfers else None
    every = tuple(first.model_copy(update={"name": n, "transfer_bytes": size}) for n in names)
    family = "completion_time" if transfers else "goodput"
    of_all = {n: Metric(value=None, unit="1") for n in many.metrics_of(names)}
    own = {f"{family}.{n}": Metric(value=v, unit="s") for n, v in zip(names, values, strict=True)}
    own["jain_index"] = Metric(value=0.5, unit="1")
    return every, metrics.model_copy(update={"metrics": of_all | own})


def test_few_are_all_shown(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """Up to MANY connections are shown, in the order of the experiment's file."""
    few = crowd(measured, [float(9 - n) for n in range(MANY)], transfers=False)
    assert shown_names(*few) == [f"c{n}" for n in range(MANY)]


def test_least_goodput_is_worst(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """If endless connections are too many, those with the least goodput are shown, least first."""
    crowded = crowd(measured, [float(99 - n) for n in range(MANY + 1)], transfers=False)
    assert shown_names(*crowded) == [f"c{MANY - n}" for n in range(WORST)]


def test_slowest_transfers_are_worst(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """If transfers are too many, the incomplete ones are shown first, then the slowest."""
    times: list[float | None] = [float(n) for n in range(MANY)]
    crowded = crowd(measured, [*times, None], transfers=True)
    assert shown_names(*crowded)[:3] == [f"c{MANY}", f"c{MANY - 1}", f"c{MANY - 2}"]
    assert len(shown_names(*crowded)) == WORST


def test_spread_counts_who_has_it(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """A distribution counts only connections whose metric is defined, and has its quantiles."""
    crowded = crowd(measured, [4.0, 1.0, None, 3.0], transfers=False)
    (spread,) = spreads(*crowded)
    assert (spread.definition.name, spread.connections) == ("goodput", 3)
    assert (spread.least, spread.median, spread.most) == (1, 3, 4)
    assert summary(*crowded)[:2] == [
        "goodput         over 3 connections: 1 least, 3 median, 4 most Mbit/s",
        "jain_index      0.5",
    ]


def test_checks_that_fail_are_always_shown() -> None:
    """Only passed checks of connections that are not shown are left out."""
    rows = tuple(
        FidelityRow(check=check, value=0, bound="0", verdict=verdict)
        for check, verdict in (
            ("forward: departures", Verdict.PASS),
            ("c0: acks", Verdict.PASS),
            ("c1: acks", Verdict.PASS),
            ("c1: payload", Verdict.FAIL),
        )
    )
    named = [Connection.model_construct(name=name) for name in ("c0", "c1")]
    kept = [row.check for row in checks_of(["c0"], tuple(named), rows)]
    assert kept == ["forward: departures", "c0: acks", "c1: payload"]


def test_page_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of many connections has distributions, metrics of the worst, and counts the rest."""
    monkeypatch.setattr(many, "MANY", 1)
    monkeypatch.setattr(many, "WORST", 1)
    folder = write_run(tmp_path)
    analyse_run(folder)
    page = page_text(folder / "report.html")
    metrics = Metrics.read(folder / "metrics.json")
    (shown,) = shown_names(read_manifest(folder).connections, metrics)
    (hidden,) = {"first", "second"} - {shown}
    table = page[page.index('<table id="metrics">') : page.index('<table id="spreads">')]
    assert f"<td>{shown}</td>" in table
    assert f"<td>{hidden}</td>" not in table
    assert "All 2 connections" in page
    left_out = re.search(r"And (\d+) checks of other connections", page)
    assert left_out
    assert int(left_out[1]) == sum(row.check.startswith(f"{hidden}:") for row in metrics.fidelity)
    analysis = Analysis(folder)
    ids = {figure.id: figure for figure in all_figures(analysis, metrics)}
    goodputs = sorted(metrics.metrics[f"goodput.{n}"].value or 0 for n in ("first", "second"))
    drawn = sorted(float(line.x.max()) for line in ids["goodput-all"].lines)
    assert drawn == goodputs
    assert {line.name for line in ids["goodput"].lines} == {shown}
    asked = {figure.id: figure for figure in all_figures(analysis, metrics, [hidden])}
    assert {line.name for line in asked["goodput"].lines} == {shown, hidden}
    assert "rtt-all" in ids
