"""A run's folder among links of another user, and the captures in it."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from capture_analysis.errors import AnalysisError
from support.running import SWEPT, ran, twoway, write_experiment
from support.synthetic_run import write_run

from twoway.backends.sandbox import furnish, own_core
from twoway.contract.plan import PLAN
from twoway.contract.verdicts import Verdicts
from twoway.manifest import read_manifest
from twoway.measure.run_folder import Run
from twoway.report.report import analyse_run, rejudge
from twoway.runs import run
from twoway.runs.captures import pack
from twoway.runs.clean import remove_captures
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


# Captures in runs: the guest's bytes, compressed.


def test_nothing_but_size_changes(tmp_path: Path) -> None:
    """Each capture is replaced by a file that zstd, with its checksum, decompresses to it."""
    (tmp_path / "pcap").mkdir()
    written = {"r1-eth0": b"a capture" * 100_000, "r1-eth1": b""}
    for name, content in written.items():
        (tmp_path / f"pcap/{name}.pcap").write_bytes(content)
    pack(tmp_path)
    packed = sorted((tmp_path / "pcap").iterdir())
    assert [path.name for path in packed] == ["r1-eth0.pcap.zst", "r1-eth1.pcap.zst"]
    for path, content in zip(packed, written.values(), strict=True):
        done = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True)
        assert done.stdout == content
        listed = ran(["zstd", "-lv", path], check=True)
        assert "Check: XXH64" in listed.stdout


def test_compression_ends_at_once(tmp_path: Path) -> None:
    """Ctrl-C ends the compression of captures between two blocks, however large they are."""
    (tmp_path / "pcap").mkdir()
    for name in ("h1-eth0", "h2-eth0"):
        with (tmp_path / f"pcap/{name}.pcap").open("wb") as file:
            file.truncate(1 << 36)
    main = threading.get_ident()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        while not list(tmp_path.glob("pcap/*.zst")):
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pack(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert (tmp_path / "pcap/h1-eth0.pcap").is_file()


def test_a_run_without_captures_is_whole(tmp_path: Path) -> None:
    """A run without captures and samples is complete; one without samples only is damaged.

    Changed verdicts are written, and a report with other verdicts is removed.
    """
    run = write_run(tmp_path / "by-hand" / "20000101-000030-000000")
    analyse_run(run)
    manifest = read_manifest(run)
    shutil.copytree(run / "sockets", tmp_path / "samples")
    shutil.rmtree(run / "sockets")
    assert manifest.list_damaged(run)
    shutil.copytree(tmp_path / "samples", run / "sockets")
    remove_captures(run)
    assert not (run / "sockets").exists()
    assert manifest.list_damaged(run) == []
    with pytest.raises(AnalysisError, match="left out: `twoway run by-hand` makes them again"):
        Run(run).numbers("sockets/tcp-info.csv", "cwnd")
    rejudge(run)
    assert (run / "report.html").is_file()
    (run / "verdicts.json").write_text("{}")
    rejudge(run)
    assert Verdicts.read(run / "verdicts.json").rows == ()
    assert not (run / "report.html").exists()
