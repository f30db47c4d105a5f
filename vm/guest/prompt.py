"""Mininet's prompt, on the guest's terminal or with a file of commands."""

from __future__ import annotations

import fcntl
import termios
from typing import TYPE_CHECKING, Any

import mininet.net
from mininet import util
from mininet.cli import CLI

if TYPE_CHECKING:
    from pathlib import Path


def open_prompt(net: Any, commands: Path) -> None:
    """Carry out commands for a network: those of a file, or else those that a person types.

    Args:
        net: the network, with a shell in each node.
        commands: a file with a command a line; the terminal is standard input if there is none.
    """
    mininet.net.waitListening = _probe
    if commands.exists():
        CLI(net, script=str(commands))
        return
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # its Ctrl-C is a signal for this process from now on
    CLI(net)


def _probe(client: Any, server: str, port: int) -> bool:
    """Wait until a server of iperf listens, and have it print a first rate.

    Mininet waits for two rates from the server, its own probe's and the measured one. iperf 2.1
    prints none for a connection without data, as the probe's is.
    """
    listens: bool = util.waitListening(client, server, port)
    client.cmd(f"iperf -c {server} -p {port} -n 1K")
    return listens
