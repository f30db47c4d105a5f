"""The table of a run's results: UDP flows, and flows of programs."""

from pathlib import Path

from support.synthetic_run import write_run

from twoway.contract.metrics import FoundFlow, Metric, Way
from twoway.contract.network import DatagramFlow, ProgramRun
from twoway.manifest import read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report.flow_table import MOST_FOUND, flow_table, sweep_table


def test_what_programs_sent(tmp_path: Path) -> None:
    """Each direction of a program's flow is a line, with round trips if known."""
    folder = write_run(tmp_path)
    metrics = compute(Analysis(folder))
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
    lines = flow_table(read_manifest(folder), found)
    assert lines[3:6] == [
        "of programs                   packets  bytes  lost  rtt min  rtt p50  rtt p95, ms",
        "icmp 10.0.1.2:0 > 10.0.2.2:0        4    256     1     3.25     3.25         3.25",
        "icmp 10.0.2.2:0 > 10.0.1.2:0        3    192     0        -        -            -",
    ]
    assert lines[-1] == "and 1 more, in the report"


def test_a_sweep_lists_the_flows_of_its_points(tmp_path: Path) -> None:
    """Each flow of each point is a line, with the point's name."""
    folder = write_run(tmp_path)
    manifest, metrics = read_manifest(folder), compute(Analysis(folder))
    assert sweep_table([("n=1", manifest, metrics), ("n=20", manifest, metrics)]) == [
        "point  flow    Mbit/s  retrans, %  queue mean  queue p95  rtt min  rtt p50  rtt p95, ms",
        "n=1    first     1.98       8.333       0.585          3     2.55     4.95         5.04",
        "n=1    second    1.26           0        0.67          5     2.55     3.05          4.4",
        "n=20   first     1.98       8.333       0.585          3     2.55     4.95         5.04",
        "n=20   second    1.26           0        0.67          5     2.55     3.05          4.4",
    ]
    assert sweep_table([]) == []


def test_a_transfer_has_its_time(tmp_path: Path) -> None:
    """A transfer has its completion time, or the words that it is not done; other flows nothing."""
    folder = write_run(tmp_path)
    manifest, metrics = read_manifest(folder), compute(Analysis(folder))
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


def test_a_sweep_draws_goodputs_as_bars(tmp_path: Path) -> None:
    """On a terminal the largest goodput is a bar of twelve cells; others are in proportion."""
    folder = write_run(tmp_path)
    manifest, metrics = read_manifest(folder), compute(Analysis(folder))
    lines = sweep_table([("grid@n=1", manifest, metrics)], bars=True)
    assert [line[-14:] for line in lines] == ["  goodput     ", "  " + "█" * 12, "  ███████▋    "]
    nothing = {
        name: each.model_copy(update={"value": None}) for name, each in metrics.metrics.items()
    }
    none = metrics.model_copy(update={"metrics": nothing})
    assert sweep_table([("grid@n=1", manifest, none)], bars=True)[1].endswith("-" + " " * 14)


def test_a_sweep_lists_the_udp_flows_of_its_points(tmp_path: Path) -> None:
    """Points with UDP alone have a table of their own, with rate, loss and delay."""
    folder = write_run(tmp_path)
    call = DatagramFlow.model_construct(name="call")
    manifest = read_manifest(folder).model_copy(update={"connections": (), "datagrams": (call,)})
    names = ("datagram_rate", "datagram_loss", "datagram_delay")
    found = {f"{name}.call": Metric(value=0.125, unit="1") for name in names}
    metrics = compute(Analysis(folder)).model_copy(update={"metrics": found})
    assert sweep_table([("grid@n=1", manifest, metrics)]) == [
        "point     UDP flow  Mbit/s  lost, share  delay mean  delay p95, s",
        "grid@n=1  call       0.125        0.125       0.125             -",
    ]


def test_programs_have_their_run_times(tmp_path: Path) -> None:
    """Tables list the run time of each program, and a dash if it was asked to end."""
    folder = write_run(tmp_path)
    programs = tuple(ProgramRun.model_construct(name=name) for name in ("fetch", "server"))
    manifest = read_manifest(folder).model_copy(update={"connections": (), "programs": programs})
    times = {
        "run_time.fetch": Metric(value=3.75, unit="s"),
        "run_time.server": Metric(value=None, unit="s"),
    }
    metrics = compute(Analysis(folder)).model_copy(update={"metrics": times})
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


def test_alike_flows_of_one_name_are_one_row_of_a_sweep(tmp_path: Path) -> None:
    """Flows that differ only in their number are a row with the means of their metrics."""
    folder = write_run(tmp_path)
    manifest, metrics = read_manifest(folder), compute(Analysis(folder))
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
