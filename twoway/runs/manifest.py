"""manifest.json: a run's description for the analysis, and origins."""

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from twoway.backends.backend import Backend
from twoway.backends.sandbox import GUEST_PATH
from twoway.contract.clock import START_NS
from twoway.errors import RunError
from twoway.paths import ROOT
from twoway.plan.timing import stop_ns
from twoway.runs.captures import packed_name
from twoway.spec.experiment import Direction
from twoway.spec.point import Case, spec_hash
from twoway.spec.topology import Interface

# File in a deployed checkout: the revision of the checkout it was copied from.
REVISION_FILE = "REVISION"
_TOOLS = {
    "iproute2": ["ip", "-V"],
    "tc": ["tc", "-V"],
    "tcpdump": ["tcpdump", "--version"],
    "iperf3": ["iperf3", "--version"],
    "ethtool": ["ethtool", "--version"],
    "bubblewrap": ["bwrap", "--version"],
}


def build_manifest(
    case: Case, plan: dict[str, Any], backend: Backend, folder: Path
) -> dict[str, Any]:
    """Describe a run that has just ended.

    The caller adds name, identity and timing.

    Raises: RunError if an artifact of the plan is missing.
    """
    return {
        "schema": 1,
        **backend.description(),
        **describe(case),
        "git": git_revision(),
        "tools": tool_versions(),
        "nodes": {"hosts": case.graph.hosts, "routers": case.graph.routers},
        "interfaces": [
            {"node": i.node, "name": i.name, "address": str(i.address.ip), "peer": i.peer_name}
            for i in case.graph.interfaces
        ],
        "queues": _queues(case),
        "connections": _connections(case),
        "captures": {c["interface"]: c["direction"] for c in plan["captures"]},
        **_clocks(folder),
        "capture_drops": _capture_drops(plan, folder),
        "files": _files(plan, folder),
    }


def describe(case: Case) -> dict[str, Any]:
    """Describe the experiment in a manifest, independent of backend and run."""
    experiment = case.experiment.model_dump(by_alias=True, mode="json")
    return {
        "experiment": {"id": case.id, **experiment},
        "point": dict(case.point),
        "spec_sha256": spec_hash(case),
        "clock": {
            "start_ns": START_NS,
            "steady_ns": START_NS + round(case.experiment.warm_up_s * 1e9),
            "stop_ns": stop_ns(case),
        },
        "profile": case.profile.model_dump(by_alias=True, mode="json"),
    }


def _queues(case: Case) -> list[dict[str, Any]]:
    queues = []
    for queue in case.graph.placed_queues:
        direction, interface = case.profile.directions[queue.direction], queue.interface
        queues.append(
            {
                "direction": queue.name,
                "interface": interface.name,
                "rate_bit": round(direction.start_mbit * 1e6),
                "reallocations": _reallocations(direction, interface),
                "leaves_at_start": direction.leaves_at_start,
                "credit_ns": direction.credit_ns,
                "limit_packets": direction.queue_packets,
                "overhead_bytes": direction.overhead_bytes,
                "cell_bytes": direction.cell_bytes,
                "cell_overhead_bytes": direction.cell_overhead_bytes,
                "taps_in": [i.name for i in case.graph.of(interface.node) if i != interface],
                "delay_ns": round(direction.delay_ms * 1e6),
            }
        )
    return queues


def _reallocations(direction: Direction, interface: Interface) -> str | None:
    """Return the file with a DTM channel's reallocations, else None."""
    return f"qdisc/{interface.node}-reallocations.csv" if direction.dtm else None


def _connections(case: Case) -> list[dict[str, Any]]:
    graph = case.graph
    return [
        {
            "name": c.name,
            "direction": c.direction,
            "ack_direction": c.ack_direction,
            "source": str(graph.address(c.flow.from_)),
            "destination": str(graph.address(c.flow.to)),
            "source_port": c.source_port,
            "port": c.port,
            "source_interface": graph.of(c.flow.from_)[0].name,
            "sink_interface": graph.of(c.flow.to)[0].name,
            "generator": c.flow.generator,
            "congestion": c.congestion,
            "window_packets": c.flow.window_packets,
            "paced": not c.always_has_data,
            "start_ns": START_NS + round(c.start_s * 1e9),
        }
        for c in case.connections
    ]


def _capture_drops(plan: dict[str, Any], folder: Path) -> dict[str, int]:
    drops = {}
    for capture in plan["captures"]:
        said = (folder / f"log/{capture['name']}.err").read_text()
        match = re.search(r"(\d+) packets? dropped by kernel", said)
        if not match:
            raise RunError(f"{capture['name']}: did not say how many packets it lost: {said!r}")
        drops[capture["interface"]] = int(match[1])
    return drops


def _clocks(folder: Path) -> dict[str, Any]:
    """Read how far the kernel's clock is ahead of the plan's.

    Of a multi-host run this is the reference host's clock; each node's clock relative to that is
    added (lab/multihost_run.py).
    """
    try:
        said = json.loads((folder / "clock.json").read_text())
    except FileNotFoundError:
        said = {}
    return {"clock_offset_ns": said.get("offset_ns", 0), "clocks": said.get("nodes", {})}


def _files(plan: dict[str, Any], folder: Path) -> list[str]:
    """List the artifacts of a plan; raise RunError if one is missing."""
    programs = plan["recorders"] + plan["sinks"] + plan["sources"] + plan["timed_sources"]
    expected = [packed_name(c["interface"]) for c in plan["captures"]]
    expected += [p["stdout"] for p in programs if "stdout" in p]
    expected += [s["save"] for s in plan["setup"] + plan["teardown"] if "save" in s]
    expected += [f"stack/{s['name']}.json" for s in plan["setup"] if "check" in s]
    expected += ["plan.json", "sockets/tcp-info.csv", "sockets/queues.csv", "log/console.txt"]
    missing = [name for name in expected if not (folder / name).is_file()]
    if missing:
        raise RunError(f"the guest left no {', '.join(missing)}")
    return sorted(expected)


def git_revision() -> str:
    """Read the checkout's revision, -dirty if changed, or "unknown"."""
    if (ROOT / REVISION_FILE).is_file():
        return (ROOT / REVISION_FILE).read_text("utf-8").strip()
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


@cache
def tool_versions() -> dict[str, str]:
    """Ask each tool for its version.

    Returns: the first line of the answer, by tool.
    """
    versions = {}
    environment = {**os.environ, "PATH": GUEST_PATH}
    for name, argv in _TOOLS.items():
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, check=False, env=environment
            )
        except OSError:
            versions[name] = "missing"
            continue
        versions[name] = (done.stdout or done.stderr).splitlines()[0].strip()
    return versions
