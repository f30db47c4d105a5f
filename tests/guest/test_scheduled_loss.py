"""Losses on a link with a changing share: each packet has the probability of its time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.links.loss import Loss
from twoway.links.timetable import Timetable
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

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
