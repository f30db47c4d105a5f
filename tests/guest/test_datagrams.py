"""UDP sources send packets at their times, and each packet is counted once."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.columns import IntArray
from support.running import SMALL, measure, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.contract.plan import read_plan
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity

pytestmark = pytest.mark.usefixtures("guest")

UDP = {"name": "udp", "from": "h1", "to": "h2", "rate_mbit": 8}
INTERVAL_NS = 1_000_000
# Largest shift of a departure by other work of the guest at the same instant.
LATE_NS = 5000


def _run(folder: Path, name: str, **fields: Any) -> Path:
    where = folder / name
    where.mkdir()
    document = {**SMALL, "flows": [], "datagrams": [{**UDP, **fields}]}
    return carry_out(write_experiment(where, document), where / "results")


def _sent_ns(run: Path) -> IntArray:
    """Return when packets left, in ns after the start of traffic."""
    analysis = Analysis(run)
    return analysis.datagrams["udp"].sent.time_ns - analysis.run.start_ns


def test_a_constant_rate(tmp_path: Path) -> None:
    """Packets leave at equal intervals, from start to stop."""
    found = _sent_ns(_run(tmp_path, "one", start_s=0.25, stop_s=0.75))
    assert len(found) == 500
    assert np.abs(found - 250_000_000 - INTERVAL_NS * np.arange(500)).max() < LATE_NS


def test_a_poisson_process(tmp_path: Path) -> None:
    """Intervals are exponential; one seed repeats every byte, another shares no departure time."""
    first, again, other = (
        _run(tmp_path, name, arrivals="poisson", seed=seed, rate_mbit=40)
        for name, seed in (("first", 3), ("again", 3), ("other", 4))
    )
    digests = [
        [hashlib.sha256(path.read_bytes()).digest() for path in sorted((run / "pcap").iterdir())]
        for run in (first, again)
    ]
    assert digests[0] == digests[1]
    gaps = np.diff(_sent_ns(first))
    count = len(gaps)
    assert gaps.mean() == pytest.approx(INTERVAL_NS / 5, rel=4 / np.sqrt(count))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=4 * np.sqrt(2 / count))
    assert not np.isin(_sent_ns(other), _sent_ns(first)).any()


def test_datagrams_pause_between_bursts(tmp_path: Path) -> None:
    """Within an `on` period packets leave at equal intervals; pauses separate these periods."""
    pauses = {"mean_on_s": 0.05, "mean_off_s": 0.05}
    gaps = np.diff(_sent_ns(_run(tmp_path, "one", on_off=pauses, rate_mbit=80)))
    steady = np.abs(gaps - INTERVAL_NS // 10) < LATE_NS
    assert (gaps[~steady] > INTERVAL_NS // 10).all()
    assert 5 <= np.count_nonzero(~steady) <= 35
    assert np.count_nonzero(steady) > 2000


def test_packets_of_a_frame_leave_together(tmp_path: Path) -> None:
    """Each frame's packets leave back to back, one frame interval after the frame before."""
    run = _run(tmp_path, "one", film={"frames_per_s": 20}, rate_mbit=8)
    source = next(each for each in read_plan(run).sources if each.name == "source-udp")
    frames = [int(number) for number in source.run[source.run.index("--frames") + 1].split(",")]
    began_ns = np.repeat(50_000_000 * np.arange(len(frames)), frames)
    late_ns = _sent_ns(run) - began_ns
    assert len(late_ns) == sum(frames) == 1500
    assert late_ns.min() >= 0
    assert late_ns.max() < max(frames) * LATE_NS


def test_udp_beside_tcp(tmp_path: Path) -> None:
    """Beside two-way TCP, UDP has its own metrics, changes no others, and every check holds."""
    path = write_experiment(tmp_path, {**SMALL, "datagrams": [UDP]})
    document = measure(path, tmp_path / "results")
    assert document["found"] == []
    assert document["metrics"]["datagram_loss.udp"]["value"] == 0
    assert document["metrics"]["datagram_delay.udp"]["value"] > 0.0084
    assert all(row["verdict"] == "pass" for row in document["fidelity"])


@pytest.mark.parametrize("capture", ["kernel", "tcpdump"])
def test_a_backlog_that_outlasts_the_run(capture: str, tmp_path: Path) -> None:
    """With minutes of packets queued at the end, all captures are consistent.

    The packets' receiver has ended, and its host answers some of them with ICMP.
    """
    document = {
        **SMALL,
        "profile": "zhang-10ms",
        "stack": {"mtu_bytes": 1500},
        "flows": [],
        "datagrams": [{**UDP, "rate_mbit": 4}],
        "capture": capture,
    }
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    analysis = Analysis(run)
    waiting = analysis.queues["forward"].all_packets.count_at(np.array([analysis.run.stop_ns]))
    assert int(waiting[0]) > 700
    assert {row.verdict for row in fidelity(analysis)} == {Verdict.PASS}
