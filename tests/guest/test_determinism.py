"""Virtual time: an experiment repeats to the byte, by `twoway` and by hand."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from shlex import join

import pytest
from support.guest.in_guest import give
from support.running import ROOT, SMALL, twoway, write_experiment

from twoway.backends import uml
from twoway.backends.sandbox import RUNNER
from twoway.backends.uml import Uml
from twoway.contract.plan import (
    PLAN,
    Copy,
    Plan,
    SetOffloads,
    SetParameters,
    SetSysctls,
    Step,
    Times,
)
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

# Each node's links, addresses, routes, neighbours and queues, in both versions of IP.
SEEN = (
    *("ip -d -j link show", "ip -j address show", "ip neigh show | sort", "ip -j rule show"),
    *("ip -4 -j route show table all", "ip -6 -j route show table all", "tc -j -d qdisc show"),
)


def _set_up(name: str) -> Plan:
    """Return the plan of an experiment without its traffic."""
    times = Times(stop_ns=Times().start_ns)
    plan = build_plan(load_point(name), in_kernel=True)
    return plan.model_copy(update={"clock": times, **dict.fromkeys(TRAFFIC, ())})


def _script(plan: Plan) -> str:
    """Return the commands of a plan's set-up, one per line, each in its node's namespace."""
    lines = [f"{_inside(step.node)}{command}" for step in plan.setup for command in _commands(step)]
    return "\n".join(("set -e", *lines)) + "\n"


def _inside(node: str | None) -> str:
    return f"nsenter --net=/run/netns/{node} " if node else ""


def _commands(step: Step) -> Iterable[str]:
    if isinstance(step, SetSysctls):
        yield join(["sysctl", "-q", "-w", *(f"{n}={value}" for n, value in step.sysctls.items())])
    elif isinstance(step, SetParameters):
        for name, value in step.parameters.items():
            yield f"echo {value} > /sys/module/{step.module}/parameters/{name}"
    elif isinstance(step, SetOffloads):
        yield join(
            ["ethtool", "-K", step.interface, *(w for name in step.off for w in (name, "off"))]
        )
    elif not isinstance(step, Copy):
        typed = getattr(step, "stdin", ())
        yield "\n".join((f"{join(step.run)} > /dev/null << 'END'", *typed, "END"))


def _seen(plan: Plan, name: str) -> str:
    """Return a script that writes the state of each node to a file of the run's folder."""
    settings = {
        s.node: join(["sysctl", *s.sysctls]) for s in plan.setup if isinstance(s, SetSysctls)
    }
    nodes = sorted({step.node for step in plan.setup if step.node})
    shown = [f"{_inside(node)}{each}" for node in nodes for each in (*SEEN, settings[node])]
    return "{ " + "; ".join(shown) + f"; }} > /mnt/run/{name}\n"


def _network(guest: Guest, folder: Path, plan: Plan, words: str) -> str:
    """Run a shell script in a guest that runs nothing else; return each node's state after it."""
    folder.mkdir()
    (folder / "script").write_text(words + _seen(plan, "network.txt"))
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
    replayed = _network(guest, tmp_path / "replayed", plan, _script(plan))
    assert replayed == run


def test_nothing_runs_that_is_not_in_the_plan(guest: Guest, tmp_path: Path) -> None:
    """A run's log has exactly the commands that `twoway plan` prints, in the same order."""
    path = write_experiment(tmp_path, SMALL)
    printed = twoway("plan", str(path)).stdout
    assert printed.count("link add") == 3
    folder = run_experiment(load_point(str(path)), uml.Uml(guest), tmp_path / "results")
    assert (folder / "log/commands.txt").read_text() == printed
