"""The guest runs the commands that set up its hosts and routers."""

from pathlib import Path
from typing import Any

import pytest
from support.running import FLOW, LINUX, twoway, write_experiment

pytestmark = pytest.mark.usefixtures("guest")


def run(folder: Path, setup: str, *options: str) -> Any:
    """Run two seconds of traffic on hosts that a command sets up."""
    nodes = {"hosts": {"h1": {"setup": setup}}, "flows": [FLOW], "duration_s": 2}
    path = write_experiment(folder, {**LINUX, **nodes})
    return twoway("run", path, "--results", folder / "results", *options)


def test_a_command_acts_on_its_host(tmp_path: Path) -> None:
    """A command at h1 that takes its default route away stops the flow from there."""
    done = run(tmp_path, "ip route del default\nip route add default via 10.0.1.1")
    assert done.returncode == 0, done.stderr
    assert "not proven: that the network is as hosts.h1.setup should make it" in done.stderr
    assert run(tmp_path, "ip route del default").returncode == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ip link add g1 type gre remote 10.0.2.2", "Error: Unknown device type."),
        ("false", "exit status 1"),
        ("echo no; exit 3", "no"),
    ],
)
def test_a_command_that_fails(tmp_path: Path, command: str, said: str) -> None:
    """A command that fails is named with file, field, line and its program's words."""
    done = run(tmp_path, f"true\n{command}")
    assert done.returncode == 1
    assert f": hosts.h1.setup: line 2: {command}: {said}" in done.stderr
    assert ("`kernel: wide` has MPTCP, tunnels" in done.stderr) == ("type gre" in command)
    assert [path.suffix for path in (tmp_path / "results").glob("*/2*")] == [".partial"]
