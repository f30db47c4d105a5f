"""The paths of frames: over a link, or over switches to all their other ends."""

from collections.abc import Collection, Iterable, Iterator

from twoway.links.interface import Interface

_MOST_ROUTES = 50_000


class Segments:
    """The links of a network, and the switches that join some of these links."""

    def __init__(self, interfaces: Iterable[Interface], switches: Collection[str]) -> None:
        self._peers = dict[str, Interface]()
        self._ports: dict[str, list[Interface]] = {node: [] for node in switches}
        for each in interfaces:
            self._peers[each.peer_name] = each
            if each.node in self._ports:
                self._ports[each.node].append(each)

    def reachable(self, start: Interface) -> tuple[Interface, ...]:
        """List the interfaces of hosts and routers that frames from an interface can reach.

        Raises: ValueError naming a switch that frames reach twice.
        """
        return tuple(self._follow([start], {start.node} & self._ports.keys()))

    def list_segments(self) -> Iterator[tuple[list[str], list[Interface]]]:
        """List each link and each group of switches once, as pairs of switches and ends.

        Raises: ValueError as `reached`.
        """
        passed = set[str]()
        for end, peer in ((each, self._peers[each.name]) for each in self._peers.values()):
            if end.name < peer.name and not {end.node, peer.node} & self._ports.keys():
                yield [], [end, peer]
        for switch, ports in self._ports.items():
            if switch not in passed:
                group = {switch}
                ends = self._follow(ports, group)
                passed |= group
                yield [switch, *(group - {switch})], ends

    def _follow(self, ports: Iterable[Interface], passed: set[str]) -> list[Interface]:
        """Follow frames from ports to hosts and routers, and add the switches that they pass."""
        found, arrived = list[Interface](), [self._peers[i.name] for i in ports]
        for end in arrived:
            if end.node not in self._ports:
                found.append(end)
            elif end.node in passed:
                raise ValueError(
                    f"{end.node}: its frames come back to it, and there is no spanning tree"
                )
            else:
                passed.add(end.node)
                arrived += [self._peers[i.name] for i in self._ports[end.node] if i is not end]
        return found


def joining_problems(
    interfaces: Collection[Interface], switches: Collection[str], routers: Collection[str]
) -> Iterator[str]:
    """List what links and switches must not join: circles, several networks, several routers."""
    try:
        joined = [*Segments(interfaces, switches).list_segments()]
    except ValueError as error:
        yield str(error)
        return
    routes = sum(len(group) * len(ends) for group, ends in joined)
    if routes > _MOST_ROUTES:
        yield (
            f"each switch has a route to each end that it leads to: {_MOST_ROUTES} at most, "
            f"got {routes}"
        )
        return
    for group, ends in joined:
        ends.sort(key=lambda each: each.name)
        for other in ends[1:]:
            one = ends[0]
            if len({each.address.network for each in (one, other) if each.address}) > 1:
                both = f"{one.address} and {other.address}"
                yield f"{one.node} - {other.node}: {both} are not in one network"
        gates = " and ".join(end.name for end in ends if end.node in routers)
        if group and " and " in gates:
            yield f"{group[0]}: leads to {gates}: switches join hosts and one interface of a router"
