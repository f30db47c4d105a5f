"""Files of a guest are not trusted."""

import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plans import plan_with, run_folder, shell
from support.running import guest_processes

from twoway.backends import uml
from twoway.backends.guest_files import remove_special_files
from twoway.backends.sandbox import read_progress
from twoway.backends.uml import Uml
from twoway.contract.files import read_run_file
from twoway.contract.plan import Plan
from twoway.description.point import Point
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.plan.plan import build_plan
from twoway.runs import run as run_module
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Make a user's file outside of the run's folder."""
    path = tmp_path / "victim"
    path.write_text("the user's")
    return path


def _ends(action: Callable[[], Any], within_s: float = 60) -> Any:
    """Return an action's result or error; fail if it waits for ever, as on a pipe."""
    outcome: list[Any] = []

    def carry_out() -> None:
        try:
            outcome.append(action())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            outcome.append(error)

    thread = threading.Thread(target=carry_out, daemon=True)
    thread.start()
    thread.join(within_s)
    assert outcome, "it waits for ever"
    return outcome[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["link", "pipe", "device", "folder by a link"])
def test_only_plain_files_are_read(tmp_path: Path, victim: Path, kind: str) -> None:
    """Links, pipes, devices and files behind a linked folder are refused without waiting."""
    folder = tmp_path / "run"
    (folder / "sockets").mkdir(parents=True)
    path = folder / "sockets/progress.json"
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("only root makes devices")
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    else:
        (folder / "sockets").rmdir()
        (folder / "sockets").symlink_to(tmp_path)
        (tmp_path / "progress.json").write_text("{}")
    assert isinstance(_ends(lambda: read_run_file(folder, "sockets/progress.json")), OSError)
    assert _ends(lambda: read_progress(folder)) is None


@pytest.mark.slow
def test_special_files_are_removed_and_named(tmp_path: Path, victim: Path) -> None:
    """Links and pipes are removed and named; plain files and the links' targets stay."""
    folder, outside = tmp_path / "run", tmp_path / "outside"
    (folder / "pcap").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").touch()
    (folder / "pcap/h1-eth0.pcap").write_text("packets")
    (folder / ".manifest.json").symlink_to(victim)
    (folder / "figures").symlink_to(outside)
    os.mkfifo(folder / "pcap/pipe")
    assert sorted(remove_special_files(folder)) == [
        "a link at .manifest.json",
        "a link at figures",
        "a pipe at pcap/pipe",
    ]
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) == [
        "pcap",
        "pcap/h1-eth0.pcap",
    ]
    assert victim.read_text() == "the user's"
    assert (outside / "kept").exists()


LEFT = {
    ".manifest.json": "a link at .manifest.json",
    ".metrics.json": "a link at .metrics.json",
    "pcap/h1-eth0.pcap.zst": "a link at pcap/h1-eth0.pcap.zst",
}


@pytest.mark.parametrize("name", LEFT)
def test_links_that_a_guest_leaves_are_not_followed(
    guest: Guest, small: Path, victim: Path, name: str, monkeypatch: Any
) -> None:
    """A run fails if its guest leaves a link where the host writes; the target is unchanged."""
    results = victim.parent / "results"

    def plan_with_link(point: Point, *, in_kernel: bool) -> Plan:
        plan = build_plan(point, in_kernel=in_kernel)
        script = 'mkdir -p "/mnt/run/$(dirname "$2")"; ln -s "$1" "/mnt/run/$2"'
        link = shell(script, "sh", str(victim), name)
        return plan.model_copy(update={"setup": (*plan.setup, link)})

    monkeypatch.setattr(run_module, "build_plan", plan_with_link)
    with pytest.raises(RunError, match=LEFT[name]):
        run_experiment(load_point(str(small)), Uml(guest), results)
    assert victim.read_text() == "the user's"
    (partial,) = (results / "small").iterdir()
    assert partial.name.endswith(".partial")
    assert not [p for p in partial.rglob("*") if p.is_symlink()]


