"""Run the command `twoway` as a user does, on a small experiment or any other."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from support.runs import carry_out, kept
from twoway.contract.verdicts import Verdicts
from twoway.description.point import point_names
from twoway.errors import SpecError
from twoway.manifest import read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report.judging import judge_statements
from twoway.report.report import analyse_run
from twoway.runs.points import load_point

ROOT = Path(__file__).resolve().parents[2]

# A second and a half of two-way traffic on a fast link: enough packets in little time.
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
# A claim that every run meets, because every efficiency is a share.
CLAIMED: dict[str, Any] = {
    "claim": "The efficiency is a share.",
    "where": "nowhere",
    "metric": "efficiency.left",
    "value": 0.55,
    "print": "digits",
    "precision": 0.5,
    "reading": "a share",
}
# A claim that no run meets, and whose difference its file does not list.
MISSED: dict[str, Any] = {**CLAIMED, "claim": "Nothing arrives.", "value": 0, "precision": 0}
# A sweep of the small experiment with less traffic.
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
# On a link this slow the machine's own delay per packet is negligible.
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

# A flow between hosts that have the kernel's own defaults.
FLOW = {"name": "one", "from": "h1", "to": "h2", "congestion": "cubic"}
LINUX: dict[str, Any] = {
    "schema": 1,
    "title": "Hosts with the kernel's own defaults",
    "topology": {"name": "two_node"},
    "profile": "access-1mbit-up",
    "stack": {"preset": "linux"},
    "flows": [FLOW],
    "duration_s": 2,
    "warm_up_s": 1,
}


def write_experiment(folder: Path, document: dict[str, Any], name: str = "small") -> Path:
    """Write an experiment's file."""
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def problems_of(path: str | Path) -> list[str]:
    """List the problems of an experiment's file and points, each from the field's name on."""
    try:
        for name in point_names(str(path)):
            load_point(name)
    except SpecError as error:
        return [problem.partition(": ")[2] for problem in error.problems]
    return []


def ran(argv: Sequence[str | Path], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a program and keep its output as text; without `check` any status will do."""
    settings = {"check": False, "capture_output": True, "text": True, **settings}
    return subprocess.run(argv, **settings)  # noqa: PLW1510 - among the settings


def twoway(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, and keep its output."""
    return ran(
        [sys.executable, "-m", "twoway.cli", *map(str, arguments)], **{"cwd": ROOT, **settings}
    )


def run_small(experiment: Path, results: Path) -> Path:
    """Run an experiment, or copy its kept run, and write its report; return its folder."""
    folder = carry_out(experiment, results)
    analyse_run(folder)
    return folder


def measure(experiment: str | Path, results: Path) -> dict[str, Any]:
    """Measure an experiment's run, new or kept; return metrics.json's content, without pictures."""
    folder = carry_out(experiment, results)
    analyse_run(folder, page=False)
    return metrics(folder)


def carry_out_points(experiment: Path, results: Path) -> None:
    """Run all points of an experiment, or copy their kept runs, for a command that keeps runs."""
    for name in point_names(str(experiment)):
        carry_out(name, results)


def measure_points(experiment: Path, results: Path) -> dict[str, dict[str, Any]]:
    """Measure all points of an experiment; return each metrics.json's content by its point's id."""
    names = point_names(str(experiment))
    return {f"{experiment.stem}@{name.partition('@')[2]}": measure(name, results) for name in names}


def judge_kept(name: str) -> tuple[Verdicts, str]:
    """Judge a run of an experiment, found or made by `kept`; return the kernel's release."""
    with kept(name) as folder:
        found = compute(Analysis(folder))
        return judge_statements(read_manifest(folder), found, lambda _run: None), found.kernel


def metrics(folder: Path) -> dict[str, Any]:
    """Return a run's metrics.json."""
    document: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return document


def guest_processes(folder: Path) -> list[str]:
    """Return the words of sandboxes' processes on the host that name a folder."""
    every = _words_of_processes().values()
    lines = (b" ".join(words).decode(errors="replace") for words in every)
    return [line for line in lines if str(folder) in line and "bwrap" in line]


def processes_with(word: str) -> list[int]:
    """List the processes on the host that have a word among their arguments."""
    return [pid for pid, words in _words_of_processes().items() if word.encode() in words]


def _words_of_processes() -> dict[int, list[bytes]]:
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found[int(entry.parent.name)] = entry.read_bytes().split(b"\0")
    return found
