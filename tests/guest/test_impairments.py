"""Links drop, copy, delay and hold packets as their profiles say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.links.half_duplex import Medium
from twoway.links.policer import Policer
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.fidelity import fidelity

pytestmark = pytest.mark.usefixtures("guest")


# Jitter, overtaking and copies behind a queue: all packets are within the profile's limits.


def test_packets_arrive_within_their_jitter(tmp_path: Path) -> None:
    """With jitter forward and losses in reverse all checks pass; with less jitter one fails."""
    flows = [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "reno"},
    ]
    document: dict[str, Any] = {**SMALL, "profile": "impaired-8mbit", "flows": flows}
    document["matrix"] = {
        "jitter": {"set": ["profile.forward.impairments.jitter_ms"], "to": [8]},
        "loss": {"set": ["profile.reverse.loss.percent"], "to": [1]},
    }
    document |= {"duration_s": 10, "stack": {"mtu_bytes": 1500}}
    path = write_experiment(tmp_path, document)
    folder = carry_out(Path(f"{path}@jitter=8,loss=1"), tmp_path / "results")
    found = compute(Analysis(folder))
    assert {row.verdict for row in found.fidelity} == {Verdict.PASS}
    assert found.metrics["link_overtaking.left"].value == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["profile"]["directions"]["forward"]["impairments"]["jitter_ms"] = 7.992
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (row,) = [r for r in compute(Analysis(folder)).fidelity if "too early" in r.check]
    assert row.verdict is Verdict.FAIL


def test_acks_that_look_alike_may_overtake(tmp_path: Path) -> None:
    """Equal ACKs that overtake one another are not counted as mistimed packets."""
    point = Path("rfc9743/reordering@control=reno,overtake=20")
    folder = carry_out(point, tmp_path / "results")
    (row,) = [r for r in compute(Analysis(folder)).fidelity if "too early" in r.check]
    assert row.verdict is Verdict.PASS, row


@pytest.mark.parametrize("acks", ["every-segment", "delayed"])
def test_rejected_segments_are_not_counted(tmp_path: Path, acks: str) -> None:
    """If segments overtake one another, the sink has what its TCP took, and the run says the rest.

    With time stamps the receiver rejects segments that another one overtook.
    """
    link = {"rate_mbit": 20, "delay_ms": 100, "queue_packets": 200}
    jitter = {"jitter_ms": 30, "jitter_reorders": True}
    profile = {"schema": 1, "title": "Jitter that reorders"}
    both = ("forward", "reverse")
    profile["directions"] = {key: {**link, "impairments": jitter} for key in both}
    (tmp_path / "jitter.yml").write_text(json.dumps(profile))
    document: dict[str, Any] = {**SMALL, "profile": "jitter", "duration_s": 6, "warm_up_s": 2}
    document["stack"] = {"acks": acks, "timestamps": True}
    document["flows"] = [{"name": "one", "from": "h1", "to": "h2", "congestion": "cubic"}]
    document["matrix"] = {"seed": {"set": ["seed"], "to": [1, 3]}}
    path = write_experiment(tmp_path, document)
    for seed in (1, 3):
        folder = carry_out(Path(f"{path}@seed={seed}"), tmp_path / "results")
        found = compute(Analysis(folder)).fidelity
        said = {row.check: row for row in found if row.verdict is not Verdict.PASS}
        assert {row.verdict for row in said.values()} == {Verdict.WARNING}
        (row,) = (row for check, row in said.items() if check.startswith("h2: segments rejected"))
        assert "(PAWSEstab)" in row.check
        assert row.value
        assert row.value > 50


# A policer drops what its token bucket refuses, and the queue behind it drops when full.

# A bucket that passes more at once than the queue holds, on a link of the same rate.
TIGHT = {
    "rate_mbit": 131,
    "delay_ms": 8.416,
    "queue_packets": 8,
    "policer": {"rate_mbit": 120, "burst_bytes": 100_000},
}


def _rows(analysis: Analysis) -> dict[str, Verdict]:
    return {row.check: row.verdict for row in fidelity(analysis)}


def test_each_packet_has_the_fate_of_the_bucket(tmp_path: Path) -> None:
    """A policer's drops and its queue's are distinguished; another bucket would drop others."""
    reverse: dict[str, Any] = {"rate_mbit": 131, "delay_ms": 8.416, "queue_packets": 1000}
    profile = {"schema": 1, "title": "t", "directions": {"forward": TIGHT, "reverse": reverse}}
    (tmp_path / "tight.yml").write_text(yaml.safe_dump(profile))
    flows = [{**flow, "congestion": "cubic", "window_packets": None} for flow in SMALL["flows"]]
    run = carry_out(
        write_experiment(tmp_path, {**SMALL, "profile": "tight", "flows": flows}),
        tmp_path / "results",
    )
    analysis = Analysis(run)
    rows = _rows(analysis)
    assert set(rows.values()) == {Verdict.PASS}
    (policed,) = (check for check in rows if "token bucket" in check)
    (dropped,) = (check for check in rows if check.startswith("forward: drops in the captures"))
    kernel = [int(check.split()[at]) for check, at in ((policed, 1), (dropped, -1))]
    assert 0 < kernel[0] < kernel[1]
    link = analysis.run.manifest.profile.directions["forward"]
    policer = link.elements.find(Policer)
    assert policer
    larger = policer.model_copy(update={"burst_bytes": policer.burst_bytes + 9194})
    changed = link.model_copy(update={"policer": larger})
    analysis.run.manifest.profile.directions["forward"] = changed
    assert _rows(analysis)[policed] is Verdict.FAIL


# A half-duplex link: each packet leaves when its end has the medium and has sent it.

FLOWS: list[dict[str, Any]] = [
    {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic", "count": 2},
    {"name": "right", "from": "h2", "to": "h1", "congestion": "bbr"},
]


def _run(
    folder: Path,
    shared: dict[str, Any],
    patch: pytest.MonkeyPatch,
    names: tuple[str, str] = ("forward", "reverse"),
    **fields: Any,
) -> Path:
    end = {"rate_mbit": 8, "delay_ms": 4, "queue_packets": 20, "overhead_bytes": 24}
    back = {**end, "rate_mbit": 3.1, "queue_packets": 11}
    directions = dict(zip(names, (end, back), strict=True))
    profile = {"schema": 1, "title": "t", "half_duplex": shared, "directions": directions}
    (folder / "shared.yml").write_text(yaml.safe_dump(profile))
    patch.setattr("twoway.description.referred_files.PROFILES", folder)
    document: dict[str, Any] = {**SMALL, "profile": "shared", "flows": FLOWS, "duration_s": 8}
    document |= {"stack": {"mtu_bytes": 1500}, **fields}
    return carry_out(write_experiment(folder, document), folder / "results")


@pytest.mark.parametrize("turn", [1, 5])
def test_departures_are_those_of_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    """With losses and two rates all departures are as replayed; another gap or turn fails."""
    folder = _run(tmp_path, {"gap_us": 130.007, "turn_packets": turn}, monkeypatch)
    analysis = Analysis(folder)
    for view in analysis.queues.values():
        assert len(view.passed.departures) > 1000
        assert view.passed.dropped.any()
        assert not view.error_ns.any()
    assert {row.verdict for row in compute(analysis).fidelity} == {Verdict.PASS}
    for other in (Medium(130_008, turn), Medium(130_007, turn + 1)):
        monkeypatch.setattr("twoway.measure.analysis.medium_of", lambda _, other=other: other)
        errors = [view.error_ns for view in Analysis(folder).queues.values()]
        assert np.count_nonzero(np.concatenate(errors)) > 1000


def test_each_link_is_a_medium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three half-duplex links have a medium each: every departure is as replayed."""
    flows = [
        {**FLOWS[number % 2], "name": f"f{number}", "from": "sv", "to": f"c{number}"}
        for number in (1, 2, 3)
    ]
    folder = _run(
        tmp_path,
        {"gap_us": 50},
        monkeypatch,
        ("down", "up"),
        topology={"name": "client_server"},
        flows=flows,
    )
    analysis = Analysis(folder)
    assert len(analysis.queues) == 6
    for view in analysis.queues.values():
        assert len(view.passed.departures) > 500
        assert not view.error_ns.any()


def test_the_medium_is_held_for_gaps_and_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In turns of one packet, a direction holds the medium for transmissions and a gap each."""
    folder = _run(tmp_path, {"gap_us": 130}, monkeypatch)
    analysis = Analysis(folder)
    run, found = analysis.run, compute(analysis).metrics
    for name, view in analysis.queues.items():
        left_ns = view.passed.left_ns[view.passed.departures]
        packets = np.count_nonzero((left_ns >= run.steady_ns) & (left_ns < run.stop_ns))
        busy, transmits = (found[f"{m}.{name}"].value or 0 for m in ("medium_busy", "utilisation"))
        gaps_ns = (busy - transmits) * run.window_ns
        # A gap more or less at each end of the window.
        assert gaps_ns == pytest.approx(130_000 * packets, abs=260_001)
