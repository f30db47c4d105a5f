"""Traffic ends while packets are in queues and connections wait for an answer."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from support.running import SMALL, measure_points, write_experiment
from support.runs import carry_out

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.links.aqm import ActiveQueue
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute

# Queues that are not empty when the traffic ends: what is in them is not lost.

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


@pytest.mark.usefixtures("guest")
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


# Connections that are still not established when traffic ends.

FLOOD = {"name": "flood", "from": "h1", "to": "h2", "rate_mbit": 20}
FILM: dict[str, Any] = {
    "name": "film",
    "from": "h1",
    "to": "h2",
    "congestion": "cubic",
    "connect": "at-start",
    "transfers": {"per_s": 1, "mean_bytes": 3000, "seed": 1},
}
COUNTED = {"source": "bytes_sent", "sink": "bytes_received"}
BACK = {"name": "back", "from": "h2", "to": "h1", "congestion": "fixed", "window_packets": 4}


def _flooded(folder: Path, *flows: dict[str, Any]) -> tuple[Path, list[FidelityRow]]:
    """Run flows beside a flood; return the folder, and the rows of checks that do not pass."""
    line = {"rate_mbit": 0.5, "delay_ms": 20, "queue_packets": 10}
    profile = {"schema": 1, "title": "t", "directions": {"forward": line, "reverse": line}}
    (folder / "slow.yml").write_text(yaml.safe_dump(profile))
    document: dict[str, Any] = {**SMALL, "profile": "slow", "flows": [*flows]}
    document |= {"datagrams": [FLOOD], "duration_s": 12, "stack": {}}
    run = carry_out(write_experiment(folder, document), folder / "results")
    found = compute(Analysis(run)).fidelity
    return run, [row for row in found if row.verdict is not Verdict.PASS]


@pytest.mark.usefixtures("guest")
def test_data_that_never_arrive_are_a_warning(tmp_path: Path) -> None:
    """If all data of a transfer are lost, its sink has nothing, and the run warns."""
    transfers = {**FILM["transfers"], "seed": None}
    run, rows = _flooded(tmp_path, {**FILM, "transfers": transfers})
    assert [row.verdict for row in rows] == [Verdict.WARNING] * len(rows)
    (name,) = (row.check.partition(":")[0] for row in rows if "data sent, and none" in row.check)
    assert json.loads((run / f"traffic/{name}-sink.json").read_text())["bytes_received"] == 0


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("others", [[], [BACK]], ids=["alone", "beside a sink"])
def test_syns_without_a_connection_are_a_warning(
    tmp_path: Path, others: list[dict[str, Any]]
) -> None:
    """If all SYNs of a transfer are lost, it counts as having sent nothing, and the run warns."""
    folder, rows = _flooded(tmp_path, FILM, *others)
    assert [row.verdict for row in rows] == [Verdict.WARNING] * len(rows)
    late = [row.check.partition(":")[0] for row in rows if "SYNs sent" in row.check]
    assert late
    for name in late:
        for end, count in COUNTED.items():
            assert json.loads((folder / f"traffic/{name}-{end}.json").read_text())[count] == 0
