"""Prague behind queues that mark above a threshold, on the real kernel."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")


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
