"""Queues that are not empty when the traffic ends: what is in them is not lost."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from support.running import SMALL, measure_points, write_experiment

from twoway.links.aqm import ActiveQueue

pytestmark = pytest.mark.usefixtures("guest")

# Four uploads of a program, and a call beside them, on a line of 0.2 Mbit/s.
SLOW = {"rate_mbit": 0.2, "delay_ms": 10, "queue_packets": 1000}
FAST = {"rate_mbit": 10, "delay_ms": 10, "queue_packets": 1000}
SEND = "for i in 1 2 3 4; do socat -u /dev/zero TCP:h2:80 & done; wait"
UPLOADS: dict[str, Any] = SMALL | {
    "profile": "slow",
    "stack": {"acks": "delayed", "timestamps": True},
    "flows": [],
    "programs": [
        {"name": name, "host": host, "command": ["sh", "-c", line], "exit_code": None}
        for name, host, line in (
            ("server", "h2", "exec socat -u TCP-LISTEN:80,fork OPEN:/dev/null"),
            ("client", "h1", f"sleep 1; {SEND}"),
        )
    ],
    "datagrams": [
        {"name": "voice", "from": "h1", "to": "h2", "packet_bytes": 200, "rate_mbit": 0.08}
    ],
    "duration_s": 12,
    "warm_up_s": 1,
}
# Words for the guest's kernel; `dualpi2` needs another one.
WORDS = sorted({*get_args(ActiveQueue.WORDS)} - {"dualpi2"})


def test_what_is_queued_at_the_end_is_not_lost(tmp_path: Path) -> None:
    """Behind each kind of queue all checks hold, and drop-tail, which drops nothing, loses none."""
    profile = {"schema": 1, "title": "Slow", "directions": {"forward": SLOW, "reverse": FAST}}
    (tmp_path / "slow.yml").write_text(yaml.safe_dump(profile))
    axis = {"aqm": {"set": ["profile.forward.aqm"], "to": WORDS}}
    path = write_experiment(tmp_path, UPLOADS | {"matrix": axis})
    found = measure_points(path, tmp_path / "results")
    assert sorted(found) == [f"small@aqm={word}" for word in WORDS]
    fidelity = [row for document in found.values() for row in document["fidelity"]]
    assert [row for row in fidelity if row["verdict"] != "pass"] == []
    document = found["small@aqm=drop-tail"]
    assert document["metrics"]["datagram_loss.voice"]["value"] == 0
    assert {each["forward"]["lost"] for each in document["found"]} == {0}
    assert document["metrics"]["queue_mean.forward"]["value"] > 50
