"""Failures are reported clearly, cost nothing else, and never look like a result."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support.plans import plan_with, run_folder, shell
from support.running import ROOT, SMALL, guest_processes, twoway, write_experiment

from twoway.backends import uml
from twoway.backends.sandbox import STALL_S
from twoway.contract.plan import (
    Check,
    LoadModule,
    Plan,
    Program,
    Readback,
    Reading,
    SetOffloads,
    SetSysctls,
)
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

# A program that never lets virtual time pass, so that its process exists until it is killed.
SPIN = "while :; do :; done"


def _run_plan(guest: Guest, folder: Path, plan: Plan, stall_s: float = STALL_S) -> RunError:
    run_folder(folder, plan)
    with pytest.raises(RunError) as caught:
        uml.run(guest, folder, lambda _: None, stall_s=stall_s)
    assert guest_processes(folder) == []
    return caught.value


def _wait_for(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"never saw {what}"
        threading.Event().wait(0.02)


def test_readback_mismatch_fails_before_traffic(guest: Guest, tmp_path: Path) -> None:
    """A setting that reads back with another value stops the run and is named."""
    mtu = Readback(path=("lo", "mtu"), value=9000)
    show = ("ip", "-j", "link", "show", "lo")
    check = Check(node=None, run=show, readings=(Reading(file="stack/lo.json", expect=(mtu,)),))
    error = _run_plan(guest, tmp_path / "run", plan_with(check))
    assert "lo mtu: wanted 9000, reads 65536" in str(error)
    assert not list((tmp_path / "run/pcap").iterdir())


def test_offload_that_stays_on_is_named(guest: Guest, tmp_path: Path) -> None:
    """An offload that an interface cannot switch off stops the run and is named."""
    off = SetOffloads(node=None, interface="lo", off=("gro", "tx"))
    error = _run_plan(guest, tmp_path / "run", plan_with(off))
    assert "lo: offloads that stay on: tx" in str(error)


def test_refused_sysctl_is_named(guest: Guest, tmp_path: Path) -> None:
    """A sysctl that this kernel lacks stops the run and is named."""
    warp = SetSysctls(node=None, sysctls={"net.ipv4.tcp_warp": 9})
    error = _run_plan(guest, tmp_path / "run", plan_with(warp))
    assert "sysctl net.ipv4.tcp_warp: No such file or directory" in str(error)


def test_panic_is_told_from_an_ordinary_end(guest: Guest, tmp_path: Path) -> None:
    """A panic of the kernel is reported in the kernel's words."""
    crash = shell("echo c > /proc/sysrq-trigger")
    error = _run_plan(guest, tmp_path / "run", plan_with(crash))
    assert "the guest kernel panicked: Kernel panic - not syncing" in str(error)


def test_busy_loop_is_found_and_named(guest: Guest, tmp_path: Path) -> None:
    """A program that never lets virtual time pass is stopped by the watchdog and named."""
    loop = shell(SPIN, program="bash")
    error = _run_plan(guest, tmp_path / "run", plan_with(loop), stall_s=4)
    assert "the guest's clock has not moved for 4 s of wall time" in str(error)
    assert "running in the guest: bash" in str(error)


def test_cause_is_named_not_its_consequence(guest: Guest, tmp_path: Path) -> None:
    """If a source cannot start, the error is the source's own, not that of its waiting sink."""
    observer, source, *others = plan_with().sources
    assert isinstance(source, Program)
    ends = tuple(re.sub(r"--congestion \S+", "--congestion nosuch", line) for line in source.stdin)
    bad = source.model_copy(update={"stdin": ends})
    error = _run_plan(guest, tmp_path / "run", plan_with(sources=(observer, bad, *others)))
    assert "stream-h1: exit status 1: stream: left: nosuch: No such file or directory" in str(error)


def test_module_that_refuses_a_parameter_is_quoted(guest: Guest, tmp_path: Path) -> None:
    """The error quotes the module's own sentence, not insmod's "Invalid parameters"."""
    load = LoadModule(module="tcp_fast", parameters={"alphas": "30", "gamma": "0"})
    error = _run_plan(guest, tmp_path / "run", plan_with(load))
    assert "Invalid parameters: tcp_fast: gamma: must be 1..1000" in str(error)


def test_slow_sampling_is_not_a_stopped_clock(guest: Guest, tmp_path: Path) -> None:
    """A guest that takes no TCP_INFO samples still reports that its clock moves."""
    observer, *sources = plan_with().sources
    seldom = observer.model_copy(update={"interval_ns": 10**15})
    plan = plan_with(sources=(seldom, *sources))
    folder = run_folder(tmp_path / "run", plan)
    seen: list[int] = []
    uml.run(guest, folder, lambda p: seen.append(p.time_ns))
    assert seen == sorted(seen)
    assert len({time_ns for time_ns in seen if time_ns > plan.clock.start_ns}) > 1


