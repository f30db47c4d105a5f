"""The connections and UDP flows of an experiment, and the queues that each passes."""

from collections.abc import Iterable, Mapping
from typing import Any

from twoway.contract.network import CONNECT_NS, START_NS, Connection, DatagramFlow
from twoway.description.congestion import CONTROLS, Control
from twoway.description.experiment import Experiment, Flow, Profile
from twoway.description.graph import Graph
from twoway.description.placement import behind_problems
from twoway.description.repetitions import late_s, ports_later
from twoway.errors import SpecError

FIRST_PORT = 5001
FIRST_SOURCE_PORT = 40001
FIRST_UDP_PORT = 20001
FIRST_UDP_SOURCE_PORT = 30001


def make_connections(
    where: str, experiment: Experiment, profile: Profile, graph: Graph
) -> list[tuple[Connection, Flow]]:
    """Make the connections of all flows, each with its flow.

    Raises: SpecError naming flows that have no route or pass no queue, or names used twice.
    """
    connections: list[tuple[Connection, Flow]] = []
    problems = []
    for index, flow in enumerate(experiment.flows):
        try:
            directions = passed_queues(graph, flow.from_, flow.to)
            ack_directions = passed_queues(graph, flow.to, flow.from_)
        except SpecError as error:
            problems += [f"{where}: flows.{index}: {problem}" for problem in error.problems]
            continue
        if not directions or not ack_directions:
            ends = (flow.to, flow.from_) if directions else (flow.from_, flow.to)
            problems.append(f"{where}: flows.{index}: {' to '.join(ends)} passes no queue")
            continue
        for ends in ((flow.from_, flow.to), (flow.to, flow.from_)):
            found = behind_problems(profile, graph, *ends)
            problems += [f"{where}: flows.{index}: {problem}" for problem in found]
        queues = {
            "directions": tuple(directions),
            "ack_directions": tuple(ack_directions),
            "direction": _slowest(profile, directions),
            "ack_direction": _slowest(profile, ack_directions),
        }
        made = _connections_of(flow, experiment, graph, queues, len(connections))
        connections += [(connection, flow) for connection in made]
    names = [connection.name for connection, _ in connections]
    problems += [
        (
            f'{where}: flows: "{name}" is used twice: by a flow, and by a connection of a '
            "flow with count"
        )
        for name in dict.fromkeys(n for n in names if names.count(n) > 1)
    ]
    if problems:
        raise SpecError(problems)
    return connections


def make_datagram_flows(where: str, experiment: Experiment, graph: Graph) -> list[DatagramFlow]:
    """Give UDP flows their addresses, ports and queues.

    Raises: SpecError naming flows that have no route or pass no queue.
    """
    found, problems = [], []
    for index, each in enumerate(experiment.datagrams):
        try:
            directions = tuple(passed_queues(graph, each.from_, each.to))
        except SpecError as error:
            problems += [f"{where}: datagrams.{index}: {problem}" for problem in error.problems]
            continue
        if not directions:
            problems.append(
                f"{where}: datagrams.{index}: {each.from_} to {each.to} passes no queue"
            )
            continue
        stop_s, ip = each.stop_s or experiment.duration_s, experiment.ip_of(each)
        start_s = each.start_s + late_s(experiment, each.name, stop_s - each.start_s)
        flow = DatagramFlow(
            name=each.name,
            from_=each.from_,
            to=each.to,
            source=str(graph.address(each.from_, ip)),
            destination=str(graph.address(each.to, ip)),
            source_port=FIRST_UDP_SOURCE_PORT + ports_later(experiment) + index,
            port=FIRST_UDP_PORT + ports_later(experiment) + index,
            source_interface=graph.interfaces_of(each.from_)[0].name,
            sink_interface=graph.interfaces_of(each.to)[0].name,
            directions=directions,
            packet_bytes=each.packet_bytes,
            rate_mbit=each.rate_mbit,
            poisson=each.arrivals == "poisson",
            frames_per_s=each.film.frames_per_s if each.film else None,
            mean_on_s=each.on_off.mean_on_s if each.on_off else None,
            mean_off_s=each.on_off.mean_off_s if each.on_off else None,
            start_ns=START_NS + round(start_s * 1e9),
            stop_ns=START_NS + round(stop_s * 1e9),
        )
        found.append(flow)
    if problems:
        raise SpecError(problems)
    return found


def _connections_of(
    flow: Flow, experiment: Experiment, graph: Graph, queues: Mapping[str, Any], first: int
) -> Iterable[Connection]:
    """Make a flow's connections.

    Args:
        flow: the flow.
        experiment: its experiment.
        graph: the topology.
        queues: the queues that each connection passes, by field.
        first: the number of the flow's first connection, which determines the ports.
    """
    traffic, ip = flow.traffic, experiment.ip_of(flow)
    arrivals = traffic.arrivals(experiment.span(flow)) if traffic else None
    starts: list[tuple[float, int | None]] = [(0.0, None)] * flow.count
    if arrivals is not None:
        starts = [*arrivals]
    numbered = flow.count > 1 or arrivals is not None
    first += ports_later(experiment)
    own = "at-start" if experiment.stack_of(flow.from_).is_linux else "before"
    connect = flow.connect or own
    for index, (later_s, transfer_bytes) in enumerate(starts):
        name = f"{flow.name}-{index + 1}" if numbered else flow.name
        span = experiment.span(flow, name)
        late = late_s(experiment, name, span.seconds) if arrivals is None else later_s
        start_ns = START_NS + round((flow.start_s + late) * 1e9)
        yield Connection(
            name=name,
            from_=flow.from_,
            to=flow.to,
            source=str(graph.address(flow.from_, ip)),
            destination=str(graph.address(flow.to, ip)),
            source_port=FIRST_SOURCE_PORT + first + index,
            port=FIRST_PORT + first + index,
            source_interface=graph.interfaces_of(flow.from_)[0].name,
            sink_interface=graph.interfaces_of(flow.to)[0].name,
            **queues,
            congestion=flow.congestion,
            congestion_in_kernel=_name_in_kernel(flow),
            window_packets=flow.window_packets,
            alpha_packets=flow.alpha_packets,
            rate_mbit=traffic.packet_mbit(span) if traffic else None,
            transfer_bytes=transfer_bytes or (traffic.payload_bytes if traffic else None),
            paced=traffic is not None or flow.socket.max_pacing_rate_mbit is not None,
            connect_ns=CONNECT_NS if connect == "before" else start_ns,
            start_ns=start_ns,
            stop_ns=START_NS + round(flow.stop_s * 1e9) if flow.stop_s else None,
        )


def _name_in_kernel(flow: Flow) -> str:
    field = CONTROLS.get(flow.congestion, Control()).field
    return f"{flow.congestion}{getattr(flow, field) if field else ''}"


def passed_queues(graph: Graph, start: str, goal: str) -> dict[str, str]:
    """List the queues on the path between two hosts, in order.

    Returns: directions of the profile by queue name.
    Raises: SpecError naming a node without a route.
    """
    queued = {queue.interface.name: queue for queue in graph.placed_queues}
    passed = [queued[i.name] for i in graph.path(start, goal) if i.name in queued]
    return {queue.name: queue.direction for queue in passed}


def _slowest(profile: Profile, queues: Mapping[str, str]) -> str:
    """Find the slowest queue at the start of traffic, the first of equals."""
    return min(queues, key=lambda name: profile.directions[queues[name]].start_mbit)
