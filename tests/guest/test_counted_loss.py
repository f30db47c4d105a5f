"""Losses by count on a link: captures show which packets the kernel must drop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.links.loss import Loss
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute


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
