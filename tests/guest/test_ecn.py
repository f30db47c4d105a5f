"""Marks of a managed queue: the kernel counts them, and senders react."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")

ECE, CWR = 64, 128


def test_marks_take_the_place_of_losses(tmp_path: Path) -> None:
    """CoDel marks packets and drops none; ACKs echo the marks, and the sender reports them."""
    flow = {"name": "flow", "from": "h1", "to": "h2", "congestion": "cubic"}
    document: dict[str, Any] = {**SMALL, "profile": "access-8mbit", "flows": [flow]}
    document["matrix"] = {
        "aqm": {"set": ["profile.forward.aqm"], "to": ["codel"]},
        "ecn": {"set": ["profile.forward.ecn"], "to": [True]},
    }
    document |= {"duration_s": 10, "stack": {"mtu_bytes": 1500, "ecn": True}}
    path = write_experiment(tmp_path, document)
    analysis = Analysis(carry_out(Path(f"{path}@aqm=codel,ecn=on"), tmp_path / "results"))
    found = compute(analysis)
    assert {row.verdict for row in found.fidelity} == {Verdict.PASS}
    marks = found.metrics["marks.forward"].value
    (connection,) = analysis.run.connections
    data = analysis.run.packets_between(
        connection.source_interface, connection, forward=True
    ).data()
    acks = analysis.run.packets_between(connection.source_interface, connection, forward=False)
    heard = int((data.flags & CWR > 0).sum())
    assert marks
    assert 1 < heard <= marks <= int((acks.flags & ECE > 0).sum())
    assert not analysis.queues["forward"].passed.dropped.any()


def test_dctcp_is_marked_above_a_threshold(tmp_path: Path) -> None:
    """With marks above 3 ms DCTCP loses nothing, and its 95th percentile is near 3 ms.

    Its SYN has a mark of its own, which only a receiver of DCTCP accepts.
    """
    point = "control=dctcp,line=50mbit-20ms,aqm=step"
    found = compute(Analysis(carry_out(Path(f"ecn/alone@{point}"), tmp_path)))
    metrics = {n: np.nan if m.value is None else m.value for n, m in found.metrics.items()}
    assert {row.verdict for row in found.fidelity} == {Verdict.PASS}
    assert metrics["marks.forward"] > 0
    assert metrics["drops_data.forward"] == 0
    assert 3 < metrics["sojourn_p95.forward"] < 5


def test_joined_segments_leave_apart(tmp_path: Path) -> None:
    """With gso_max_segs more segments leave at once, and no frame exceeds the MTU."""
    flow = {"name": "flow", "from": "h1", "to": "h2", "congestion": "bbr"}
    fields = {**SMALL, "profile": "access-8mbit", "flows": [flow]}
    gaps = []
    for most in (1, 64):
        document = {**fields, "stack": {"mtu_bytes": 1500, "gso_max_segs": most}}
        path = write_experiment(tmp_path, document)
        analysis = Analysis(carry_out(path, tmp_path / f"{most}"))
        assert {row.verdict for row in compute(analysis).fidelity} == {Verdict.PASS}
        (connection,) = analysis.run.connections
        sent = analysis.run.packets_between(
            connection.source_interface, connection, forward=True
        ).data()
        gaps.append(int((np.diff(sent.time_ns) == 0).sum()))
    assert gaps[0] < gaps[1]
