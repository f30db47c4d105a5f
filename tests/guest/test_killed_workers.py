"""If a process of a sweep is killed, its point is tried again, and others are unaffected."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.running import ROOT, SWEPT, WINDOWS, write_experiment

pytestmark = [pytest.mark.usefixtures("guest"), pytest.mark.long]

VICTIM = "small@window=8"
KEPT = [f"small@window={window}" for window in WINDOWS[3:]]


def _worker(point: Path) -> int | None:
    """Return the process that carries out a point's run: the parent of its guest's sandbox."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            ours = b"forkserver" in Path(f"/proc/{parent}/cmdline").read_bytes()
        except OSError:
            continue
        if ours and "bwrap" in line and str(point) in line:
            return parent
    return None


def _swept(folder: Path, kept: Path, kills: int) -> tuple[int, str]:
    """Return status and output of a sweep whose worker is killed several times at one point.

    Half of its points already have runs.
    """
    path, results = write_experiment(folder, SWEPT), folder / "results"
    for point in KEPT:
        shutil.copytree(kept / point, results / point)
    argv = [sys.executable, "-m", "twoway.cli", "sweep", str(path), "--results", str(results)]
    sweep = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    killed: list[int] = []
    while sweep.poll() is None and len(killed) < kills:
        worker = _worker(results / VICTIM)
        if worker is not None and worker not in killed:
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)
        threading.Event().wait(0.02)
    _, said = sweep.communicate()
    assert len(killed) == kills
    return sweep.returncode, said


def test_a_killed_worker_costs_its_point_another_try(tmp_path: Path, sweep_results: Path) -> None:
    """If a worker is killed during a run, every point still gets one run, and none fails."""
    status, said = _swept(tmp_path, sweep_results, kills=1)
    assert status == 0, said
    runs = [path.parent for path in (tmp_path / "results").glob("small@*/2*/metrics.json")]
    assert sorted(run.parent.name for run in runs) == sorted(f"small@window={w}" for w in WINDOWS)
    assert said.count("pass ") == len(WINDOWS)


def test_a_point_that_kills_its_workers_is_given_up(tmp_path: Path, sweep_results: Path) -> None:
    """A point whose worker is killed each time fails after three tries; all others get runs."""
    status, said = _swept(tmp_path, sweep_results, kills=3)
    assert status == 1
    assert "window=8: its process was killed 3 times" in said
    assert f"{len(WINDOWS) - 1} of {len(WINDOWS)} points are as their files say" in said
