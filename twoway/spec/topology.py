"""A Mininet topology as a plain graph, without Mininet's types.

The file `topologies/<name>.py` defines a `Topo` with the attributes `queues` and `delays`. For each
direction of a profile, these list (node, towards) pairs: the interfaces with the rate and queue,
and those with the delay. Loading the file runs no command and needs no privilege.
"""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from types import ModuleType
from typing import Any

from twoway.errors import SpecError

# Mininet compares Open vSwitch's version with distutils, which takes 0.2 s to load where it is
# setuptools'. There are no switches here, so a stand-in is enough while Mininet loads.
_stand_in = ModuleType("distutils.version")
_stand_in.StrictVersion = str  # type: ignore[attr-defined]
sys.modules["distutils"] = sys.modules["distutils.version"] = _stand_in
from mininet.examples.linuxrouter import LinuxRouter  # noqa: E402 - after the stand-in above
from mininet.node import Node  # noqa: E402

del sys.modules["distutils"], sys.modules["distutils.version"]


@dataclass(frozen=True)
class Interface:
    """One end of a link."""

    node: str
    name: str
    address: IPv4Interface
    mac: str
    peer_node: str
    peer_name: str


@dataclass(frozen=True)
class PlacedQueue:
    """A bottleneck: name in metrics, direction of profile, interface."""

    name: str
    direction: str
    interface: Interface


@dataclass(frozen=True)
class Graph:
    """A topology: nodes, interfaces, and places of queues and delays."""

    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    interfaces: tuple[Interface, ...]
    queues: Mapping[str, tuple[Interface, ...]]
    delays: Mapping[str, tuple[Interface, ...]]

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, hosts first."""
        return self.hosts + self.routers

    @property
    def placed_queues(self) -> tuple[PlacedQueue, ...]:
        """All bottlenecks; several of one direction are numbered from 1."""
        return tuple(
            PlacedQueue(f"{name}-{number}" if len(placed) > 1 else name, name, interface)
            for name, placed in self.queues.items()
            for number, interface in enumerate(placed, start=1)
        )

    def of(self, node: str) -> tuple[Interface, ...]:
        """List the interfaces of one node."""
        return tuple(i for i in self.interfaces if i.node == node)

    def peer(self, interface: Interface) -> Interface:
        """Return the other end of an interface's link."""
        return next(i for i in self.interfaces if i.name == interface.peer_name)

    def address(self, host: str) -> IPv4Address:
        """Return a host's address: that of its first interface."""
        return self.of(host)[0].address.ip


def load_topology(path: Path, parameters: Mapping[str, int]) -> Graph:
    """Load a topology file and read its graph.

    Args:
        path: the file; its stem is the topology's key in the file's `topos`.
        parameters: passed to the topology's build().

    Raises: SpecError if the file is missing or fails, or lacks `queues`, `delays` or addresses.
    """
    topo = _instantiate(path, parameters)
    names = [str(node) for node in topo.nodes()]
    routers = tuple(n for n in names if issubclass(topo.nodeInfo(n).get("cls", Node), LinuxRouter))
    interfaces = _interfaces(path, topo)
    return Graph(
        hosts=tuple(n for n in names if n not in routers),
        routers=routers,
        interfaces=interfaces,
        queues=_placement(path, topo, "queues", interfaces),
        delays=_placement(path, topo, "delays", interfaces),
    )


def _instantiate(path: Path, parameters: Mapping[str, int]) -> Any:
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.py")))
        raise SpecError([f"{path}: no such topology"], f"there are: {known}")
    module_spec = importlib.util.spec_from_file_location(f"topologies.{path.stem}", path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
        return module.topos[path.stem](**parameters)
    except Exception as error:
        raise SpecError([f"{path}: {type(error).__name__}: {error}"]) from error


def _interfaces(path: Path, topo: Any) -> tuple[Interface, ...]:
    interfaces: list[Interface] = []
    problems = []
    for _, _, info in topo.links(sort=True, withInfo=True):
        ends = [
            (info[f"node{end}"], f"{info[f'node{end}']}-eth{info[f'port{end}']}", end)
            for end in (1, 2)
        ]
        for (node, name, end), (peer_node, peer_name, _) in (ends, ends[::-1]):
            address = (info.get(f"params{end}") or {}).get("ip") or topo.nodeInfo(node).get("ip")
            if address is None:
                problems.append(f'{path}: link {node} - {peer_node}: {node} needs an "ip"')
                continue
            mac = f"02:00:00:00:{len(interfaces) // 256:02x}:{len(interfaces) % 256:02x}"
            interfaces.append(
                Interface(node, name, IPv4Interface(address), mac, peer_node, peer_name)
            )
    if problems:
        raise SpecError(problems)
    return tuple(interfaces)


def _placement(
    path: Path, topo: Any, attribute: str, interfaces: tuple[Interface, ...]
) -> dict[str, tuple[Interface, ...]]:
    pairs_by_direction = getattr(topo, attribute, None)
    if not pairs_by_direction:
        raise SpecError([f"{path}: must define {attribute}: {{direction: [(node, towards)]}}"])
    placed = {}
    for direction, pairs in pairs_by_direction.items():
        found = [
            next((i for i in interfaces if (i.node, i.peer_node) == pair), None) for pair in pairs
        ]
        missing = [pair for pair, interface in zip(pairs, found, strict=True) if interface is None]
        if missing:
            raise SpecError(
                [f"{path}: {attribute}.{direction}: no link {a} - {b}" for a, b in missing]
            )
        placed[direction] = tuple(interface for interface in found if interface is not None)
    return placed
