"""Metrics of a run of two CUBIC flows equal those counted in other ways; one flow starts late.

The link's delay varies and lets packets overtake, so segments are sent again in vain. The steady
window is all of the traffic, and each sender's capture has its connection from the first SYN on:
capture-analysis measures the same packets. Other metrics are counted again from the captures,
packet by packet.
"""

from typing import Any

import numpy as np
import pytest
import yaml
from capture_analysis.one_capture.document import analyse
from support.running import SMALL, run_small, write_experiment

import twoway as api

pytestmark = pytest.mark.usefixtures("guest")

S = 1_000_000_000
LINE: dict[str, Any] = {
    "schema": 1,
    "title": "A line whose delay varies",
    "directions": {
        "forward": {"rate_mbit": 4, "delay_ms": 20, "queue_packets": 20}
        | {"impairments": {"jitter_ms": 8, "jitter_reorders": True}},
        "reverse": {"rate_mbit": 4, "delay_ms": 20, "queue_packets": 20},
    },
}
TWO: dict[str, Any] = SMALL | {
    "profile": "line",
    "stack": {"rack": False},
    "flows": [
        {"name": name, "from": "h1", "to": "h2", "congestion": "cubic", "start_s": start_s}
        | {"connect": "at-start"}
        for name, start_s in (("early", 0), ("late", 2.5))
    ],
    "duration_s": 12.5,
    "warm_up_s": 0,
}
NAMES = ("early", "late")
# A histogram's bins.
BIN = 1 / 128


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> api.Run:
    """The run."""
    folder = tmp_path_factory.mktemp("trusted")
    (folder / "line.yml").write_text(yaml.safe_dump(LINE), encoding="utf-8")
    return api.Run(run_small(write_experiment(folder, TWO, "two"), folder / "r"))


def test_as_capture_analysis_has_them(run: api.Run) -> None:
    """Round trips and retransmissions equal those that capture-analysis finds at the sender.

    The receiver reports each needless retransmission.
    """
    found = analyse(run.folder / "pcap/h1-eth0.pcap.zst")
    ports = {each.source_port: each.name for each in run.manifest.connections}
    for flow in found["flows"]:
        name = ports[int(flow["source"].rpartition(":")[2])]
        said = {key: flow["forward"][key]["value"] for key in flow["forward"]}
        for metric in ("retransmissions", "retransmitted", "rtt_min"):
            assert run.metrics[f"{metric}.{name}"] == pytest.approx(said[metric], rel=1e-12), metric
        for metric in ("rtt_median", "rtt_p95", "rtt_p99"):
            assert run.metrics[f"{metric}.{name}"] == pytest.approx(said[metric], rel=BIN), metric
        needless = run.metrics[f"retransmissions_needless.{name}"]
        assert needless == said["duplicates_told"]
    assert run.metrics["retransmissions_needless.late"] == 10


def new_bytes_by_second(run: api.Run) -> dict[str, list[int]]:
    """Count the bytes that are new to each connection's receiver, in each whole second."""
    ports = {each.source_port: each.name for each in run.manifest.connections}
    seen: dict[str, set[int]] = {name: set() for name in NAMES}
    found = {name: [0] * 12 for name in NAMES}
    for row in run.packets("h2-eth0").to_pylist():
        if row["receiver"] != "10.0.2.2" or not row["payload_bytes"]:
            continue
        name = ports[row["sender_port"]]
        new = set(range(row["seq"], row["seq"] + row["payload_bytes"])) - seen[name]
        seen[name] |= new
        second = (row["time_ns"] - run.manifest.clock.start_ns) // S
        if second < 12:
            found[name][second] += len(new)
    return found


def test_by_second_as_counted(run: api.Run) -> None:
    """Goodputs, shares and Jain's index per second follow from the bytes that arrive in it."""
    early, late = (new_bytes_by_second(run)[name] for name in NAMES)
    series = run.series("goodput_by_second.late").to_pydict()
    assert series["time_s"] == list(range(3, 12))
    assert series["goodput_by_second_mbit_per_s"] == [each * 8 / 1e6 for each in late[3:]]
    both = list(zip(early, late, strict=True))[3:]
    jain = [(a + b) ** 2 / (2 * (a * a + b * b)) for a, b in both]
    assert run.series("jain_index").to_pydict()["jain_index"] == pytest.approx(jain)
    metrics = run.metrics
    assert metrics["jain_index_median"] == pytest.approx(sorted(jain)[4])
    assert metrics["jain_index_least"] == pytest.approx(min(jain))
    assert metrics["goodput_least.early"] == min(early) * 8 / 1e6
    assert metrics["goodput_most.late"] == max(late) * 8 / 1e6
    # The first connection has the whole link until the other one starts.
    assert metrics["share_least.early"] == pytest.approx(
        min(a / (a + b) for a, b in zip(early, late, strict=True))
    )
    fair = next(second for second, (a, b) in enumerate(both, 3) if abs(a - b) <= 0.1 * (a + b))
    assert [metrics[f"convergence_time.{name}"] for name in NAMES] == [fair - 2.5] * 2


def test_sojourns_as_counted(run: api.Run) -> None:
    """A packet's sojourn is the time from its arrival to its departure."""
    entered, left = (
        {
            (row["sender_port"], row["ip_id"], row["seq"], row["ack"]): row["time_ns"]
            for row in run.packets(interface).to_pylist()
            if row["receiver"] == "10.0.2.2"
        }
        for interface in ("r1-eth0", "r1-eth1")
    )
    clock = run.manifest.clock
    ms = [
        (time_ns - entered[packet]) / 1e6
        for packet, time_ns in left.items()
        if clock.start_ns <= time_ns < clock.stop_ns
    ]
    assert len(ms) > 1000
    for name, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert run.metrics[f"sojourn_{name}.forward"] == pytest.approx(np.quantile(ms, q))


def test_the_kernels_own_round_trips(run: api.Run) -> None:
    """The smoothed round trip is the kernel's, from the samples of the steady window."""
    for name in NAMES:
        ms = run.series(f"smoothed_rtt.{name}").to_pydict()
        inside = [
            rtt
            for time_s, rtt in zip(ms["time_s"], ms["smoothed_rtt_ms"], strict=True)
            if 0 <= time_s < 12.5
        ]
        for quantile, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
            found = run.metrics[f"smoothed_rtt_{quantile}.{name}"]
            assert found == pytest.approx(np.quantile(inside, q))
