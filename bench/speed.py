"""`make bench`: the speed of twoway on this machine; medians of several runs.

Speeds are simulated seconds per wall second, with all captures: over the guest's whole life, boot
and set-up included, and for the traffic alone (the difference of a longer and a shorter run).

The gain of a second worker is a ratio of two sweeps, one after the other, so it also depends on
changes of the machine's speed between them.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from machine import machine
from timed_runs import (
    ROUNDS,
    experiment_of,
    many_flows,
    most_memory_mib,
    run_experiment,
    start_twoway,
)

from twoway.backends.sandbox import GUEST_FOLDER, read_progress
from twoway.contract.network import START_NS
from twoway.manifest import read_manifest

SWEPT_POINTS = 8


def main() -> int:
    """Measure and print one line per figure."""
    print(f"{machine()}, medians of {ROUNDS}")
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        folder = Path(scratch)
        walls, firsts = zip(*(_timed_run(folder) for _ in range(ROUNDS)), strict=True)
        _show("kalampoukas-5.2, command to report", statistics.median(walls), "s")
        _show("kalampoukas-5.2, command to first packet", statistics.median(firsts), "s")
        for name, longer_s in (("kalampoukas-5.2", 300), ("zhang-fig8", 5000)):
            short = _guest_wall_s(folder, experiment_of(name, 100))
            longer = _guest_wall_s(folder, experiment_of(name, longer_s))
            _show(f"{name}, 100 s, whole life of the guest", 100 / short, "x")
            _show(f"{name}, traffic alone", (longer_s - 100) / (longer - short), "x")
        few = many_flows(pairs=10, each=10, rate_mbit=1000, duration_s=0.3)
        _show("200 flows of 20 hosts, 0.3 s", _guest_wall_s(folder, few), "s")
        for what, document in (
            (
                "20 flows of 20 hosts, 1 Gbit/s, 10 s",
                many_flows(pairs=10, each=1, rate_mbit=1000, duration_s=10),
            ),
            (
                "1000 flows of 200 hosts, 100 Mbit/s, 10 s",
                many_flows(pairs=100, each=5, rate_mbit=100, duration_s=10),
            ),
        ):
            wall, guest = _command_and_guest_wall_s(folder, document)
            _show(f"{what}, to report", wall, "s")
            _show(f"{what}, guest", guest, "s")
            _show(f"{what}, memory", most_memory_mib(folder, document), "MiB")
        gains = [_sweep_wall_s(folder, 1) / _sweep_wall_s(folder, 2) for _ in range(ROUNDS)]
        _show("sweep, two workers over one", statistics.median(gains), "x")
    return 0


def _show(what: str, value: float, unit: str) -> None:
    print(f"{what:<56} {value:8.2f} {unit}", flush=True)


def _timed_run(folder: Path) -> tuple[float, float]:
    """Measure wall seconds from command to report, and to the first packet of traffic.

    The observer's first report of progress is at the instant at which traffic starts.
    """
    results = Path(tempfile.mkdtemp(dir=folder))
    began = time.monotonic()
    first = None
    run = start_twoway("run", "kalampoukas-5.2", "--results", str(results))
    while run.poll() is None:
        for running in results.glob("*/.running-*") if first is None else ():
            progress = read_progress(running / GUEST_FOLDER)
            if progress and progress.time_ns >= START_NS:
                first = time.monotonic() - began
        time.sleep(0.005)
    wall = time.monotonic() - began
    if run.returncode != 0 or first is None:
        raise SystemExit("bench: kalampoukas-5.2 failed; run it by itself to see why")
    return wall, first


def _guest_wall_s(folder: Path, document: dict[str, Any]) -> float:
    """Measure the median wall time of a guest's life for a run of an experiment."""
    return _command_and_guest_wall_s(folder, document)[1]


def _command_and_guest_wall_s(folder: Path, document: dict[str, Any]) -> tuple[float, float]:
    """Measure the median wall times of a run: from the command to its report, and its guest's."""
    walls, guests = [], []
    for _ in range(ROUNDS):
        began = time.monotonic()
        run = run_experiment(folder, document)
        walls.append(time.monotonic() - began)
        guests.append(read_manifest(run).timing.wall_s)
    return statistics.median(walls), statistics.median(guests)


def _sweep_wall_s(folder: Path, workers: int) -> float:
    """Measure the wall time of a sweep of equal points, from the command to its end."""
    document = experiment_of("kalampoukas-5.2", 30)
    starts = {"set": ["flows.left.start_s"], "to": [n / 1000 for n in range(SWEPT_POINTS)]}
    document |= {"theory": None, "matrix": {"start": starts}}
    experiment = folder / "sweep.yml"
    experiment.write_text(yaml.safe_dump(document))
    results = Path(tempfile.mkdtemp(dir=folder))
    began = time.monotonic()
    sweep = start_twoway(
        "run", str(experiment), "--results", str(results), "--workers", str(workers)
    )
    if sweep.wait() != 0:
        raise SystemExit("bench: the sweep failed; run it by itself to see why")
    wall = time.monotonic() - began
    shutil.rmtree(results)
    return wall


if __name__ == "__main__":
    sys.exit(main())
