"""Losses on a link behind its queue: captures show each packet that the kernel must drop."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import sharing
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.links.loss import Loss
from twoway.links.timetable import Timetable
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

# Losses on a link behind its queue: the captures show each packet.

CHECK = "packets lost behind queues in the captures minus the kernel's "


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run of two flows on a link that loses 1 % of packets forward."""

    def make(folder: Path) -> None:
        flows = [
            {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"},
            {"name": "right", "from": "h2", "to": "h1", "congestion": "reno"},
        ]
        document: dict[str, Any] = {**SMALL, "profile": "lossy-8mbit", "flows": flows}
        document |= {"duration_s": 10, "stack": {"mtu_bytes": 1500}}
        carry_out(write_experiment(folder, document), folder / "results")

    return (sharing.once(tmp_path_factory, "lossy", make) / "results/latest").resolve()


def _row(folder: Path) -> Any:
    (row,) = [r for r in compute(Analysis(folder)).fidelity if r.check.startswith(CHECK)]
    return row


@pytest.mark.usefixtures("guest")
def test_captures_know_every_loss(lossy: Path) -> None:
    """Losses of data and ACKs behind queues equal the kernel's count of dropped packets."""
    row = _row(lossy)
    assert row.verdict is Verdict.PASS
    assert int(row.check.removeprefix(CHECK)) > 50


@pytest.mark.usefixtures("guest")
def test_a_loss_too_many_is_noticed(lossy: Path, tmp_path: Path) -> None:
    """If the kernel reports one loss more than the captures show, the check fails."""
    folder = tmp_path / "run"
    shutil.copytree(lossy, folder)
    path = folder / "qdisc/r2-after.json"
    qdiscs = json.loads(path.read_text())
    for qdisc in qdiscs:
        qdisc["drops"] += qdisc["dev"] == "r2-eth0"
    path.write_text(json.dumps(qdiscs))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"digests": {}}))
    row = _row(folder)
    assert (row.verdict, row.value) == (Verdict.FAIL, -1)


@pytest.mark.usefixtures("guest")
def test_loss_is_of_the_way_that_loses(lossy: Path) -> None:
    """Only data in the direction with losses is lost behind its queue."""
    metrics = compute(Analysis(lossy)).metrics
    assert metrics["link_loss.right"].value == 0
    assert metrics["link_loss_burst.right"].value is None
    left = metrics["link_loss.left"].value
    assert left is not None
    assert 0.005 < left < 0.015


@pytest.mark.usefixtures("guest")
def test_a_router_without_a_queue_has_no_counts(tmp_path: Path) -> None:
    """A path with losses may lead over a router with neither queue nor delay."""
    line = {"rate_mbit": 30, "delay_ms": 8, "queue_packets": 100}
    names = ("first-up", "first-down", "second-up", "second-down")
    lines = dict.fromkeys(names, line) | {names[0]: {**line, "loss": {"percent": 2}}}
    flow = {"name": "flow", "from": "h1", "to": "h2", "congestion": "cubic"}
    document = SMALL | {"topology": "two_paths", "flows": [flow], "stack": {}, "duration_s": 2}
    path = write_experiment(tmp_path, {**document, "profile": {"directions": lines}})
    row = _row(carry_out(path, tmp_path / "results"))
    assert row.verdict is Verdict.PASS
    assert int(row.check.removeprefix(CHECK)) > 0


# Losses by count on a link: captures show which packets the kernel must drop.


@pytest.mark.usefixtures("guest")
def test_one_packet_in_twenty_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 20th packet is lost, of data, ACKs and UDP; a count off by 1 fails the check."""
    line = {"rate_mbit": 8, "queue_packets": 20, "delay_ms": 8, "loss": {"every": 20}}
    profile = {"schema": 1, "title": "t", "directions": {"forward": line, "reverse": line}}
    (tmp_path / "counted.yml").write_text(yaml.safe_dump(profile))
    flows = [{"name": "tcp", "from": "h1", "to": "h2", "congestion": "reno"}]
    datagrams = [{"name": "udp", "from": "h1", "to": "h2", "rate_mbit": 1}]
    document: dict[str, Any] = {**SMALL, "profile": "counted", "flows": flows}
    document |= {"datagrams": datagrams, "duration_s": 5}
    folder = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    found = compute(Analysis(folder)).fidelity
    assert {row.verdict for row in found} == {Verdict.PASS}
    (there, _) = (row for row in found if row.check.endswith("contradicts the count"))
    assert int(there.check.split()[3]) > 500
    monkeypatch.setattr(Loss, "counted_out", _shifted)
    rows = [row for row in compute(Analysis(folder)).fidelity if "the count" in row.check]
    assert [row.verdict for row in rows] == [Verdict.FAIL] * 2


def _shifted(loss: Loss, packets: int) -> Any:
    """Mark the packets before those that the kernel lost."""
    counted = (n % (loss.every or 1) == 0 for n in range(2, packets + 2))
    return np.fromiter(counted, dtype=bool, count=packets)


# Losses on a link with a changing share: each packet has the probability of its time.

STEPS = [(0, 0), (1, 10), (1.5, 100), (1.6, 1)]
SHARES = ["1 %", "10 %", "100 %"]


@pytest.mark.usefixtures("guest")
def test_each_time_has_its_share_of_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In turn 0, 10, 100 and 1 % are lost; with a table 20 ms off the check fails."""
    line = {"rate_mbit": 8, "queue_packets": 20, "delay_ms": 8, "impairments": {"jitter_ms": 4}}
    line |= {"loss": {"schedule": [[*step] for step in STEPS], "repeat_s": 2}}
    profile = {"schema": 1, "title": "t", "directions": {"forward": line, "reverse": line}}
    (tmp_path / "scheduled.yml").write_text(yaml.safe_dump(profile))
    flows = [{"name": "tcp", "from": "h1", "to": "h2", "congestion": "reno"}]
    datagrams = [
        {"name": "there", "from": "h1", "to": "h2", "rate_mbit": 4},
        {"name": "back", "from": "h2", "to": "h1", "rate_mbit": 4},
    ]
    document: dict[str, Any] = {**SMALL, "profile": "scheduled", "flows": flows}
    document |= {"datagrams": datagrams, "duration_s": 8, "stack": {"mtu_bytes": 1500}}
    folder = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    found = compute(Analysis(folder)).fidelity
    assert {row.verdict for row in found} == {Verdict.PASS}
    there, back = _of_schedule(found)
    assert there.check.startswith("forward: lowest probability of the losses seen, of packets: ")
    for row in (there, back):
        assert [part.split(" at ")[1] for part in row.check.split(", ")[2:]] == SHARES
    rows = tuple((round(s * 1e9 + 2e7 * (s > 0)), percent * 10**6) for s, percent in STEPS)
    monkeypatch.setattr(Loss, "table", Timetable("shares", rows, 2 * 10**9))
    late = _of_schedule(compute(Analysis(folder)).fidelity)
    assert [row.verdict for row in late] == [Verdict.FAIL] * 2


def _of_schedule(rows: Iterable[FidelityRow]) -> list[FidelityRow]:
    return [row for row in rows if "lowest probability of the losses seen" in row.check]
