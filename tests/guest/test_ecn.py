"""Marks of queues: the kernel counts them, and senders react."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")


# Marks of a managed queue: the kernel counts them, and senders react.

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


# Prague behind queues that mark above a threshold, on the real kernel.


def carry_out_flow(
    folder: Path, seconds: int, *, delay_ms: int = 10, sample_ms: int = 10, **line: Any
) -> tuple[Analysis, dict[str, float]]:
    """Run a flow of prague on 50 Mbit/s, which is sound; return it with its metrics."""
    reverse = {"rate_mbit": 50, "delay_ms": delay_ms, "queue_packets": 166, "overhead_bytes": -14}
    directions = {"forward": reverse | line, "reverse": reverse}
    profile = {"schema": 1, "title": "Line", "directions": directions}
    (folder / "line.yml").write_text(yaml.safe_dump(profile))
    document: dict[str, Any] = SMALL | {
        "profile": "line",
        "stack": {"acks": "delayed", "sack": True, "ecn": True},
        "flows": [{"name": "flow", "from": "h1", "to": "h2", "congestion": "prague"}],
        "duration_s": seconds,
        "warm_up_s": 3,
        "observe": {"tcp_info_ms": sample_ms},
    }
    analysis = Analysis(carry_out(write_experiment(folder, document), folder / "results"))
    found = compute(analysis)
    assert found.sound, found.fidelity
    return analysis, {n: row.value for n, row in found.metrics.items() if row.value is not None}


def test_marks_hold_the_queue_at_the_threshold(tmp_path: Path) -> None:
    """With marks above 3 ms the line is full, the queue is little longer, and nothing is lost."""
    _, found = carry_out_flow(tmp_path, 6, aqm="codel", ecn=True, mark_above_ms=3)
    assert found["utilisation.forward"] > 0.99
    assert found["drops_data.forward"] == 0
    assert 3 < found["sojourn_p95.forward"] < 4


def test_the_window_after_a_loss(tmp_path: Path) -> None:
    """Behind a drop-tail queue of a BDP a loss leaves half of the window, and the line full."""
    analysis, found = carry_out_flow(tmp_path, 8, queue_packets=83)
    sockets = analysis.run.numbers("sockets/tcp-info.csv", "cwnd", "ssthresh")
    (last, *_) = np.flatnonzero(np.diff(sockets["ssthresh"]))[::-1]
    before, after = sockets["cwnd"][last], sockets["ssthresh"][-1]
    assert 0 <= before - 2 * after <= 1
    assert sockets["cwnd"][last + 1] == after
    assert found["utilisation.forward"] > 0.99


def test_short_round_trips_answer_as_those_of_25_ms(tmp_path: Path) -> None:
    """After 500 round trips of 3 ms, marks of a line that slows down cut once in 25 ms."""
    rates = {"rate_mbit": None, "rate": {"schedule": [[0, 50], [4, 25]]}}
    marks = {"aqm": "codel", "ecn": True, "mark_above_ms": 1}
    analysis, _ = carry_out_flow(tmp_path, 5, delay_ms=1, sample_ms=1, **rates, **marks)
    sockets = analysis.run.numbers("sockets/tcp-info.csv", "time_ns", "cwnd")
    cuts_ns = sockets["time_ns"][1:][np.diff(sockets["cwnd"]) < 0]
    cuts_ns = cuts_ns[cuts_ns > sockets["time_ns"][0] + 4 * 10**9]
    assert len(cuts_ns) > 4
    assert np.diff(cuts_ns).min() >= 24_000_000  # 25 ms, seen each ms
