"""Connections that are still not established when traffic ends."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import SMALL, carry_out, write_experiment

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

FLOOD = {"name": "flood", "from": "h1", "to": "h2", "rate_mbit": 20}
FILM = {
    "name": "film",
    "from": "h1",
    "to": "h2",
    "congestion": "cubic",
    "connect": "at-start",
    "transfers": {"per_s": 1, "mean_bytes": 3000},
}
COUNTED = {"source": "bytes_sent", "sink": "bytes_received"}
BACK = {"name": "back", "from": "h2", "to": "h1", "congestion": "fixed", "window_packets": 4}


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("others", [[], [BACK]], ids=["alone", "beside a sink"])
def test_syns_without_a_connection_are_a_warning(
    tmp_path: Path, others: list[dict[str, Any]]
) -> None:
    """If all SYNs of a transfer are lost, it counts as having sent nothing, and the run warns."""
    line = {"rate_mbit": 0.5, "delay_ms": 20, "queue_packets": 10}
    profile = {"schema": 1, "title": "t", "directions": {"forward": line, "reverse": line}}
    (tmp_path / "slow.yml").write_text(yaml.safe_dump(profile))
    document: dict[str, Any] = {**SMALL, "profile": "slow", "flows": [FILM, *others]}
    document |= {"datagrams": [FLOOD], "duration_s": 12, "stack": {}}
    folder = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    rows = [r for r in compute(Analysis(folder)).fidelity if r.verdict is not Verdict.PASS]
    assert [row.verdict for row in rows] == [Verdict.WARNING] * len(rows)
    late = [row.check.partition(":")[0] for row in rows if "SYNs sent" in row.check]
    assert late
    for name in late:
        for end, count in COUNTED.items():
            assert json.loads((folder / f"traffic/{name}-{end}.json").read_text())[count] == 0
