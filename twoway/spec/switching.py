"""Where frames go: over a link, or over switches to all that these lead to."""

from collections.abc import Collection, Iterable, Iterator

from twoway.spec.interface import Interface


class Segments:
    """The links of a network, and the switches that join some of them.

    Args:
        interfaces: both ends of all links.
        switches: the nodes that forward frames.
    """

    def __init__(self, interfaces: Iterable[Interface], switches: Collection[str]) -> None:
        self._peers = dict[str, Interface]()
        self._ports: dict[str, list[Interface]] = {node: [] for node in switches}
        for each in interfaces:
            self._peers[each.peer_name] = each
            if each.node in self._ports:
                self._ports[each.node].append(each)

    def reached(self, start: Interface) -> tuple[Interface, ...]:
        """List the interfaces of hosts and routers that frames from an interface may reach.

        Raises: ValueError naming a switch that they reach twice.
        """
        found, passed = list[Interface](), {start.node} & self._ports.keys()
        arrived = [self._peers[start.name]]
        for end in arrived:
            if end.node not in self._ports:
                found.append(end)
            elif end.node in passed:
                raise ValueError(f"{end.node}: its frames come back to it, and no tree is spanned")
            else:
                passed.add(end.node)
                arrived += [self._peers[i.name] for i in self._ports[end.node] if i is not end]
        return tuple(found)


def joining_problems(
    interfaces: Collection[Interface], switches: Collection[str], routers: Collection[str]
) -> Iterator[str]:
    """List what links and switches join and must not: circles, networks and routers."""
    segments = Segments(interfaces, switches)
    try:
        reached = {each: segments.reached(each) for each in interfaces}
    except ValueError as error:
        yield str(error)
        return
    for one, others in reached.items():
        for other in others:
            networks = {each.address.network for each in (one, other) if each.address}
            if one.name < other.name and len(networks) > 1:
                both = f"{one.address} and {other.address}"
                yield f"{one.node} - {other.node}: {both} are not in one network"
    for switch in switches:
        ends = [end for port in reached if port.node == switch for end in reached[port]]
        gates = " and ".join(end.name for end in ends if end.node in routers)
        if " and " in gates:
            yield f"{switch}: leads to {gates}: switches join hosts and one interface of a router"