def test_killed_guest_is_not_a_result(guest: Guest, tmp_path: Path) -> None:
    """A guest that is killed from outside is reported as killed, and leaves no process."""
    folder = run_folder(tmp_path / "run", plan_with(shell(SPIN)))

    def kill() -> None:
        _wait_for(lambda: guest_processes(folder), "the guest")
        subprocess.run(["pkill", "-KILL", "-f", str(folder)], check=False)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RunError, match=r"the guest died \(signal 9\)"):
        uml.run(guest, folder, lambda _: None)
    killer.join()
    assert guest_processes(folder) == []


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_keeps_the_partial_run_aside(tmp_path: Path, how: signal.Signals) -> None:
    """After Ctrl-C or kill: 128 and the signal, a .partial folder, no result and no process."""
    spin = {"name": "spin", "host": "h1", "start_s": 1, "command": ["sh", "-c", SPIN]}
    path = write_experiment(tmp_path, {**SMALL, "programs": [spin]})
    results = tmp_path / "results"
    running = subprocess.Popen(
        [sys.executable, "-m", "twoway.cli", "run", str(path), "--results", str(results)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for(lambda: list(results.glob("*/.running-*/.guest/programs/spin.out")), "the run")
    running.send_signal(how)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 128 + how
    assert "interrupted" in said
    folders = [p.name for p in (results / "small").iterdir()]
    assert len(folders) == 1
    assert folders[0].endswith(".partial")
    assert not (results / "latest").exists()
    assert guest_processes(results) == []


@pytest.mark.usefixtures("guest")
def test_the_same_run_twice_at_once(tmp_path: Path, small: Path) -> None:
    """Two simultaneous runs of one experiment both finish, each in its own folder."""
    results = tmp_path / "results"
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "twoway.cli", "run", str(small), "--results", str(results)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    assert [p.communicate(timeout=120) and p.returncode for p in both] == [0, 0]
    folders = list((results / "small").iterdir())
    assert len(folders) == 2
    assert all((f / "report.html").is_file() for f in folders)


@pytest.mark.slow
def test_missing_guest_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    """With an empty cache `twoway run` prints the remedy and starts nothing."""
    done = twoway("run", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "the guest is not built" in done.stderr
    assert "make setup" in done.stderr


def test_run_small_is_a_result(small_run: Path) -> None:
    """A good run leaves only its own folder and the link to it."""
    names = sorted(path.name for path in small_run.parents[1].iterdir())
    assert names == ["latest", "small"]


@pytest.mark.usefixtures("guest")
@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root makes nothing for others")
def test_what_root_runs_is_the_owners(small: Path, tmp_path: Path) -> None:
    """All files of root's run belong to the owner of the results' parent, who has to be trusted."""
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    words = ("run", small, "--results", tmp_path / "theirs/results")
    assert twoway(*words).returncode == 2
    done = twoway(*words, "--trust-owner-of-results")
    assert done.returncode == 0, done.stderr
    made = [tmp_path / "theirs/results", *(tmp_path / "theirs/results").rglob("*")]
    assert len(made) > 10
    assert {path.lstat().st_uid for path in made} == {65534}


@pytest.mark.usefixtures("guest")
@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root makes nothing for others")
def test_what_root_fails_to_run_is_the_owners(small: Path, tmp_path: Path) -> None:
    """A failed run of root's leaves no folder that would block the owner's own runs."""
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    broken = Mock(run=Mock(side_effect=RunError("it fails")))
    with pytest.raises(RunError, match="it fails"):
        run_experiment(load_point(str(small)), broken, tmp_path / "theirs/results")
    made = [tmp_path / "theirs/results", *(tmp_path / "theirs/results").rglob("*")]
    assert {path.lstat().st_uid for path in made} == {65534}


def test_a_guest_that_reboots_fails(tmp_path: Path) -> None:
    """A program that reboots the guest ends the run at the second boot, with a sentence."""
    program = {"name": "a", "host": "h1", "exit_code": None, "command": ["reboot", "-f"]}
    path = write_experiment(tmp_path, {**SMALL, "programs": [program]})
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 1
    assert "the guest has started again, and its run from the beginning" in done.stderr
    (console,) = tmp_path.glob("results/small/*.partial/log/console.txt")
    assert console.read_text(errors="replace").count("Linux version") < 10
