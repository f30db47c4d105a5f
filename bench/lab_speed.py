"""`sudo make bench OF=lab`: the speed-up of a sweep by three workers over one.

Each worker stands for a host with one processor: it is pinned to one, and gets a part of it (a
control group's quota) so small that the workers that share a processor, the scheduler and the
command that waits for them do not compete. Workers share caches, which hosts do not: while one
worker is measured, two others sweep something else, so that a single worker is not faster because
it is alone.
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import cycle
from pathlib import Path

import yaml
from support.lab.lab_crew import PRELOAD, ROOT, Crew, started_crew

from twoway.description.point import find_source

ROUNDS = 3
HOSTS = 3
POINTS = 24
# Share of a processor that its workers leave to other processes.
LEFT = 0.1
GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
CORES = sorted(os.sched_getaffinity(0))
PART = (1 - LEFT) / math.ceil(HOSTS / len(CORES))


def main() -> int:
    """Measure, and print a line per round."""
    if os.geteuid() != 0:
        raise SystemExit("bench_lab: needs root, to give each worker its part of a processor")
    print(f"{POINTS} points of kalampoukas-3.2; a worker has {PART:.2f} processors")
    ratios = []
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        for number in range(ROUNDS):
            one, three = (
                _sweep_s(Path(scratch) / f"{number}-{workers}", workers) for workers in (1, HOSTS)
            )
            ratios.append(one / three)
            print(f"one worker {one:6.1f} s, three {three:6.1f} s: {one / three:.2f}", flush=True)
    print(f"median {statistics.median(ratios):.2f}")
    return 0


def _sweep_s(folder: Path, workers: int) -> float:
    """Measure the wall seconds of a sweep by some workers, while the other hosts are busy, too."""
    others, cores = HOSTS - workers, cycle(CORES)
    busy = _sweeping(folder / "others", others, HOSTS * POINTS, cores) if others else nullcontext()
    with busy, _sweeping(folder / "ours", workers, POINTS, cores) as ours:
        began = time.monotonic()
        if ours.wait() != 0:
            raise SystemExit("bench_lab: the sweep failed; run it by itself to see why")
        return time.monotonic() - began


@contextmanager
def _sweeping(
    folder: Path, workers: int, points: int, cores: Iterator[int]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a sweep by workers on the next cores; kill it if it has not ended."""
    folder.mkdir(parents=True)
    path = _experiment(folder, points)
    with started_crew(folder / "crew", (PRELOAD,) * workers) as crew, _limited(crew, cores):
        command = [sys.executable, "-m", "twoway.cli", *crew.sweep(path, folder / "results")]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as sweep:
            try:
                yield sweep
            finally:
                sweep.kill()


def _experiment(folder: Path, points: int) -> Path:
    """Make kalampoukas-3.2 with its second connection starting a little later at each point."""
    document = dict(find_source("kalampoukas-3.2").document)
    starts_s = [number / 1000 for number in range(1, points + 1)]
    start = {"set": ["flows.right.start_s"], "to": starts_s}
    document |= {"predictions": [], "claims": [], "findings": [], "matrix": {"start": start}}
    path = folder / "swept.yml"
    path.write_text(yaml.safe_dump(document))
    return path


@contextmanager
def _limited(crew: Crew, cores: Iterator[int]) -> Iterator[None]:
    """Give each worker a part of a processor, which it may share with another."""
    quota_us = round(PART * PERIOD_US)
    old = (GROUPS / "cpu").is_dir()
    groups = []
    try:
        for process, core in zip(crew.workers, cores, strict=False):
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {core})
            group = (GROUPS / "cpu" if old else GROUPS) / f"twoway-bench-{process.pid}"
            group.mkdir()
            groups.append(group)
            name = "cpu.cfs_quota_us" if old else "cpu.max"
            (group / name).write_text(str(quota_us) if old else f"{quota_us} {PERIOD_US}")
            (group / "cgroup.procs").write_text(str(process.pid))
        yield
    finally:
        for process, group in zip(crew.workers, groups, strict=False):
            process.terminate()
            process.wait()
            group.rmdir()


if __name__ == "__main__":
    sys.exit(main())
