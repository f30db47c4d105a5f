"""The TCP connections of an experiment, and the queues that each passes."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from twoway.errors import SpecError
from twoway.spec.congestion import CONTROLS
from twoway.spec.experiment import Experiment, Flow, Profile
from twoway.spec.topology import Graph, Interface

FIRST_PORT = 5001
FIRST_SOURCE_PORT = 40001


@dataclass(frozen=True)
class Connection:
    """One TCP connection of a flow.

    Attributes:
        flow: the flow that it belongs to.
        name: its name in metrics.
        index: its number, which determines its ports.
        directions: the queues that its data passes, in order.
        ack_directions: the queues that its ACKs pass, in order.
        direction: the slowest queue that its data passes.
        ack_direction: the slowest queue that its ACKs pass.
        start_s: time of its first data, after the traffic's start.
        transfer_bytes: payload to send; None if unlimited.
    """

    flow: Flow
    name: str
    index: int
    directions: tuple[str, ...]
    ack_directions: tuple[str, ...]
    direction: str
    ack_direction: str
    start_s: float
    transfer_bytes: int | None

    @property
    def always_has_data(self) -> bool:
        """True if nothing but the window limits its sending."""
        return self.flow.traffic is None

    @property
    def port(self) -> int:
        """The sink's port."""
        return FIRST_PORT + self.index

    @property
    def source_port(self) -> int:
        """The source's port."""
        return FIRST_SOURCE_PORT + self.index

    @property
    def congestion(self) -> str:
        """The congestion control's name in the kernel."""
        field = CONTROLS[self.flow.congestion].field
        return f"{self.flow.congestion}{getattr(self.flow, field) if field else ''}"


def make_connections(
    where: str, experiment: Experiment, profile: Profile, graph: Graph
) -> list[Connection]:
    """Make the connections of all flows, each with the queues that it passes.

    Raises: SpecError naming flows that pass no queue, or names used twice.
    """
    connections: list[Connection] = []
    problems = []
    for index, flow in enumerate(experiment.flows):
        directions = _passed(graph, flow.from_, flow.to)
        ack_directions = _passed(graph, flow.to, flow.from_)
        if not directions or not ack_directions:
            ends = (flow.to, flow.from_) if directions else (flow.from_, flow.to)
            problems.append(f"{where}: flows.{index}: {' to '.join(ends)} passes no queue")
            continue
        arrivals = flow.traffic.arrivals(experiment.span(flow)) if flow.traffic else None
        starts: list[tuple[float, int | None]] = [(0.0, None)] * flow.count
        if arrivals is not None:
            starts = [*arrivals]
        numbered = flow.count > 1 or arrivals is not None
        connections += [
            Connection(
                flow=flow,
                name=f"{flow.name}-{number}" if numbered else flow.name,
                index=len(connections) + number - 1,
                directions=tuple(directions),
                ack_directions=tuple(ack_directions),
                direction=_slowest(profile, directions),
                ack_direction=_slowest(profile, ack_directions),
                start_s=flow.start_s + later_s,
                transfer_bytes=transfer_bytes,
            )
            for number, (later_s, transfer_bytes) in enumerate(starts, start=1)
        ]
    names = [c.name for c in connections]
    problems += [
        f'{where}: flows: "{name}" is used twice, by a flow and by one of several with count'
        for name in dict.fromkeys(n for n in names if names.count(n) > 1)
    ]
    if problems:
        raise SpecError(problems)
    return connections


def _passed(graph: Graph, start: str, goal: str) -> dict[str, str]:
    """List the queues on the path between two hosts, in order.

    Returns: directions of the profile by queue name.
    """
    queued = {queue.interface.name: queue for queue in graph.placed_queues}
    passed = [queued[i.name] for i in _path(graph, start, goal) if i.name in queued]
    return {queue.name: queue.direction for queue in passed}


def _slowest(profile: Profile, queues: Mapping[str, str]) -> str:
    """Find the slowest queue at the start of traffic, the first of equals."""
    return min(queues, key=lambda name: profile.directions[queues[name]].start_mbit)


def _path(graph: Graph, start: str, goal: str) -> list[Interface]:
    """List the outgoing interfaces on the shortest path between two hosts."""
    paths: dict[str, list[Interface]] = {start: []}
    ahead = deque([start])
    while ahead:
        node = ahead.popleft()
        for interface in graph.of(node):
            if interface.peer_node not in paths:
                paths[interface.peer_node] = [*paths[node], interface]
                ahead.append(interface.peer_node)
    return paths.get(goal, [])
