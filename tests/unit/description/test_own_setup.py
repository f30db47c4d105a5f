"""Commands that set up hosts and routers are a field of an experiment."""

from pathlib import Path
from typing import Any

import pytest
from support.plans import planned
from support.running import FLOW, LINUX, problems_of, write_experiment
from support.warm_command import twoway

from twoway.contract.plan import Command
from twoway.plan.kernels_own import changed_settings, not_proven
from twoway.runs.points import load_point

LINES = "# a route\nip route add 10.9.0.0/16 via 10.0.1.1\n\n  nft list ruleset | cat\n"


def document(setup: str, **fields: Any) -> dict[str, Any]:
    """Describe an experiment with commands at h1 and r1."""
    nodes = {"hosts": {"h1": {"setup": setup}}, "routers": {"r1": {"setup": "true"}}}
    return {**LINUX, "flows": [FLOW], **nodes, **fields}


def test_commands_are_the_last_steps(tmp_path: Path) -> None:
    """Each line that is no comment is a command of its node's shell, after all other steps."""
    plan = planned(tmp_path, document(LINES))
    assert plan.setup[-3:] == (
        Command(node="h1", run=("sh", "-c", "ip route add 10.9.0.0/16 via 10.0.1.1")),
        Command(node="h1", run=("sh", "-c", "nft list ruleset | cat")),
        Command(node="r1", run=("sh", "-c", "true")),
    )
    assert plan.guest_only == ("hosts.h1.setup", "routers.r1.setup")


def test_the_manifest_has_the_commands(tmp_path: Path) -> None:
    """The manifest lists each command with its field, and that nothing else checks it."""
    point = load_point(str(write_experiment(tmp_path, document(LINES))))
    found = changed_settings(point, planned(tmp_path, document(LINES)))
    commands = [(each.nodes, each.value, each.why) for each in found if each.name == "setup"]
    assert commands == [
        (("h1",), "ip route add 10.9.0.0/16 via 10.0.1.1", "hosts.h1.setup: line 2"),
        (("h1",), "nft list ruleset | cat", "hosts.h1.setup: line 4"),
        (("r1",), "true", "routers.r1.setup: line 1"),
    ]
    assert not_proven(point)[0].what == (
        "that the network is as hosts.h1.setup, routers.r1.setup should make it"
    )


@pytest.mark.parametrize(
    ("setup", "problem"),
    [
        ("true\necho 'a", "hosts.h1.setup: line 2: no closing quotation, got echo 'a"),
        ("echo \\", "hosts.h1.setup: line 1: no escaped character, got echo \\"),
        ("echo é", "hosts.h1.setup: must be lines of printed ASCII characters, got"),
        (["true"], "hosts.h1.setup: must be a valid string, got"),
    ],
)
def test_what_no_shell_reads(tmp_path: Path, setup: Any, problem: str) -> None:
    """A line that no shell can read is refused with its field and number."""
    (found,) = problems_of(write_experiment(tmp_path, document(setup)))
    assert problem in found


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("no-such-tool --quick", "no-such-tool"),
        ("ip link show", None),
        ("export A=1", None),
        ("A=1 no-such-tool", None),  # only a shell knows
    ],
)
def test_a_missing_program_is_named(tmp_path: Path, line: str, program: str | None) -> None:
    """`vet` names the first program of a line if this machine lacks it."""
    done = twoway("vet", write_experiment(tmp_path, document(f"true\n{line}")))
    assert done.returncode == (2 if program else 0)
    said = f"hosts.h1.setup: line 2: {program}: no such program in /usr/sbin:"
    assert (said in done.stderr) == (program is not None)


@pytest.mark.parametrize("kernel", ["guest", "wide", "newest"])
def test_another_kernel_is_not_judged(tmp_path: Path, kernel: str) -> None:
    """`vet` knows qdiscs and sysctls of the guest's kernel alone; others judge them in a run."""
    hosts = {"h1": {"qdisc": "hhf", "stack": {"sysctls": {"net.mptcp.enabled": 1}}}}
    path = write_experiment(tmp_path, document("true", hosts=hosts, kernel=kernel))
    assert len(problems_of(path)) == (2 if kernel == "guest" else 0)


def test_a_change_of_routes_is_of_the_topology(tmp_path: Path) -> None:
    """A host, a neighbour or a time that a change of routes cannot have has a sentence."""
    routes = [{"to": "h7", "via": "r2", "at_s": 1}, {"to": "h2", "via": "h2", "at_s": 2}]
    path = write_experiment(tmp_path, {**LINUX, "routers": {"r1": {"routes": routes}}})
    assert problems_of(path) == [
        'routers.r1.routes.0.to: no host "h7"; there are h1, h2',
        'routers.r1.routes.1.via: no neighbour "h2"; r1 has h1, r2',
        "routers.r1.routes.1.at_s: must be below duration_s (2), got 2",
    ]
