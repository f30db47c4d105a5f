"""Virtual time: an experiment repeats to the byte, by `twoway` and by hand."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.guest.in_guest import give
from support.guest.replay import script, seen
from support.running import ROOT, SMALL, twoway, write_experiment

from twoway.backends import uml
from twoway.backends.sandbox import RUNNER
from twoway.backends.uml import Uml
from twoway.contract.plan import PLAN, Plan, Times
from twoway.guest.cache import Guest, built_guest
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

# Virtual time: an experiment repeats to the byte.


def _different(run: Path, again: Path) -> list[str]:
    """List the files of a run's folders that differ, such as captures and the guest's console."""
    found = [path.relative_to(again) for path in sorted(again.glob("*/*"))]
    assert {"pcap", "log", "sockets", "stack"} <= {path.parts[0] for path in found}
    return [str(path) for path in found if (run / path).read_bytes() != (again / path).read_bytes()]


@pytest.mark.usefixtures("guest")
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


@pytest.mark.usefixtures("guest")
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


# The plan has every command of a run: anyone can carry it out by hand, and a run does no more.

# The parts of a plan after set-up.
TRAFFIC = ("recorders", "captures", "sinks", "sources", "at_start", "teardown")


def _set_up(name: str) -> Plan:
    """Return the plan of an experiment without its traffic."""
    times = Times(stop_ns=Times().start_ns)
    plan = build_plan(load_point(name), in_kernel=True)
    return plan.model_copy(update={"clock": times, **dict.fromkeys(TRAFFIC, ())})


def _network(guest: Guest, folder: Path, plan: Plan, words: str) -> str:
    """Run a shell script in a guest that runs nothing else; return each node's state after it."""
    folder.mkdir()
    (folder / "script").write_text(words + seen(plan, "network.txt"))
    give(folder)
    plan.write(folder / PLAN)
    uml.run(guest, folder, lambda _: None, runner=["/bin/sh", "/mnt/run/script"])
    return (folder / "network.txt").read_text()


@pytest.mark.parametrize("name", ["kalampoukas-5.2", "ipv6@ip=6", "impairments@link=jitter,seed=3"])
def test_a_plan_is_carried_out_by_hand(guest: Guest, tmp_path: Path, name: str) -> None:
    """A shell script of a plan's commands makes the run's network in bare namespaces.

    Links, addresses, routes, neighbours and queues are equal, as ip and tc show them.
    """
    plan = _set_up(name)
    run = _network(guest, tmp_path / "run", plan, f"{' '.join(RUNNER)}\n")
    replayed = _network(guest, tmp_path / "replayed", plan, script(plan))
    assert replayed == run


def test_nothing_runs_that_is_not_in_the_plan(guest: Guest, tmp_path: Path) -> None:
    """A run's log has exactly the commands that `twoway plan` prints, in the same order."""
    path = write_experiment(tmp_path, SMALL)
    printed = twoway("plan", str(path)).stdout
    assert printed.count("link add") == 3
    folder = run_experiment(load_point(str(path)), uml.Uml(guest), tmp_path / "results")
    assert (folder / "log/commands.txt").read_text() == printed
