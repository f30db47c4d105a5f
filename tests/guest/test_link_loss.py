"""Losses on a link behind its queue: the captures show each packet."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support import sharing
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")

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


def test_captures_know_every_loss(lossy: Path) -> None:
    """Losses of data and ACKs behind queues equal the kernel's count of dropped packets."""
    row = _row(lossy)
    assert row.verdict is Verdict.PASS
    assert int(row.check.removeprefix(CHECK)) > 50


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


def test_loss_is_of_the_way_that_loses(lossy: Path) -> None:
    """Only data in the direction with losses is lost behind its queue."""
    metrics = compute(Analysis(lossy)).metrics
    assert metrics["link_loss.right"].value == 0
    assert metrics["link_loss_burst.right"].value is None
    left = metrics["link_loss.left"].value
    assert left is not None
    assert 0.005 < left < 0.015


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
