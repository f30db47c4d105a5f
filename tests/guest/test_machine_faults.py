"""Killed processes and full disks cost their runs alone."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.running import ROOT, SWEPT, WINDOWS, twoway, write_experiment

pytestmark = [pytest.mark.usefixtures("guest"), pytest.mark.long]


# If a process of a sweep is killed, its point is tried again, and others are unaffected.

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


# A full disk costs the runs that do not fit, and no existing file.

FOUR_WINDOWS = [8, 10, 12, 14]
# A point leaves 0.6 MiB; four points exceed the room beyond the 64 MiB that must stay free.
SIZE = "66m"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Make a file system with room for some points, but not for all."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_sweep_ends_with_a_sentence_and_goes_on_later(tmp_path: Path, disk: Path) -> None:
    """Runs that do not fit are removed, others are kept; with more room the sweep completes."""
    to = {"set": ["flows.left.window_packets", "flows.right.window_packets"], "to": FOUR_WINDOWS}
    path = write_experiment(tmp_path, {**SWEPT, "duration_s": 2, "matrix": {"window": to}})
    first = twoway("sweep", path, "--results", disk)
    assert first.returncode == 1
    assert "less than 64 MiB left on the disk\n\nhint: make room" in first.stderr
    assert "Traceback" not in first.stderr
    complete = {path.parent for path in disk.glob("small@*/2*/metrics.json")}
    assert {run for run in disk.glob("small@*/*") if run.name[0] != "."} == complete
    assert not list(disk.glob("small@*/.*"))
    assert len(complete) < len(FOUR_WINDOWS)
    subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
    again = twoway("sweep", path, "--results", disk)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("(kept)") == len(complete)
    assert len(list(disk.glob("small@*/2*/metrics.json"))) == len(FOUR_WINDOWS)


def test_a_run_that_does_not_fit_leaves_nothing(small: Path, disk: Path) -> None:
    """A single run on a full disk ends with the reason, and leaves no folder."""
    (disk / "other").write_bytes(bytes(2 << 20))
    done = twoway("run", small, "--results", disk)
    assert done.returncode == 1
    assert f"{disk}/small: less than 64 MiB left on the disk" in done.stderr
    assert sorted(path.name for path in disk.rglob("*")) == ["other", "small"]


@pytest.mark.parametrize("verb", ["share", "compare"])
def test_a_file_of_runs_that_does_not_fit_leaves_nothing(
    small_run: Path, tmp_path: Path, disk: Path, verb: str
) -> None:
    """A shared file, and a run unpacked from one, is complete or absent; the exit code is 2."""
    shared = tmp_path / "a.html"
    assert twoway("share", small_run, "--captures", "--to", shared).returncode == 0
    with (disk / "other").open("wb", buffering=0) as other, suppress(OSError):
        while True:
            other.write(bytes(4096))
    words: dict[str, list[str | Path]] = {
        "share": [small_run, "--to", disk / "b.html"],
        "compare": [shared, small_run],
    }
    done = twoway(verb, *words[verb], env=os.environ | {"XDG_CACHE_HOME": str(disk)})
    assert done.returncode == 2
    assert "\n\nhint: make room" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in disk.rglob("*") if path.is_file()] == ["other"]
