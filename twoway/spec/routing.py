"""The routes that a topology gives its nodes, read from the commands that set them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from twoway.contract.routing import ITSELF, Routes
from twoway.errors import SpecError
from twoway.spec.graph import Interface

_ROUTE = re.compile(r"ip (?:-4 )?route (?:add|replace) (\S+) via (\S+)(?: dev \S+)?")
# Mininet's, before each default route.
_CLEARED = "ip route del default"
_DEFAULT = IPv4Network("0.0.0.0/0")


def read_routes(
    path: object,
    routing: Mapping[str, Iterable[str]],
    nodes: tuple[Collection[str], Collection[str]],
    interfaces: Sequence[Interface],
) -> dict[str, Routes]:
    """Read the routes of all nodes, from the commands that set them.

    A host's default route is the plan's: through the first link (twoway/plan/personality.py).

    Args:
        path: the topology's file, for errors.
        routing: the commands by node.
        nodes: hosts and routers.
        interfaces: both ends of all links.

    Raises: SpecError naming commands that are no route, or lead to no neighbour.
    """
    by_name = {i.name: i for i in interfaces}
    hosts, routers = nodes
    ends: dict[str, list[Interface]] = {node: [] for node in (*hosts, *routers)}
    for interface in interfaces:
        ends[interface.node].append(interface)
    found, problems = {}, []
    for node, mine in ends.items():
        neighbours = {by_name[i.peer_name].address.ip: i.name for i in mine}
        ways = {i.address.network: i.name for i in mine}
        ways |= {IPv4Network(i.address.ip): ITSELF for i in mine}
        for command in routing.get(node, ()):
            try:
                ways |= _read(command, neighbours)
            except ValueError as error:
                problems.append(f"{path}: {node}: {command}: {error}")
        if node in hosts:
            ways[_DEFAULT] = mine[0].name
        found[node] = Routes({str(network): name for network, name in ways.items()})
    if problems:
        raise SpecError(problems)
    return found


def _read(command: str, neighbours: Mapping[IPv4Address, str]) -> dict[IPv4Network, str]:
    """Read a command: the interface of the network that it gives a route to.

    Raises: ValueError with what is wrong.
    """
    if command == _CLEARED:
        return {}
    words = _ROUTE.fullmatch(command)
    if not words:
        raise ValueError("a route is `ip route add NETWORK via GATEWAY`; IPv6 gets the same")
    network = _DEFAULT if words[1] == "default" else IPv4Network(words[1])
    gateway = IPv4Address(words[2])
    if gateway not in neighbours:
        known = ", ".join(map(str, neighbours))
        raise ValueError(f"no neighbour has {gateway}; they have {known}")
    return {network: neighbours[gateway]}
