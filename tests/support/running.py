"""Run the command `twoway` as a user does, on a small experiment or any other."""

import fcntl
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from documents import complaints

from twoway.backends.uml import Uml
from twoway.contract.metrics import Metrics
from twoway.contract.verdicts import Verdicts
from twoway.description.point import point_names
from twoway.errors import SpecError
from twoway.guest.cache import built_guest
from twoway.manifest import read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.paths import cache
from twoway.report.judging import judged
from twoway.report.report import analyse_run
from twoway.runs.points import load_point
from twoway.runs.run import kept_run, run_experiment

ROOT = Path(__file__).resolve().parents[2]
KEPT_S = 7 * 24 * 3600

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


def write_experiment(folder: Path, document: dict[str, Any], name: str = "small") -> Path:
    """Write an experiment's file."""
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def problems_of(path: str) -> list[str]:
    """List the problems of an experiment's file and points, each from the field's name on."""
    try:
        for name in point_names(path):
            load_point(name)
    except SpecError as error:
        return [problem.partition(": ")[2] for problem in error.problems]
    return []


def twoway(*arguments: str | Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does, and keep its output."""
    return subprocess.run(
        [sys.executable, "-m", "twoway.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=settings.pop("cwd", ROOT),
        **settings,
    )


def run_small(experiment: Path, results: Path, **settings: Any) -> Path:
    """Run an experiment that must end well; return its folder."""
    done = twoway("run", experiment, "--results", results, **settings)
    assert done.returncode == 0, done.stderr
    return (results / "latest").resolve()


def carry_out(experiment: Path, results: Path) -> Path:
    """Run an experiment in this process, without analysis; return its folder."""
    return run_experiment(load_point(str(experiment)), Uml(built_guest()), results)


def measure(experiment: Path, results: Path) -> dict[str, Any]:
    """Run an experiment in this process; return metrics.json's content, without pictures."""
    folder = carry_out(experiment, results)
    analyse_run(folder, page=False)
    return metrics(folder)


def measure_kept(name: str) -> dict[str, Any]:
    """Measure a run of an experiment, found or made by `kept`; return metrics.json's content."""
    with kept(name) as folder:
        return as_json(compute(Analysis(folder)))


def judge_kept(name: str) -> tuple[Verdicts, str]:
    """Judge a run of an experiment, found or made by `kept`; return the kernel's release."""
    with kept(name) as folder:
        found = compute(Analysis(folder))
        return judged(read_manifest(folder), found, lambda _run: None), found.kernel


@contextmanager
def kept(name: str) -> Iterator[Path]:
    """Run an experiment, unless the user's cache has a run with the same identity.

    A run with the same identity has the same bytes, but its documents may lack new fields: then the
    experiment runs again. Runs of other identities are removed after a week.
    """
    point, backend, kept = load_point(name), Uml(built_guest()), cache() / "test-runs"
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{point.id}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = kept_run(point, backend, kept)
        if folder is None or [*complaints(folder)]:
            folder = run_experiment(point, backend, kept)
        for other in (kept / point.id).iterdir():
            if other != folder and other.stat().st_mtime < time.time() - KEPT_S:
                shutil.rmtree(other)
        assert [*complaints(folder)] == []
        yield folder


def as_json(document: Metrics) -> dict[str, Any]:
    """Return what a metrics.json would contain, without writing it."""
    content: dict[str, Any] = json.loads(document.model_dump_json())
    return content


def metrics(folder: Path) -> dict[str, Any]:
    """Return a run's metrics.json."""
    document: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return document


def guest_processes(folder: Path) -> list[str]:
    """Return command lines of processes on the host that name a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line and "bwrap" in line:
            found.append(line)
    return found


def processes_with(word: str) -> list[int]:
    """List the processes on the host that have a word among their arguments."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return found
