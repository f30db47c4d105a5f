"""Run the command `twoway` as a user does, on a small experiment or another."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]

# A second and a half of two-way traffic on a fast link: enough of everything, soon over.
SMALL: dict[str, Any] = {
    "schema": 1,
    "title": "A small two-way exchange",
    "summary": "For tests.",
    "topology": {"name": "two_node"},
    "profile": "atm-131mbit",
    "stack": {"mtu_bytes": 9180},
    "flows": [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "fixed", "window_packets": 28},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "fixed", "window_packets": 20},
    ],
    "duration_s": 1.5,
    "warm_up_s": 0.5,
}
# A sweep of it, shorter still.
WINDOWS = (4, 6, 8, 10, 12, 14)
SWEPT: dict[str, Any] = {
    **SMALL,
    "duration_s": 0.3,
    "warm_up_s": 0.1,
    "matrix": {
        "window": {
            "set": ["flows.left.window_packets", "flows.right.window_packets"],
            "to": list(WINDOWS),
        }
    },
}
# On a line this slow what the machine adds to a packet is next to nothing.
SLOW: dict[str, Any] = SMALL | {
    "profile": "zhang-10ms",
    "stack": {"mtu_bytes": 490, "tail_loss_probe": False},
    "flows": [
        {"name": "left", "from": "h1", "to": "h2", "congestion": "fixed", "window_packets": 10},
        {"name": "right", "from": "h2", "to": "h1", "congestion": "fixed", "window_packets": 8},
    ],
    "duration_s": 30,
    "warm_up_s": 5,
}


def write_experiment(folder: Path, document: dict[str, Any], name: str = "small") -> Path:
    """Write an experiment file."""
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def twoway(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, and keep what it says."""
    return subprocess.run(
        [sys.executable, "-m", "twoway.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=settings.pop("cwd", ROOT),
        **settings,
    )


def run_small(experiment: Path, results: Path, **settings: Any) -> Path:
    """Run an experiment that must end well; its folder."""
    done = twoway("run", experiment, "--results", results, **settings)
    assert done.returncode == 0, done.stderr
    return (results / "latest").resolve()


def metrics(folder: Path) -> dict[str, Any]:
    """A run's metrics.json."""
    document: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return document


def guest_processes(folder: Path) -> list[str]:
    """Command lines of processes on the host that name a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line and "bwrap" in line:
            found.append(line)
    return found