@pytest.mark.parametrize("name", ["experiment.json", "verdicts.json", "pcap/more", "figures/a.png"])
def test_files_that_the_plan_does_not_make_fail_the_run(
    guest: Guest, small: Path, name: str, monkeypatch: Any
) -> None:
    """A run fails if its guest leaves a file where the host or a later step writes."""

    def plan_with_file(point: Point, *, in_kernel: bool) -> Plan:
        plan = build_plan(point, in_kernel=in_kernel)
        script = 'mkdir -p "/mnt/run/$(dirname "$1")"; echo {} > "/mnt/run/$1"'
        return plan.model_copy(update={"setup": (*plan.setup, shell(script, "sh", name))})

    monkeypatch.setattr(run_module, "build_plan", plan_with_file)
    results = small.parent / "results"
    with pytest.raises(RunError, match=f"the guest left '{name}', which no step of its plan makes"):
        run_experiment(load_point(str(small)), Uml(guest), results)
    (partial,) = (results / "small").iterdir()
    assert partial.name.endswith(".partial")


def test_nobody_else_opens_a_folder_that_a_guest_writes_to(guest: Guest, small: Path) -> None:
    """While the guest runs its folder is closed to other users; then it has the mode of results."""
    results, modes = small.parent / "results", set()

    def look(_: Any) -> None:
        (running,) = (results / "small").iterdir()
        modes.add(running.stat().st_mode & 0o777)

    folder = run_experiment(load_point(str(small)), Uml(guest), results, look)
    assert modes == {0o700}
    assert folder.stat().st_mode == folder.parent.stat().st_mode


def test_a_pipe_in_place_of_progress_does_not_stop_the_watchdog(
    guest: Guest, tmp_path: Path
) -> None:
    """A guest that never ends is stopped as stuck, even if its progress report is a pipe."""
    script = "rm -f progress.json; mkfifo progress.json; while :; do :; done"
    plan = plan_with(shell(f"cd /mnt/run/sockets; {script}"))
    folder = run_folder(tmp_path / "run", plan)
    error = _ends(lambda: uml.run(guest, folder, lambda _: None, stall_s=4))
    assert isinstance(error, RunError)
    assert "has not moved for 4 s" in str(error)
    assert guest_processes(folder) == []


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("insmod /mnt/bin/tcp_fast.ko gama=77; rmmod tcp_fast", "unknown parameter 'gama' ignored"),
        ("echo '<4>WARNING: CPU: 0 PID: 1 at dev.c' > /dev/kmsg", "WARNING: CPU: 0 PID: 1"),
        (
            "echo '<4>WARNING: CPU: 0 PID: 1 at include/net/tcp.h:1322 f+0x1/0x2 [m]' > /dev/kmsg",
            "cwnd set to 0 or less: [",
        ),
        ("echo '<1>BUG: kernel NULL pointer' > /dev/kmsg", "BUG: kernel NULL pointer"),
        ("echo '<1>Oops: 0002 [#1]' > /dev/kmsg", "Oops: 0002"),
        ("echo '<4>a word of warning' > /dev/kmsg", None),
    ],
)
def test_a_fault_in_the_kernels_log_fails_the_run(
    guest: Guest, tmp_path: Path, command: str, sentence: str | None
) -> None:
    """An ignored module parameter, a warning or an oops fails an otherwise good run."""
    programs = ("recorders", "captures", "at_start", "sinks", "sources")
    nothing: dict[str, Any] = dict.fromkeys((*programs, "teardown"), ())
    folder = run_folder(tmp_path / "run", plan_with(shell(command), **nothing))
    if sentence is None:
        uml.run(guest, folder, lambda _: None)
        return
    with pytest.raises(RunError, match=f"the guest kernel complained: .*{re.escape(sentence)}"):
        uml.run(guest, folder, lambda _: None)
