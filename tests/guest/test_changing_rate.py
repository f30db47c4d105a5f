"""A link that changes by a table: each packet leaves when the table allows."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")


def test_a_trace_of_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 9000 steps, losses and small packets, every departure is exact to the nanosecond."""
    lines = [ms for ms in range(1, 12_500) if ms % 25 > 6 for _ in range(1 + ms % 7 // 5)]
    (tmp_path / "trace").write_text("".join(f"{ms}\n" for ms in lines))
    line = {"rate_mbit": 10, "delay_ms": 10, "queue_packets": 40, "overhead_bytes": -14}
    cell = {"rate": {"mahimahi": "trace"}, **{k: line[k] for k in line if k != "rate_mbit"}}
    profile = {"schema": 1, "title": "t", "directions": {"forward": cell, "reverse": line}}
    monkeypatch.setattr("twoway.description.referred.PROFILES", tmp_path)
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
