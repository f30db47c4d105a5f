"""Mininet's prompt, on the guest's terminal or with a file of commands.

The plan has made the network. Mininet builds it once more from existing nodes: each gets a shell in
its namespace, and no other command is run.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import types
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from network import namespace

# run.py has no packages: those that -S leaves out take long to load.
sys.path.append(
    str(Path(sys.executable).parents[1] / "lib" / Path(os.__file__).parent.name / "site-packages")
)
# Mininet compares Open vSwitch's version with distutils. Python 3.12 has no distutils, and that of
# setuptools takes 0.2 s to load. A stand-in is enough, because there is no Open vSwitch here.
sys.modules["distutils"] = sys.modules["distutils.version"] = types.ModuleType("distutils.version")
sys.modules["distutils.version"].StrictVersion = str  # type: ignore[attr-defined]

import mininet.net  # noqa: E402 - after the stand-in above
from mininet import util  # noqa: E402
from mininet.cli import CLI  # noqa: E402
from mininet.log import setLogLevel  # noqa: E402
from mininet.net import Mininet  # noqa: E402
from mininet.node import Node, Switch  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


class Network(Mininet):  # type: ignore[misc]
    """A Mininet of existing nodes, links and settings."""

    def addHost(self, name: str, **params: Any) -> Any:  # noqa: N802 - Mininet's name
        """Start a shell in a node's namespace."""
        with namespace(name):
            return super().addHost(name, inNamespace=False, **params)

    def addSwitch(self, name: str, **params: Any) -> Any:  # noqa: N802 - Mininet's name
        """Start a shell in a switch's namespace."""
        with namespace(name):
            return super().addSwitch(name, cls=Switch, inNamespace=False, **params)

    def addLink(self, *args: Any, **params: Any) -> Any:  # noqa: N802 - Mininet's name
        """Record a link."""
        with _no_commands():
            return super().addLink(*args, **params)

    def configHosts(self) -> None:  # noqa: N802 - Mininet's name
        """Record the nodes' settings."""
        with _no_commands():
            super().configHosts()


@contextmanager
def _no_commands() -> Iterator[None]:
    """Suppress a node's commands, for a `with`."""
    command = Node.cmd
    Node.cmd = lambda *_words, **_settings: ""
    try:
        yield
    finally:
        Node.cmd = command


def open_prompt(topology: dict[str, Any], commands: Path) -> None:
    """Carry out commands for a network: those of a file, or else those that a person types.

    Args:
        topology: the plan's topology; its source is a program, which runs in its sandbox here.
        commands: a file with one command per line; without one, commands come from standard input.
    """
    name = topology["name"]
    module = types.ModuleType(name)
    code = compile(topology["source"], f"{name}.py", "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102 - in the sandbox, as above
    setLogLevel("output")
    Mininet.inited = True  # otherwise Mininet raises limits and overwrites the plan's sysctls
    net = Network(topo=module.topos[name](**topology["parameters"]), controller=None, switch=None)
    mininet.net.waitListening = _probe
    if commands.exists():
        CLI(net, script=str(commands))
        return
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # from now on its Ctrl-C is a signal for this process
    CLI(net)


def _probe(client: Any, server: str, port: int) -> bool:
    """Wait until a server of iperf listens, and make it print a first rate.

    Mininet waits for two rates from the server: its own probe's and the measured one. iperf 2.1
    prints none for a connection without data, such as the probe's.
    """
    listens: bool = util.waitListening(client, server, port)
    client.cmd(f"iperf -c {server} -p {port} -n 1K")
    return listens
