"""`twoway like` finds the path and the flows of a capture again, where both are known."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import LINUX, twoway, write_experiment
from support.runs import carry_out

pytestmark = pytest.mark.usefixtures("guest")

BACK = {"rate_mbit": 20, "delay_ms": 15, "queue_packets": 100}


@pytest.mark.parametrize(
    ("forward", "congestion", "agree"),
    [
        ({"rate_mbit": 8, "delay_ms": 15, "queue_packets": 30}, "cubic", 0.02),
        (
            {"rate_mbit": 20, "delay_ms": 15, "queue_packets": 200, "loss": {"percent": 1}},
            "reno",
            1,
        ),
    ],
    ids=["queue", "random-loss"],
)
def test_a_known_path_is_found(
    tmp_path: Path, forward: dict[str, Any], congestion: str, agree: float
) -> None:
    """Rate, delay, and queue or loss are the capture's; its run has the capture's metrics."""
    document = {
        **LINUX,
        "profile": {"directions": {"forward": forward, "reverse": BACK}},
        "flows": [{"name": "one", "from": "h1", "to": "h2", "congestion": congestion}],
        "duration_s": 2,
        "warm_up_s": 0,
    }
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    capture = run / "pcap/h1-eth0.pcap.zst"
    done = twoway("like", capture, "--results", "results", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    link = yaml.safe_load((tmp_path / "like.yml").read_text())["profile"]["directions"]["forward"]
    assert link["rate_mbit"] == forward["rate_mbit"]
    assert link["delay_ms"] == pytest.approx(forward["delay_ms"], abs=0.03)
    if loss := forward.get("loss"):
        assert link["loss"]["percent"] == pytest.approx(loss["percent"], abs=0.5)
    else:
        assert link["queue_packets"] == pytest.approx(forward["queue_packets"], abs=1)
    rows = {row[1]: row[2:] for row in json.loads(done.stdout)["rows"]}
    for name in ("rtt_min", "rtt_median"):
        theirs, ours = rows[name]
        assert ours == pytest.approx(theirs, rel=0.05)
    theirs, ours = rows["goodput"]
    assert ours == pytest.approx(theirs, rel=agree)
    again = twoway("like", capture, "--results", "results", cwd=tmp_path)
    assert again.returncode == 2
    assert "like.yml: exists already" in again.stderr
