"""Three hosts joined by cables measure the same as one machine, in the guest."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.guest.in_guest import run_in_guest
from support.lab.lab_hosts import PLACES
from support.running import ROOT, measure, metrics, twoway, write_experiment

from twoway.contract.verdicts import GOOD, TELLS_LITTLE, VERDICTS, Verdicts
from twoway.guest.cache import Guest

pytestmark = [
    pytest.mark.skipif(
        shutil.which("sshd", path="/usr/sbin") is None, reason="lab hosts take openssh-server"
    ),
    pytest.mark.skipif(
        os.geteuid() != 0, reason="in a user's guest the hosts' setuid programs belong to nobody"
    ),
]

# The hosts share one kernel and its modules, so receive windows limit the flows.
EXCHANGE: dict[str, Any] = {
    "schema": 1,
    "title": "A slow two-way exchange",
    "summary": "For tests.",
    "topology": {"name": "two_node"},
    "profile": "access-8mbit",
    "stack": {"receive_window_packets": 12, "tail_loss_probe": False},
    "flows": [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "reno"},
        # The machine decides which of two simultaneous starts comes first.
        {"name": "right", "from": "h2", "to": "h1", "congestion": "reno", "start_s": 0.0123},
    ],
    "duration_s": 3,
    "warm_up_s": 1,
}


def carried_out(guest: Guest, folder: Path, how: str, **settings: Any) -> str:
    """Return the guest's report on changed hosts, or on other failures."""
    said = run_in_guest(
        guest, folder, ROOT / "tests/support/lab/multihost_in_guest.py", how, **settings
    )
    return "\n".join(line for line in said.splitlines() if line.startswith("multihost:"))


@pytest.mark.long
def test_three_hosts_are_one_machine(guest: Guest, tmp_path: Path) -> None:
    """In virtual time three hosts measure the same as one machine, and stay unchanged.

    Times agree to a microsecond: three observers make more system calls, of 256 ns each, than one.
    A sample of the smoothed round-trip time can therefore fall on the other side of an ACK;
    it agrees within the error that the run states.
    """
    experiment = write_experiment(tmp_path, EXCHANGE)
    places = {
        name: {"nodes": place["twoway_nodes"], "links": place["twoway_links"]}
        for name, place in PLACES.items()
    }
    run, results = tmp_path / "run", tmp_path / "results"
    shared = twoway(
        "lab", "share", experiment, "--places", json.dumps(places), "--to", run / "shares"
    )
    assert shared.returncode == 0, shared.stderr
    assert carried_out(guest, run, "shares") == ""
    merged = twoway("lab", "merge", experiment, run / "shares", "--results", results)
    assert merged.returncode == 0, merged.stderr
    several, alone = metrics(results / "latest"), measure(experiment, tmp_path / "alone")
    assert set(several["metrics"]) == set(alone["metrics"])
    for name, metric in alone["metrics"].items():
        got = several["metrics"][name]
        near = got["error"] if name.startswith("smoothed_rtt") else 1e-6
        assert got["value"] == pytest.approx(metric["value"], abs=near), name
    assert several["backend"] == "multihost"
    assert all(row["verdict"] == "pass" for row in several["fidelity"])
    clocks = json.loads((results / "latest/manifest.json").read_text())["clocks"]
    assert set(clocks) == {"h1", "h2", "r1", "r2"}
    for clock in clocks.values():
        assert abs(clock["offset_ns"]) <= clock["uncertainty_ns"]


@pytest.mark.lab
def test_multihost_playbook_leaves_hosts_as_before(guest: Guest, tmp_path: Path) -> None:
    """multihost.yml over SSH leaves a run with valid checksums, and three unchanged hosts.

    In real time, with three hosts on one processor, the clocks may be too uncertain for a verdict;
    the playbook then reports that.
    """
    run = tmp_path / "run"
    run.mkdir()
    write_experiment(run, EXCHANGE)
    # Time for Ansible in a guest that is slower than its host.
    room = {"memory_mib": 1536, "patience_s": 3000}
    assert carried_out(guest, run, "playbook", virtual_time=False, **room) == ""
    status, said = (run / "status.txt").read_text(), (run / "said.txt").read_text()
    assert (run / "merged").is_dir(), said
    judged = Verdicts.read(run / "merged" / VERDICTS)
    assert judged.exit_code in {GOOD, TELLS_LITTLE}, judged.misses
    assert (status == "0") == (judged.exit_code == GOOD), said
    assert ("the clocks of the hosts tell too little" in said) == (status != "0"), said
    document = metrics(run / "merged")
    assert document["backend"] == "multihost"
    rows = {row["check"]: row for row in document["fidelity"]}
    for name in ("left", "right"):
        (row,) = (rows[check] for check in rows if check.startswith(f"{name}: payload"))
        assert row["value"] == 0
    assert "bound of the difference between two machines' clocks, ns" in rows
