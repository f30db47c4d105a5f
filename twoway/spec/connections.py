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
        flow: what it is one of.
        name: as in metrics.
        index: which gives it its ports.
        directions: the queues that its data passes, in order.
        ack_directions: those that its acknowledgements pass, in order.
        direction: the slowest that its data passes.
        ack_direction: the slowest that its acknowledgements pass.
        start_s: first data, after the traffic's start.
        transfer_bytes: payload that it has to send; None if unlimited.
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
        """Nothing but its window keeps it from sending."""
        flow = self.flow
        return not (flow.rate_mbit or flow.film or flow.transfers)

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
    """The connections of all flows, each with the queues that it passes.

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
        starts = _starts(flow, experiment.duration_s)
        connections += [
            Connection(
                flow=flow,
                name=f"{flow.name}-{number}" if flow.is_many else flow.name,
                index=len(connections) + number - 1,
                directions=tuple(directions),
                ack_directions=tuple(ack_directions),
                direction=_slowest(profile, directions),
                ack_direction=_slowest(profile, ack_directions),
                start_s=start_s,
                transfer_bytes=transfer_bytes,
            )
            for number, (start_s, transfer_bytes) in enumerate(starts, start=1)
        ]
    names = [c.name for c in connections]
    problems += [
        f'{where}: flows: "{name}" is used twice, by a flow and by one of several with count'
        for name in dict.fromkeys(n for n in names if names.count(n) > 1)
    ]
    if problems:
        raise SpecError(problems)
    return connections


def _starts(flow: Flow, duration_s: float) -> list[tuple[float, int | None]]:
    """When each of a flow's connections begins, and what it has to send."""
    if not flow.transfers:
        return [(flow.start_s, None)] * flow.count
    arrivals = flow.transfers.arrivals(duration_s - flow.start_s)
    return [(flow.start_s + each.start_s, each.payload_bytes) for each in arrivals]


def _passed(graph: Graph, start: str, goal: str) -> dict[str, str]:
    """The queues on the way from one host to another, in order: directions by queue's name."""
    queued = {queue.interface.name: queue for queue in graph.placed_queues}
    passed = [queued[i.name] for i in _path(graph, start, goal) if i.name in queued]
    return {queue.name: queue.direction for queue in passed}


def _slowest(profile: Profile, queues: Mapping[str, str]) -> str:
    """The slowest queue, the first of equals; a DTM channel as it is at the start of traffic."""
    return min(queues, key=lambda name: profile.directions[queues[name]].start_mbit)


def _path(graph: Graph, start: str, goal: str) -> list[Interface]:
    """The outgoing interfaces on the shortest way from one host to another."""
    ways: dict[str, list[Interface]] = {start: []}
    ahead = deque([start])
    while ahead:
        node = ahead.popleft()
        for interface in graph.of(node):
            if interface.peer_node not in ways:
                ways[interface.peer_node] = [*ways[node], interface]
                ahead.append(interface.peer_node)
    return ways.get(goal, [])
