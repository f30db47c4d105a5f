"""Routes of a topology's nodes, from the commands that set them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network

from twoway.contract.routing import ITSELF, Routes
from twoway.description.mininet_commands import DEFAULT, NodeCommand, Route
from twoway.description.switching import Segments
from twoway.errors import SpecError
from twoway.links.interface import Interface


def node_routes(
    path: object,
    commands: Mapping[str, Iterable[NodeCommand]],
    hosts: Collection[str],
    routers: Collection[str],
    interfaces: Sequence[Interface],
) -> dict[str, Routes]:
    """List the routes of all nodes.

    The plan sets a host's default route: through the first link (twoway/plan/personality.py),
    unless that leads to a switch. A switch has a route to each address, and one to its router.

    Args:
        path: the topology's file, for errors.
        commands: the commands of each node.
        hosts: the nodes that forward nothing.
        routers: the nodes that forward packets. All others are switches.
        interfaces: both ends of all links.

    Raises: SpecError naming routes that lead to no neighbour.
    """
    switches = commands.keys() - {*hosts, *routers}
    segments = Segments(interfaces, switches)
    ends: dict[str, list[Interface]] = {node: [] for node in commands}
    for interface in interfaces:
        ends[interface.node].append(interface)
    found, problems = {}, []
    for node, mine in ends.items():
        reached = [(each, i.name) for i in mine for each in segments.reachable(i)]
        neighbours = {each.ip: name for each, name in reached}
        goals = {i.address.network: i.name for i in mine if i.address}
        goals |= {IPv4Network(i.address.ip): ITSELF for i in mine if i.address}
        if node in switches:
            goals = {IPv4Network(address): name for address, name in neighbours.items()}
            gates = [name for each, name in reached if each.node in routers]
            goals |= dict.fromkeys((DEFAULT,), gates[0]) if gates else {}
        for route in commands[node]:
            if isinstance(route, Route):
                try:
                    goals[route.network] = _leaves(route.gateway, neighbours)
                except ValueError as error:
                    problems.append(f"{path}: {node}: {route.line(4)}: {error}")
        if node in hosts and mine[0].peer_node not in switches:
            goals[DEFAULT] = mine[0].name
        found[node] = Routes({str(network): name for network, name in goals.items()})
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
