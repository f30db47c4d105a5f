"""Virtual time: an experiment repeats to the byte."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import ROOT, twoway

from twoway.backends.uml import Uml
from twoway.guest.cache import built_guest
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

pytestmark = pytest.mark.usefixtures("guest")


def _different(run: Path, again: Path) -> list[str]:
    """List the files of a run's folders that differ, such as captures and the guest's console."""
    found = [path.relative_to(again) for path in sorted(again.glob("*/*"))]
    assert {"pcap", "log", "sockets", "stack"} <= {path.parts[0] for path in found}
    return [str(path) for path in found if (run / path).read_bytes() != (again / path).read_bytes()]


def test_load_on_the_host_changes_nothing(tmp_path: Path, small: Path, small_run: Path) -> None:
    """Two runs, one of them with every processor of the host busy, give identical files."""
    spin = [sys.executable, "-c", "while True: pass"]
    spinners = [subprocess.Popen(spin) for _ in os.sched_getaffinity(0)]
    try:
        loaded = run_experiment(load_point(str(small)), Uml(built_guest()), tmp_path / "loaded")
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    assert _different(small_run, loaded) == []


def test_another_checkout_gives_the_same_bytes(
    tmp_path: Path, small: Path, small_run: Path
) -> None:
    """A copy of the tree in a folder with another name gives identical files."""
    elsewhere = tmp_path / "a-checkout-with-a-much-longer-name" / "twoway-copy"
    shutil.copytree(
        ROOT, elsewhere, ignore=shutil.ignore_patterns(".venv", "results", ".git", ".*_cache")
    )
    environment = {**os.environ, "PYTHONPATH": str(elsewhere)}
    done = twoway("run", small, "--results", tmp_path / "there", cwd=elsewhere, env=environment)
    assert done.returncode == 0, done.stderr
    assert _different(small_run, (tmp_path / "there/latest").resolve()) == []
