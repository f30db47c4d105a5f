"""Hosts with the preset `linux` have the kernel's own defaults."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.running import FLOW, LINUX, ROOT, measure, write_experiment
from support.runs import carry_out
from support.warm_command import twoway

from twoway.manifest import read_manifest

pytestmark = pytest.mark.usefixtures("guest")

READER = ROOT / "tests/support/guest/read_settings.py"
# Settings whose value the kernel draws.
DRAWN = {"net.ipv4.tcp_fastopen_key", "net.ipv6.conf.default.stable_secret"}


def reading(host: str) -> dict[str, Any]:
    """Describe a program that reads a host's settings."""
    command = ["python3", READER.name]
    return {"name": f"on-{host}", "host": host, "files": [READER.name], "command": command}


def differences(run: Path, host: str) -> dict[str, str]:
    """Return the settings of a host that differ from those of an untouched namespace."""
    found = json.loads((run / f"programs/on-{host}.out").read_text())
    here, untouched = found["here"], found["untouched"]
    assert len(untouched) > 400
    different = {}
    for name, value in here.items():
        *before, _ = parts = name.split(".")
        if before[-1:] == [f"{host}-eth0"]:  # an interface begins with the defaults, as lo does
            parts[-2] = "lo" if "neigh" in before else "default"
        if untouched.get(".".join(parts)) != value and name not in DRAWN:
            different[name] = " ".join(value.split())
    return different


@pytest.mark.parametrize(
    ("stack", "fields"),
    [
        ({}, {}),
        (
            {"sack": False, "ecn": True},
            {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_dsack": "0", "net.ipv4.tcp_ecn": "1"},
        ),
    ],
)
def test_no_other_setting_differs(
    tmp_path: Path, stack: dict[str, Any], fields: dict[str, str]
) -> None:
    """Each net.* that differs on a host is in the manifest, with the field that sets it."""
    shutil.copy(READER, tmp_path)
    document = {**LINUX, "programs": [reading("h1"), reading("h2")]}
    document["stack"] = {**LINUX["stack"], **stack}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    settings = [each for each in read_manifest(run).settings if each.name.startswith("net.")]
    for host in ("h1", "h2"):
        listed = {each.name: each.value for each in settings if host in (each.nodes or (host,))}
        found = differences(run, host)
        # The limit of TCP's memory is the same in every namespace.
        assert listed.pop("net.ipv4.tcp_mem")
        assert found.pop(f"net.ipv6.conf.{host}-eth0.mtu") == "1500"  # the device's own
        # The guest boots with it, and an untouched namespace has it.
        assert listed.pop("net.ipv6.conf.default.disable_ipv6") == "1"
        assert found == listed
        assert fields.items() <= listed.items()
        assert all(each.why == "stack.sack" for each in settings if each.name.endswith("sack"))


def test_buffers_have_linuxs_own_limits(tmp_path: Path) -> None:
    """The limits of buffers, which Linux takes from its memory, are those of a host with enough."""
    names = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]
    program = {"name": "limits", "host": "h1", "command": ["sysctl", "-n", *names]}
    document = {**LINUX, "flows": [], "programs": [program]}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    found = (run / "programs/limits.out").read_text().split()
    assert found == ["4096", "131072", "6291456", "4096", "16384", "4194304"]


@pytest.mark.parametrize(
    ("packets_a_ms", "first_bytes", "grows"),
    [(50, 131072, False), (50, 1310720, True), (20, 131072, True)],
)
def test_a_window_that_arrives_at_once_stays(
    tmp_path: Path, packets_a_ms: int, first_bytes: int, *, grows: bool
) -> None:
    """A buffer grows only if a ms of the trace carries much less than the first window."""
    (tmp_path / "fast.mahimahi").write_text("1\n" * packets_a_ms)
    one = {"rate": {"mahimahi": "fast.mahimahi"}, "delay_ms": 40, "queue_packets": 2000}
    sysctls = {"net.ipv4.tcp_rmem": f"4096 {first_bytes} 20000000"}
    document = {
        **LINUX,
        "profile": {"directions": {"forward": one, "reverse": one}},
        "stack": {**LINUX["stack"], "sysctls": sysctls},
    }
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    sink = json.loads((run / "traffic/one-sink.json").read_text())
    assert (sink["bytes_received"] > 10_000_000) == grows


def test_each_segment_has_its_ack_if_the_file_says_so(tmp_path: Path) -> None:
    """`acks: every-segment` holds under `linux`, too, which a check proves, as the run says."""
    document = {**LINUX, "stack": {**LINUX["stack"], "acks": "every-segment"}}
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")
    assert {row["verdict"] for row in found["fidelity"]} == {"pass"}
    assert "one: acks less data segments" in {row["check"] for row in found["fidelity"]}
    manifest = read_manifest(tmp_path / "results/latest")
    assert [each.why for each in manifest.settings if "ack_defer" in each.name] == ["stack.acks"]
    assert not [each for each in manifest.not_proven if "ACK" in each.what]


def test_the_papers_stack_is_another(tmp_path: Path) -> None:
    """A host of `papers` beside one of `linux` has the papers' settings, and its manifest none."""
    shutil.copy(READER, tmp_path)
    document = {**LINUX, "programs": [reading("h1"), reading("h2")]}
    document["hosts"] = {"h2": {"stack": {"preset": "papers", "timestamps": True}}}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    there = differences(run, "h2")
    assert there["net.ipv4.tcp_slow_start_after_idle"] == "0"
    assert there["net.ipv4.tcp_rmem"] == "4096 131072 33554432"
    assert "net.ipv4.tcp_slow_start_after_idle" not in differences(run, "h1")
    assert not [each for each in read_manifest(run).settings if "h2" in each.nodes]


def test_the_run_says_what_no_check_proves(tmp_path: Path) -> None:
    """A run of `linux` passes its checks, and says beside them that none proves its ACKs."""
    path = write_experiment(tmp_path, {**LINUX, "flows": [{**FLOW, "name": "two"}]})
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    said = "not proven: when data have an ACK from h2 ("
    assert said in done.stderr
    page = (tmp_path / "results/latest/report.html").read_text(encoding="utf-8")
    assert said in page
    assert page.count("<td><code>net.ipv4.tcp_mem</code></td>") == 1
