"""The routes that a topology gives its nodes, of the commands that set them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from twoway.contract.routing import ITSELF, Routes
from twoway.errors import SpecError
from twoway.spec.graph import Interface
from twoway.spec.recorded import DEFAULT, NodeCommand, Route


def node_routes(
    path: object,
    commands: Mapping[str, Iterable[NodeCommand]],
    hosts: Collection[str],
    interfaces: Sequence[Interface],
) -> dict[str, Routes]:
    """List the routes of all nodes.

    A host's default route is the plan's: through the first link (twoway/plan/personality.py).

    Args:
        path: the topology's file, for errors.
        commands: what each node runs.
        hosts: the nodes that are no routers.
        interfaces: both ends of all links.

    Raises: SpecError naming routes that lead to no neighbour.
    """
    by_name = {i.name: i for i in interfaces}
    ends: dict[str, list[Interface]] = {node: [] for node in commands}
    for interface in interfaces:
        ends[interface.node].append(interface)
    found, problems = {}, []
    for node, mine in ends.items():
        neighbours = {by_name[i.peer_name].address.ip: i.name for i in mine}
        ways = {i.address.network: i.name for i in mine}
        ways |= {IPv4Network(i.address.ip): ITSELF for i in mine}
        for route in commands[node]:
            if isinstance(route, Route):
                try:
                    ways[route.network] = _leaves(route.gateway, neighbours)
                except ValueError as error:
                    problems.append(f"{path}: {node}: {route.line(4)}: {error}")
        if node in hosts:
            ways[DEFAULT] = mine[0].name
        found[node] = Routes({str(network): name for network, name in ways.items()})
    if problems:
        raise SpecError(problems)
    return found


def _leaves(gateway: IPv4Address, neighbours: Mapping[IPv4Address, str]) -> str:
    """Find the interface that leads to a gateway.

    Raises: ValueError if none does.
    """
    if gateway not in neighbours:
        known = ", ".join(map(str, neighbours))
        raise ValueError(f"no neighbour has {gateway}; they have {known}")
    return neighbours[gateway]
