"""Describe a Mininet topology as JSON, inside the sandbox.

A topology's file is Python and may do anything, so this program runs in the sandbox
(twoway/description/topology.py). It needs only the standard library and Mininet.

    describe_topology.py FILE NAME PARAMETERS

It prints a document, or {"error": ...} if the file fails, exits early or defines no topology.
"""

import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import Any

# Mininet compares Open vSwitch's version by distutils. Python has no distutils any more, and
# setuptools' takes 0.2 s to load. There is no Open vSwitch here, so a stand-in is enough.
_stand_in = ModuleType("distutils.version")
_stand_in.StrictVersion = str  # type: ignore[attr-defined]
sys.modules["distutils"] = sys.modules["distutils.version"] = _stand_in
from mininet import util  # noqa: E402 - after the stand-in above
from mininet.examples.linuxrouter import LinuxRouter  # noqa: E402
from mininet.net import Mininet  # noqa: E402
from mininet.node import CPULimitedHost, Node  # noqa: E402
from mininet.nodelib import LinuxBridge  # noqa: E402
from mininet.topo import Topo  # noqa: E402

# Mininet's keys of a link, and the keys of its ends that a topology may set.
_LINK = {f"{field}{end}" for field in ("node", "port", "params", "intfName") for end in "12"}
_END = {"ip"}
# Parameters that CPULimitedHost takes, whatever a node's class is; and the MAC address, which the
# plan sets.
_LIMITS = {"cpu", "cores", "sched", "period_us", "mac"}


class NoTopologyError(Exception):
    """An error for the author of a file that is no topology."""


def describe_topology(path: str, name: str, parameters: dict[str, int]) -> dict[str, Any]:
    """Load a topology's file and list its nodes, links, commands and places."""
    module_spec = importlib.util.spec_from_file_location(f"topologies.{name}", path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise NoTopologyError(
            f"{error}: a topology is one file; it may import the standard library and Mininet"
        ) from error
    if name not in getattr(module, "topos", {}):
        kinds = [k for k, c in vars(module).items() if isinstance(c, type) and issubclass(c, Topo)]
        raise NoTopologyError(
            f'topos = {{"{name}": {(kinds or ["CLASS"])[-1]}}} must be its last line'
        )
    topo = module.topos[name](**parameters)
    links = [info for _, _, info in topo.links(sort=True, withInfo=True)]
    commands, numbered = _commands(topo)
    return {
        "routers": [n for n in topo.hosts() if issubclass(_class(topo, n), LinuxRouter)],
        "hosts": [n for n in topo.hosts() if not issubclass(_class(topo, n), LinuxRouter)],
        "switches": topo.switches(),
        "kinds": [c.__name__ for c in type(topo).__mro__],
        "unused": [*_unused_of_nodes(topo), *_unused_of_links(links)],
        "links": [[_end(topo, info, end, numbered) for end in "12"] for info in links],
        "queues": getattr(topo, "queues", {}),
        "delays": getattr(topo, "delays", {}),
        "commands": commands,
    }


def _class(topo: Any, node: str) -> type:
    found: type = topo.nodeInfo(node).get("cls", Node)
    return found


def _end(topo: Any, info: dict[str, Any], end: str, numbered: dict[str, str]) -> dict[str, Any]:
    node = info[f"node{end}"]
    address = (info.get(f"params{end}") or {}).get("ip") or topo.nodeInfo(node).get("ip")
    address = None if topo.isSwitch(node) else address or numbered.get(node)
    interface = info.get(f"intfName{end}") or f"{node}-eth{info[f'port{end}']}"
    return {"node": node, "interface": interface, "address": address}


def _unused_of_nodes(topo: Any) -> list[str]:
    """List a topology's parameters of nodes that would have no effect.

    A class that the topology defines may look at any parameter.
    """
    found = []
    for node in topo.hosts():
        kind, given = _class(topo, node), topo.nodeInfo(node)
        methods = [vars(c)[m] for c in kind.__mro__ for m in ("__init__", "config") if m in vars(c)]
        known = {name for m in methods for name in _parameters(m)} | {"cls"}
        unused = set(given) - known if kind.__module__.startswith("mininet.") else set()
        unused |= _LIMITS & set(given)
        found += [f"{node}: {name}={given[name]!r}" for name in sorted(unused)]
        if issubclass(kind, CPULimitedHost):
            found.append(f"{node}: cls={kind.__name__}")
    return found


def _parameters(method: Any) -> Iterable[str]:
    try:
        return inspect.signature(method).parameters
    except ValueError:  # a class in C, without a signature
        return ()


def _unused_of_links(links: list[dict[str, Any]]) -> list[str]:
    """List a topology's parameters of links that would have no effect."""
    found = []
    for info in links:
        where = f"link {info['node1']} - {info['node2']}"
        given = {name: value for name, value in info.items() if name not in _LINK}
        for end in ("params1", "params2"):
            of_end = (info.get(end) or {}).items()
            given |= {f"{end}.{name}": value for name, value in of_end if name not in _END}
        found += [f"{where}: {name}={_words(given[name])}" for name in sorted(given)]
    return found


def _words(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def _commands(topo: Any) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Let Mininet build the network from nodes that only record their commands, and list these.

    Returns: pairs of a node and a command, in order. If there are switches, also the addresses that
        Mininet gives to hosts without one.
    """
    recorded: list[tuple[str, str]] = []

    def start_shell(node: Any, _options: Any = None) -> None:
        node.pid = node.name  # in the form that `ip ... netns` takes

    def record(node: Any, *words: Any, **_settings: Any) -> str:
        commands = (command.split() for command in " ".join(map(str, words)).split(";"))
        recorded.extend((node.name, " ".join(command)) for command in commands)
        return ""

    Node.startShell, Node.cmd, Node.isSetup = start_shell, record, True
    Mininet.inited = True  # without it Mininet changes settings, and needs root
    util.numCores.ncores = 1  # without it Mininet runs grep
    LinuxBridge.setup = lambda: None  # without it Mininet looks for brctl
    net = Mininet(topo=topo, controller=None, switch=LinuxBridge)
    for switch in net.switches:
        switch.start([])
    numbered = {host.name: host.params["ip"] for host in net.hosts} if net.switches else {}
    return recorded, numbered


def main() -> None:
    """Print the description of the topology that the arguments name."""
    answers = os.dup(1)
    os.dup2(2, 1)  # standard output is for the answer; the topology's prints go to standard error
    path, name, parameters = sys.argv[1:]
    try:
        document = describe_topology(path, name, json.loads(parameters))
        answer = json.dumps(document, separators=(",", ":"))  # twoway reads a mebibyte
    except NoTopologyError as error:
        answer = json.dumps({"error": str(error)})
    except BaseException as error:  # noqa: BLE001 - an exit, too, is an error of the topology's
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        place = f"line {lines[-1]}: " if lines else ""
        answer = json.dumps({"error": f"{place}{type(error).__name__}: {error}"})
    os.write(answers, answer.encode())
    os._exit(0)  # exit now, whatever the topology would do at the end


if __name__ == "__main__":
    main()
