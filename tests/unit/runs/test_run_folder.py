"""A run's folder in a folder where another user puts links."""

import os
from pathlib import Path

import pytest
from support.running import SWEPT, twoway, write_experiment

from twoway.backends.sandbox import furnish, own_core
from twoway.contract.plan import PLAN
from twoway.runs import run
from twoway.runs.manifest import LOCK

USER = 1001
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused or gives files away")


def test_a_link_in_place_of_a_runs_folder_changes_no_rights(tmp_path: Path) -> None:
    """The end of a run does not change the rights of a folder that a link leads to."""
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    running = tmp_path / ".running-1"
    running.symlink_to(secret)
    with pytest.raises(NotADirectoryError):
        run._ended_early(running, RuntimeError())
    assert secret.stat().st_mode & 0o777 == 0o700


def test_a_link_in_place_of_a_killed_runs_folder_is_left(tmp_path: Path) -> None:
    """A link with the name of a killed run leads to no file, and the next run begins."""
    other = tmp_path / "other"
    other.mkdir()
    (other / LOCK).write_text("kept")
    (tmp_path / ".running-1").symlink_to(other)
    folder, lock = run.new_folder(tmp_path)
    lock.close()
    assert (other / LOCK).read_text() == "kept"
    assert folder.is_dir()


def test_a_link_in_place_of_a_processors_lock_empties_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reserved processor's lock is no link, and its content stays."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("kept")
    cores = tmp_path / "twoway/cores"
    cores.mkdir(parents=True)
    for core in os.sched_getaffinity(0):
        (cores / str(core)).symlink_to(victim)
    with own_core() as words:
        assert words == []
    for core in os.sched_getaffinity(0):
        (cores / str(core)).unlink()
        (cores / str(core)).write_text("kept")
    with own_core() as words:
        assert words[0] == "taskset"
    assert victim.read_text() == "kept"
    assert {path.read_text() for path in cores.iterdir()} == {"kept"}


@as_root
def test_a_link_in_place_of_the_guests_folder_gives_no_file_away(tmp_path: Path) -> None:
    """Files below a link in place of the guest's folder keep their owner."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "shadow").touch()
    (tmp_path / PLAN).touch()
    (tmp_path / ".guest").symlink_to(other)
    furnish(tmp_path)
    assert (other / "shadow").stat().st_uid == 0


@as_root
@pytest.mark.parametrize(
    "words", ["run", "sweep", "papers", "score reno", "calibrate zhang-10ms", "lab gather none"]
)
def test_root_runs_nothing_into_a_folder_of_another_user(tmp_path: Path, words: str) -> None:
    """Root writes no run to another user's folder, and the error names the option that allows it.

    The experiment is one of the commands that take one.
    """
    (tmp_path / "results").mkdir()
    os.chown(tmp_path / "results", USER, USER)
    (tmp_path / "none").touch()
    argv = words.split()
    if words in {"run", "sweep", "papers"}:
        argv.append(str(write_experiment(tmp_path, SWEPT)))
    done = twoway(*argv, "--results", tmp_path / "results", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert f"another user can change {tmp_path / 'results'}" in done.stderr
    assert "--trust-owner-of-results" in done.stderr
    assert list((tmp_path / "results").iterdir()) == []
