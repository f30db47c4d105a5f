"""A topology as a plain graph: nodes, links, routes, and the places of queues and delays."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_network

from twoway.contract.network import whole_ns
from twoway.contract.routing import Routes
from twoway.description.addresses import address_in, network_in_ipv6
from twoway.description.mininet_commands import NodeCommand
from twoway.description.stack import RouteChange
from twoway.description.switching import Segments
from twoway.errors import SpecError
from twoway.links.interface import Interface


@dataclass(frozen=True)
class PlacedQueue:
    """A bottleneck: name in metrics, direction of profile, interface."""

    name: str
    direction: str
    interface: Interface


@dataclass(frozen=True)
class Graph:
    """A topology: nodes, interfaces, commands and routes by node, places of queues and delays."""

    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    switches: tuple[str, ...]
    interfaces: tuple[Interface, ...]
    commands: Mapping[str, tuple[NodeCommand, ...]]
    routes: Mapping[str, Routes]
    queues: Mapping[str, tuple[Interface, ...]]
    delays: Mapping[str, tuple[Interface, ...]]

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes, hosts first."""
        return self.hosts + self.routers + self.switches

    @property
    def links(self) -> tuple[tuple[Interface, Interface], ...]:
        """Both ends of each link."""
        return tuple(zip(self.interfaces[::2], self.interfaces[1::2], strict=True))

    @property
    def placed_queues(self) -> tuple[PlacedQueue, ...]:
        """All bottlenecks; several of one direction are numbered from 1."""
        return tuple(
            PlacedQueue(f"{name}-{number}" if len(placed) > 1 else name, name, interface)
            for name, placed in self.queues.items()
            for number, interface in enumerate(placed, start=1)
        )

    @cached_property
    def queued(self) -> Mapping[str, Interface]:
        """The interfaces with a queue, by name."""
        return {i.name: i for placed in self.queues.values() for i in placed}

    def interfaces_of(self, node: str) -> tuple[Interface, ...]:
        """List the interfaces of one node."""
        return tuple(i for i in self.interfaces if i.node == node)

    def peer(self, interface: Interface) -> Interface:
        """Return the other end of an interface's link."""
        return next(i for i in self.interfaces if i.name == interface.peer_name)

    @cached_property
    def _segments(self) -> Segments:
        return Segments(self.interfaces, self.switches)

    def neighbours(self, interface: Interface) -> tuple[Interface, ...]:
        """List the interfaces with addresses that frames from an interface reach."""
        return self._segments.reachable(interface)

    def path(self, start: str, goal: str) -> tuple[Interface, ...]:
        """List the interfaces at which packets from one host to another leave a node, in order.

        Raises: SpecError naming the node at which they do not go on.
        """
        destination, node = str(self.address(goal, 4)), start
        passed: list[Interface] = []
        while node != goal:
            if node != start and node in self.hosts:
                raise SpecError([f"{node}: forwards no packets to {goal}: it is no LinuxRouter"])
            name = self.routes[node].interface_to(destination)
            way = next((i for i in self.interfaces_of(node) if i.name == name), None)
            if way is None:
                raise SpecError([f"{node}: no route to {goal} ({destination})"])
            if way in passed:
                raise SpecError([f"{node}: packets to {goal} ({destination}) come back to it"])
            passed.append(way)
            node = way.peer_node
        return tuple(passed)

    def ways_out(self, node: str, *, ipv6: bool) -> dict[str, str]:
        """List a node's interfaces by destination prefix, for IPv4 and, if used, IPv6."""
        ways = self.routes[node].ways
        if not ipv6:
            return ways
        return ways | {str(network_in_ipv6(IPv4Network(each))): ways[each] for each in ways}

    def route_changes(
        self, node: str, changes: Iterable[RouteChange], *, ipv6: bool
    ) -> Iterator[tuple[int, dict[str, tuple[Interface, str]]]]:
        """List changes of a node's routes by time: interfaces and gateways by destination.

        Times count in ns from the start of traffic.
        """
        for change in sorted(changes, key=lambda each: each.at_s):
            out = next(i for i in self.interfaces_of(node) if i.peer_node == change.via)
            gateway = self.peer(out).ip
            yield (
                whole_ns(change.at_s),
                {
                    str(ip_network(address_in(i.ip, ip))): (out, str(address_in(gateway, ip)))
                    for i in self.interfaces_of(change.to)
                    for ip in ((4, 6) if ipv6 else (4,))
                },
            )

    def address(self, host: str, ip: int) -> IPv4Address | IPv6Address:
        """Return a host's address in a version of IP: that of its first interface."""
        return address_in(self.interfaces_of(host)[0].ip, ip)
