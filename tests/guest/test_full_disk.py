"""A full disk costs the runs that do not fit, and no existing file."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.running import SWEPT, twoway, write_experiment

pytestmark = [pytest.mark.usefixtures("guest"), pytest.mark.long]

WINDOWS = [8, 10, 12, 14]
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
    to = {"set": ["flows.left.window_packets", "flows.right.window_packets"], "to": WINDOWS}
    path = write_experiment(tmp_path, {**SWEPT, "duration_s": 2, "matrix": {"window": to}})
    first = twoway("sweep", path, "--results", disk)
    assert first.returncode == 1
    assert "less than 64 MiB left on the disk\n\nhint: make room" in first.stderr
    assert "Traceback" not in first.stderr
    complete = {path.parent for path in disk.glob("small@*/2*/metrics.json")}
    assert {run for run in disk.glob("small@*/*") if run.name[0] != "."} == complete
    assert not list(disk.glob("small@*/.*"))
    assert len(complete) < len(WINDOWS)
    subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
    again = twoway("sweep", path, "--results", disk)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("(kept)") == len(complete)
    assert len(list(disk.glob("small@*/2*/metrics.json"))) == len(WINDOWS)


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
