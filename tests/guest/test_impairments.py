"""Jitter, overtaking and copies behind a queue: all packets are within the profile's limits."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

pytestmark = pytest.mark.usefixtures("guest")


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
