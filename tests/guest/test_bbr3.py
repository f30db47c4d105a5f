"""BBR's states against the draft's test cases, on the real kernel.

The line has 20 Mbit/s and 40 ms, which is a BDP of 66 packets. The gains that the module tells
name its state, but for CRUISE and REFILL, which have the same.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import ROOT, SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.network import START_NS
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

BDP = 66
STATES = {
    (710, 512): "STARTUP",
    (128, 512): "DRAIN",
    (230, 512): "DOWN",
    (256, 512): "CRUISE",
    (320, 576): "UP",
    (256, 128): "PROBE_RTT",
}
SAMPLES_A_SECOND = 100


@dataclass(frozen=True)
class Flow:
    """A run of one flow of bbr3 with its state each 10 ms."""

    folder: Path

    @cached_property
    def phases(self) -> list[tuple[str, float]]:
        """Each state that follows another, with the second in which it begins."""
        found: list[tuple[str, float]] = []
        lines = (self.folder / "programs/states.out").read_text().splitlines()
        for i, line in enumerate(lines):
            for told in json.loads(line).values():
                state = STATES[told["pacing_gain"], told["cwnd_gain"]]
                if not found or found[-1][0] != state:
                    found.append((state, i / SAMPLES_A_SECOND))
        return found

    def phase(self, state: str) -> tuple[float, float]:
        """Return when a state begins for the first time, and when it ends, in seconds."""
        at = [name for name, _ in self.phases].index(state)
        return self.phases[at][1], self.phases[at + 1][1]

    def metric(self, name: str) -> float:
        """Return a metric of the run, which is sound."""
        found = compute(Analysis(self.folder))
        assert found.sound, found.fidelity
        value = found.metrics[name].value
        assert value is not None
        return value


def carry_out_flow(folder: Path, seconds: int, rate: int | None = None, **more: Any) -> Flow:
    """Run a flow of bbr3: with the rate of its application, and with more fields of its line."""
    line = {"rate_mbit": 20, "delay_ms": 20, "queue_packets": 10 * BDP, "overhead_bytes": -14}
    directions = {"forward": line | more, "reverse": line}
    profile = {"schema": 1, "title": "Line", "directions": directions}
    (folder / "line.yml").write_text(yaml.safe_dump(profile))
    (folder / "states.py").write_text((ROOT / "tests/support/guest/vegas_info.py").read_text())
    lines = str(seconds * SAMPLES_A_SECOND)
    command = ["python3", "-I", "states.py", str(1 / SAMPLES_A_SECOND), lines]
    states = {"name": "states", "host": "h1", "command": command, "files": ["states.py"]}
    flow = {"name": "flow", "from": "h1", "to": "h2", "congestion": "bbr3"}
    document: dict[str, Any] = SMALL | {
        "profile": "line",
        "stack": {"acks": "delayed", "sack": True, "ecn": True},
        "flows": [flow | ({"rate_mbit": rate} if rate else {})],
        "programs": [states | {"exit_code": None}],
        "duration_s": seconds,
        "warm_up_s": 0,
        "observe": {"tcp_info_ms": 10},
    }
    return Flow(carry_out(write_experiment(folder, document), folder / "results"))


@pytest.mark.usefixtures("guest")
def test_cycle_is_the_drafts(tmp_path: Path) -> None:
    """STARTUP leaves a BDP of queue, and the probes come and last as the draft says."""
    flow = carry_out_flow(tmp_path, 6)
    # DOWN may be over within a sample, as after DRAIN and PROBE_RTT.
    states = [state for state, _ in flow.phases if state != "DOWN"]
    assert states == ["STARTUP", "DRAIN", "CRUISE", "UP", "CRUISE", "PROBE_RTT", "CRUISE"]
    # 2 to 3 s after DRAIN a probe for bandwidth, which a REFILL of a round trip precedes.
    ended = flow.phase("DRAIN")[1]
    assert ended + 2 < flow.phase("UP")[0] < ended + 3.2
    # Three rounds without growth at five quarters of the rate.
    up_s = flow.phase("UP")[1] - flow.phase("UP")[0]
    assert 3 * 0.04 < up_s < 5 * 0.04
    start, end = flow.phase("PROBE_RTT")
    assert start == pytest.approx(5, abs=0.1)
    assert 0.2 < end - start < 0.3
    sockets = Analysis(flow.folder).run.numbers("sockets/tcp-info.csv", "time_ns", "cwnd")
    at_s = (sockets["time_ns"] - START_NS) / 1e9
    assert set(sockets["cwnd"][(at_s > start + 0.05) & (at_s < end - 0.02)]) == {BDP // 2 + 1}
    assert BDP < flow.metric("queue_peak.forward") < 1.25 * BDP
    assert flow.metric("goodput.flow") > 0.95 * 19.467


@pytest.mark.usefixtures("guest")
def test_losses_end_startup_and_bound_probes(tmp_path: Path) -> None:
    """Behind a fifth of a BDP of buffer STARTUP and UP end by losses, before their three rounds."""
    flow = carry_out_flow(tmp_path, 5, queue_packets=BDP // 5)
    assert flow.phase("STARTUP")[1] < 0.35
    start, end = flow.phase("UP")
    assert end - start < 3 * 0.04
    assert flow.metric("retransmitted.flow") < 0.02
    assert flow.metric("goodput.flow") > 0.93 * 19.467


@pytest.mark.usefixtures("guest")
def test_marks_are_losses(tmp_path: Path) -> None:
    """A queue that marks waits above 3 ms keeps its packets below that, and drops none.

    The first marks end STARTUP, so that the first probe finds the rest of the rate.
    """
    flow = carry_out_flow(tmp_path, 4, aqm="codel", ecn=True, mark_above_ms=3)
    assert flow.metric("marks.forward") > 0
    assert flow.metric("drops_data.forward") == 0
    assert flow.metric("sojourn_p95.forward") < 3
    assert flow.metric("goodput.flow") > 0.75 * 19.467


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(("lost", "states"), [(0, {"STARTUP"}), (10, {"STARTUP", "DRAIN", "UP"})])
def test_application_limits_only_plateaus(tmp_path: Path, lost: int, states: set[str]) -> None:
    """A flow that its application limits stays in STARTUP until it loses packets."""
    loss = {"loss": {"percent": lost}} if lost else {}
    flow = carry_out_flow(tmp_path, 2, rate=8, **loss)
    assert {state for state, _ in flow.phases} & {"STARTUP", "DRAIN", "UP"} == states
