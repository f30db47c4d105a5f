"""Tables of flows, and pages of many connections."""

import re
from pathlib import Path

import pytest
from support.page_text import page_text
from support.synthetic_run import write_run

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow, FoundFlow, Metric, Metrics, Way
from twoway.contract.network import Connection, DatagramFlow, ProgramRun
from twoway.manifest import Manifest, read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report import connections as many
from twoway.report.connections import MANY, WORST, checks_of, shown_names, spreads, summary
from twoway.report.figures import all_figures
from twoway.report.flow_table import MOST_FOUND, flow_table, sweep_table
from twoway.report.report import analyse_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Metrics]:
    """Return the manifest and the metrics of a run made by hand."""
    folder = write_run(tmp_path_factory.mktemp("run"))
    return read_manifest(folder), compute(Analysis(folder))


@pytest.fixture(scope="module")
def measured(run: tuple[Manifest, Metrics]) -> tuple[tuple[Connection, ...], Metrics]:
    """Return the two connections of the run, and its metrics."""
    return run[0].connections, run[1]


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


@pytest.mark.slow
def test_few_are_all_shown(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """Up to MANY connections are shown, in the order of the experiment's file."""
    few = crowd(measured, [float(9 - n) for n in range(MANY)], transfers=False)
    assert shown_names(*few) == [f"c{n}" for n in range(MANY)]


@pytest.mark.slow
def test_least_goodput_is_worst(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """If endless connections are too many, those with the least goodput are shown, least first."""
    crowded = crowd(measured, [float(99 - n) for n in range(MANY + 1)], transfers=False)
    assert shown_names(*crowded) == [f"c{MANY - n}" for n in range(WORST)]


@pytest.mark.slow
def test_slowest_transfers_are_worst(measured: tuple[tuple[Connection, ...], Metrics]) -> None:
    """If transfers are too many, the incomplete ones are shown first, then the slowest."""
    times: list[float | None] = [float(n) for n in range(MANY)]
    crowded = crowd(measured, [*times, None], transfers=True)
    assert shown_names(*crowded)[:3] == [f"c{MANY}", f"c{MANY - 1}", f"c{MANY - 2}"]
    assert len(shown_names(*crowded)) == WORST


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    alone = {figure.id: figure for figure in all_figures(analysis, metrics, [hidden], alone=True)}
    assert {line.name for line in alone["goodput"].lines} == {hidden}
    assert "rtt-all" in ids


# The table of a run's results: UDP flows, and flows of programs.


def test_what_programs_sent(run: tuple[Manifest, Metrics]) -> None:
    """Each direction of a program's flow is a line, with round trips if known."""
    manifest, metrics = run
    rtt = {f"rtt_{name}": Metric(value=3.25, unit="ms") for name in ("min", "median", "p95")}
    there = Way(packets=4, payload_bytes=256, lost=1, metrics=rtt)
    back = Way(packets=3, payload_bytes=192, lost=0, metrics={})
    ping = FoundFlow(
        name="10.0.1.2:0 > 10.0.2.2:0",
        protocol="icmp",
        hosts=("h1", "h2"),
        start_s=0,
        end_s=1,
        forward=there,
        backward=back,
    )
    found = metrics.model_copy(update={"found": (ping,) * (MOST_FOUND + 1)})
    lines = flow_table(manifest, found)
    assert lines[3:6] == [
        "of programs                   packets  bytes  lost  rtt min  rtt p50  rtt p95, ms",
        "icmp 10.0.1.2:0 > 10.0.2.2:0        4    256     1     3.25     3.25         3.25",
        "icmp 10.0.2.2:0 > 10.0.1.2:0        3    192     0        -        -            -",
    ]
    assert lines[-1] == "and 1 more, in the report"


def test_a_sweep_lists_the_flows_of_its_points(run: tuple[Manifest, Metrics]) -> None:
    """Each flow of each point is a line, with the point's name."""
    manifest, metrics = run
    assert sweep_table([("n=1", manifest, metrics), ("n=20", manifest, metrics)]) == [
        "point  flow    Mbit/s  retrans, %  queue mean  queue p95  rtt min  rtt p50  rtt p95, ms",
        "n=1    first     1.98       8.333       0.585          3     2.55     4.95         5.04",
        "n=1    second    1.26           0        0.67          5     2.55     3.05          4.4",
        "n=20   first     1.98       8.333       0.585          3     2.55     4.95         5.04",
        "n=20   second    1.26           0        0.67          5     2.55     3.05          4.4",
    ]
    assert sweep_table([]) == []


def test_a_transfer_has_its_time(run: tuple[Manifest, Metrics]) -> None:
    """A transfer has its completion time, or the words that it is not done; other flows nothing."""
    manifest, metrics = run
    first, second = manifest.connections
    got = {"transfer_bytes": 1000}
    both = first.model_copy(update=got), second.model_copy(update=got)
    time = metrics.metrics["completion_time.first"].model_copy(update={"value": 1.5})
    metrics = metrics.model_copy(
        update={"metrics": {**metrics.metrics, "completion_time.first": time}}
    )
    for connections, expected in (
        (both, ["done in, s", "       1.5", "  not done"]),
        ((both[0], second), ["done in, s", "       1.5", "          "]),
    ):
        mine = manifest.model_copy(update={"connections": connections})
        assert [line[-10:] for line in flow_table(mine, metrics)] == expected
        lines = sweep_table([("n=1", mine, metrics)])
        assert [line[-10:] for line in lines] == expected


def test_a_sweep_draws_goodputs_as_bars(run: tuple[Manifest, Metrics]) -> None:
    """On a terminal the largest goodput is a bar of twelve cells; others are in proportion."""
    manifest, metrics = run
    lines = sweep_table([("grid@n=1", manifest, metrics)], bars=True)
    assert [line[-14:] for line in lines] == ["  goodput     ", "  " + "█" * 12, "  ███████▋    "]
    nothing = {
        name: each.model_copy(update={"value": None}) for name, each in metrics.metrics.items()
    }
    none = metrics.model_copy(update={"metrics": nothing})
    assert sweep_table([("grid@n=1", manifest, none)], bars=True)[1].endswith("-" + " " * 14)


def test_a_sweep_lists_the_udp_flows_of_its_points(run: tuple[Manifest, Metrics]) -> None:
    """Points with UDP alone have a table of their own, with rate, loss and delay."""
    call = DatagramFlow.model_construct(name="call")
    manifest = run[0].model_copy(update={"connections": (), "datagrams": (call,)})
    names = ("datagram_rate", "datagram_loss", "datagram_delay")
    found = {f"{name}.call": Metric(value=0.125, unit="1") for name in names}
    metrics = run[1].model_copy(update={"metrics": found})
    assert sweep_table([("grid@n=1", manifest, metrics)]) == [
        "point     UDP flow  Mbit/s  lost, share  delay mean  delay p95, s",
        "grid@n=1  call       0.125        0.125       0.125             -",
    ]


def test_programs_have_their_run_times(run: tuple[Manifest, Metrics]) -> None:
    """Tables list the run time of each program, and a dash if it was asked to end."""
    programs = tuple(ProgramRun.model_construct(name=name) for name in ("fetch", "server"))
    manifest = run[0].model_copy(update={"connections": (), "programs": programs})
    times = {
        "run_time.fetch": Metric(value=3.75, unit="s"),
        "run_time.server": Metric(value=None, unit="s"),
    }
    metrics = run[1].model_copy(update={"metrics": times})
    assert flow_table(manifest, metrics) == [
        "program  run time, s",
        "fetch           3.75",
        "server             -",
    ]
    assert sweep_table([("grid@n=1", manifest, metrics)]) == [
        "point     program  run time, s",
        "grid@n=1  fetch           3.75",
        "grid@n=1  server             -",
    ]


def test_alike_flows_of_one_name_are_one_row_of_a_sweep(run: tuple[Manifest, Metrics]) -> None:
    """Flows that differ only in their number are a row with the means of their metrics."""
    manifest, metrics = run
    first = manifest.connections[0]
    alike = tuple(first.model_copy(update={"name": f"up-{n}"}) for n in (1, 2))
    found = {f"goodput.up-{n}": Metric(value=n, unit="Mbit/s") for n in (1, 2)}
    _, row = sweep_table(
        [
            (
                "n=1",
                manifest.model_copy(update={"connections": alike}),
                metrics.model_copy(update={"metrics": {**metrics.metrics, **found}}),
            )
        ]
    )
    assert row.split()[:3] == ["n=1", "up-*", "1.5"]
