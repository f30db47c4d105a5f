"""A link that changes by a table: each packet leaves and travels as the table says."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.links.delay import ChangingDelay
from twoway.links.timetable import Timetable
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.links import queue_limit
from twoway.measure.queues import limit_at

pytestmark = pytest.mark.usefixtures("guest")


# A link that changes by a table: each packet leaves when the table allows.


def test_a_trace_of_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 9000 steps, losses and small packets, every departure is exact to the nanosecond."""
    lines = [ms for ms in range(1, 12_500) if ms % 25 > 6 for _ in range(1 + ms % 7 // 5)]
    (tmp_path / "trace").write_text("".join(f"{ms}\n" for ms in lines))
    line = {"rate_mbit": 10, "delay_ms": 10, "queue_packets": 40, "overhead_bytes": -14}
    cell = {"rate": {"mahimahi": "trace"}, **{k: line[k] for k in line if k != "rate_mbit"}}
    profile = {"schema": 1, "title": "t", "directions": {"forward": cell, "reverse": line}}
    monkeypatch.setattr("twoway.description.referred_files.PROFILES", tmp_path)
    (tmp_path / "cell.yml").write_text(yaml.safe_dump(profile))
    flows = [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "cubic"},
    ]
    document: dict[str, Any] = {**SMALL, "profile": "cell", "flows": flows, "duration_s": 14}
    document |= {"stack": {"mtu_bytes": 1500}, "warm_up_s": 1}
    analysis = Analysis(carry_out(write_experiment(tmp_path, document), tmp_path / "results"))
    assert len(analysis.queues["forward"].passed.departures) > 10_000
    assert not analysis.queues["forward"].error_ns.any()
    assert {row.verdict for row in compute(analysis).fidelity} == {Verdict.PASS}


def test_a_limit_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue drops what exceeds the limit of the table's row; another limit contradicts that."""
    (tmp_path / "t.csv").write_text("time_s,rate_mbit,queue_packets\n0,8,30\n0.5,8,5\n1,4,20\n")
    line = {"rate_mbit": 8, "delay_ms": 10, "queue_packets": 30}
    directions = {"forward": {"table": "t.csv", "delay_ms": 10}, "reverse": line}
    document: dict[str, Any] = {**SMALL, "profile": {"directions": directions}}
    flow = {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"}
    document |= {"stack": {"preset": "linux"}, "flows": [flow], "duration_s": 1.5}
    analysis = Analysis(carry_out(write_experiment(tmp_path, document), tmp_path / "results"))
    assert {row.verdict for row in compute(analysis).fidelity} == {Verdict.PASS}
    for more in (-1, 1):
        monkeypatch.setattr(queue_limit, "limit_at", lambda *of, n=more: limit_at(*of) + n)
        failed = [row for row in compute(analysis).fidelity if row.verdict == Verdict.FAIL]
        assert ["queue's limit" in row.check for row in failed] == [True]


@pytest.mark.parametrize(
    "queue",
    [
        {"aqm": "fq_codel"},
        {"queue": "fq_pie flows 8 limit 99"},
        {
            "queue": "prio\nqdisc add parent 2:1 red limit 60000 avpkt 1000\n"
            "qdisc add parent 2:2 handle 5: pfifo limit 99"
        },
    ],
)
def test_tc_changes_the_limit_of_any_qdisc(tmp_path: Path, queue: dict[str, Any]) -> None:
    """The one limit of packets within a queue is the schedule's; which drops it made is open."""
    line = {"rate_mbit": 8, "delay_ms": 10, "queue_packets": 30}
    limit = {"queue_limit": {"schedule": [[0, 30], [0.5, 5]]}}
    directions = {"forward": {**line, **queue, **limit}, "reverse": line}
    document: dict[str, Any] = {**SMALL, "profile": {"directions": directions}}
    flow = {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"}
    document |= {"stack": {"preset": "linux"}, "flows": [flow], "duration_s": 1.5}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    assert Verdict.FAIL not in {row.verdict for row in compute(Analysis(run)).fidelity}
    limits = [
        {each["options"].get("limit") for each in json.loads((run / file).read_text())}
        for file in ("qdisc/r1-before.json", "qdisc/r1-after.json")
    ]
    assert [30 in limits[0], 5 in limits[0], 5 in limits[1], 30 in limits[1]] == [1, 0, 1, 0]


# A delay that changes: each packet travels for the time that the table gives.

# Steps of leo-20mbit: in s, then in ns.
LATER = ((15, 35_250_000), (30, 12_000_125), (45, 28_000_000))
DAY_MS = 86_400_000


def _delays(folder: Path) -> list[Any]:
    return [row for row in compute(Analysis(folder)).fidelity if "error of the delays" in row.check]


def test_delays_are_those_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a handover no packet's delay is wrong; with a table that is 1 ns off the check fails."""
    flows = [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "bbr"},
    ]
    document: dict[str, Any] = {**SMALL, "profile": "leo-20mbit", "flows": flows}
    document |= {"duration_s": 17, "stack": {"mtu_bytes": 1500}}
    folder = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    rows = _delays(folder)
    assert [(row.verdict, row.value) for row in rows] == [(Verdict.PASS, 0)] * 2
    steps = ((0, 20_500_001), *((s * 10**9, ns) for s, ns in LATER))
    other = Timetable("delays", steps, 60 * 10**9)
    monkeypatch.setattr(ChangingDelay, "table", other)
    assert [(row.verdict, row.value) for row in _delays(folder)] == [(Verdict.FAIL, 1)] * 2


def test_a_delay_of_a_day(tmp_path: Path) -> None:
    """Packets with a day's delay arrive after a day and their transmission, to the nanosecond."""
    direction = {"rate_mbit": 1, "queue_packets": 9, "delay": {"schedule": [[0, DAY_MS]]}}
    profile = {
        "schema": 1,
        "title": "t",
        "directions": {"forward": direction, "reverse": direction},
    }
    (tmp_path / "far.yml").write_text(yaml.safe_dump(profile))
    datagrams = [{"name": "udp", "from": "h1", "to": "h2", "rate_mbit": 0.01}]
    document: dict[str, Any] = {**SMALL, "profile": "far", "flows": [], "datagrams": datagrams}
    document |= {"duration_s": 90_000, "observe": {"tcp_info_ms": 3_600_000}}
    run = Analysis(carry_out(write_experiment(tmp_path, document), tmp_path / "results"))
    view = run.datagrams["udp"]
    came = view.arrived_ns >= 0
    sent = view.sent.where(came)
    bits_ns = 8000 * run.queues["forward"].queue.link_bytes(sent.frame_bytes)
    travelled_ns = view.arrived_ns[came] - sent.time_ns - bits_ns
    assert set(travelled_ns.tolist()) == {DAY_MS * 10**6}
    # Packets until the captures end, 3 s after the traffic: one each 0.8 s.
    assert came.sum() == math.ceil((90_000 + 3 - DAY_MS / 1000) / 0.8)
