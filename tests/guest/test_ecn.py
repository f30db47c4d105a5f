"""Marks of a managed queue: the kernel counts them, and senders answer."""

from pathlib import Path
from typing import Any

import pytest
from running import SMALL, carry_out, write_experiment

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")

ECE, CWR = 64, 128


def test_marks_take_the_place_of_losses(tmp_path: Path) -> None:
    """CoDel drops no packet and marks some; ACKs echo that, and the sender reports it."""
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
    data = analysis.run.between(connection.source_interface, connection, forward=True).data()
    acks = analysis.run.between(connection.source_interface, connection, forward=False)
    heard = int((data.flags & CWR > 0).sum())
    assert marks
    assert 1 < heard <= marks <= int((acks.flags & ECE > 0).sum())
    assert not analysis.queues["forward"].passed.dropped.any()
