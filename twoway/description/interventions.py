"""Interventions: other fates of single packets, and settings that change during the traffic."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from twoway.contract.model import Model, Name, NonNegative, Positive
from twoway.contract.network import CHANGE_NS, Connection, whole_ns
from twoway.description.congestion import KERNELS_OWN
from twoway.description.graph import Graph, PlacedQueue
from twoway.description.stack import RouterSettings
from twoway.description.sysctls import Sysctls
from twoway.links.direction import Direction
from twoway.links.dtm import Channel
from twoway.links.element import Delay
from twoway.links.loss import Loss
from twoway.messages import suggest


class PacketName(Model):
    """A packet, by what a capture shows: the first that comes to a queue and fits all fields."""

    flow: Name | None = Field(
        default=None, description="a connection, as in metrics: its data, or its ACKs; any without"
    )
    queue: Name | None = Field(
        default=None,
        description="a direction of the profile; by default the slowest that the flow's data pass",
    )
    sequence: Annotated[int, Field(ge=1, lt=2**32)] | None = Field(
        default=None,
        description="number of its first byte of data, which Wireshark shows: the flow's first "
        "byte is 1",
    )
    packet: Annotated[int, Field(ge=1, lt=2**32)] = Field(
        default=1, description="not the first packet that fits, but the one with this number"
    )
    from_s: NonNegative = Field(
        default=0, description="time from which packets count, after the traffic's start"
    )
    until_s: Positive | None = Field(
        default=None, description="instead of one packet, each that fits from from_s until then"
    )


class LatePacket(PacketName):
    """A packet, and a time by which it is late."""

    by_ms: Annotated[float, Field(gt=0, le=10_000)] = Field(description="the time, ms")


class HostSysctls(Model):
    """Sysctls of a host, from a time on."""

    host: Name = Field(description="the host")
    sysctls: Sysctls = Field(description="values by name")
    at_s: Positive = Field(description="time of the change, after the traffic's start")


class QueueLimit(Model):
    """Another limit of a drop-tail queue, from a time on."""

    queue: Name = Field(description="a direction of the profile")
    packets: Annotated[int, Field(ge=1, lt=2**32)] = Field(description="its new limit")
    at_s: Positive = Field(description="time of the change, after the traffic's start")


class FlowControl(Model):
    """Another congestion control of a connection, from a time on."""

    flow: Name = Field(description="a connection, as in metrics")
    congestion: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")] = Field(
        description="a congestion control that is part of the kernel"
    )
    at_s: Positive = Field(
        description="time of the change, after the traffic's start: the next packet is the last of "
        "the old control"
    )


class Intervention(Model):
    """A change to a run: one of its fields."""

    drop: PacketName | None = Field(default=None, description="the queue drops it")
    keep: PacketName | None = Field(
        default=None,
        description="a full drop-tail queue takes it, beyond its limit; a manager, or a link with "
        "random losses behind the queue, passes it on instead of dropping it",
    )
    mark: PacketName | None = Field(
        default=None, description="it comes to the queue with a mark of congestion (CE)"
    )
    unmark: PacketName | None = Field(
        default=None, description="the queue's manager does not mark it"
    )
    delay: LatePacket | None = Field(
        default=None, description="the link behind the queue delivers it later"
    )
    duplicate: PacketName | None = Field(
        default=None, description="the link behind the queue delivers it twice"
    )
    set: HostSysctls | None = Field(default=None, description="a host gets other sysctls")
    limit: QueueLimit | None = Field(default=None, description="a queue gets another limit")
    control: FlowControl | None = Field(
        default=None, description="a connection gets another congestion control"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            got = ", ".join(sorted(self.model_fields_set)) or "none"
            raise ValueError(f"takes one of {', '.join(type(self).model_fields)}; got {got}")
        return self

    @property
    def packet(self) -> tuple[str, PacketName] | None:
        """The action and the packet; None for a change of settings."""
        (action,) = self.model_fields_set
        named = getattr(self, action)
        return (action, named) if isinstance(named, PacketName) else None


def queue_of(named: PacketName, of: "Surroundings") -> PlacedQueue | None:
    """Find the queue of a packet; None if the topology has none of that name."""
    flow = of.connections.get(named.flow or "")
    wanted = named.queue or (flow.direction if flow else None)
    return next((queue for queue in of.graph.placed_queues if queue.name == wanted), None)


def drops_when_full_alone(direction: Direction) -> bool:
    """Tell whether a direction's queue drops only what finds its limit of packets in it."""
    return direction.manager is None and not direction.elements.contains(Channel)


def loses_at_random(direction: Direction) -> bool:
    """Tell whether netem loses packets behind a direction's queue, which it could mark instead.

    Each change of a schedule sets netem's options anew, without marks.
    """
    loss = direction.elements.find(Loss)
    return loss is not None and bool(loss.percent) and not direction.elements.contains(Delay)


# The actions of a link, behind its queue.
BEHIND = ("delay", "duplicate")


class Place(NamedTuple):
    """An interface whose root qdisc may drop a packet.

    Attributes:
        interface: its name.
        limited: the qdisc is a drop-tail queue.
        behind: it has the delay and the losses behind the queue.
    """

    interface: str
    limited: bool
    behind: bool = False


def places_of(action: str, queue: PlacedQueue, of: "Surroundings") -> list[Place]:
    """List the places where an intervention on a packet of a queue may happen."""
    direction = of.directions[queue.direction]
    behind = [Place(each.name, False, True) for each in of.graph.delays[queue.direction]]
    if action in BEHIND:
        return behind
    found = [Place(queue.interface.name, drops_when_full_alone(direction))]
    if action == "keep" and loses_at_random(direction) and not of.ecn:
        found += behind
    return found


def may_keep(direction: Direction, *, ecn: bool) -> bool:
    """Tell whether a direction's queue can keep a packet that it would drop.

    A manager marks the packet instead, so it must be one that marks. If flows have ECN (`ecn`), it
    must mark their packets without the intervention, too.
    """
    marks = direction.manager.marks if direction.manager else "never"
    asked = marks == "asked" and (direction.ecn or not ecn)
    return drops_when_full_alone(direction) or marks == "always" or asked


class Surroundings(NamedTuple):
    """A run's duration, connections, nodes and links, which interventions may name.

    Attributes:
        ecn: some flows have ECN.
    """

    duration_s: float
    ecn: bool
    connections: Mapping[str, Connection]
    graph: Graph
    directions: Mapping[str, Direction]


def intervention_problems(asked: Sequence[Intervention], of: Surroundings) -> Iterator[str]:
    """List interventions in what an experiment does not have, each after its field."""
    for number, each in enumerate(asked):
        if found := each.packet:
            action, named = found
            problems = [*_place_problems(action, named, of), *_time_problems(named, of)]
            yield from (f"interventions.{number}.{action}{problem}" for problem in problems)
        elif each.set:
            yield from (f"interventions.{number}.set{p}" for p in _host_problems(each.set, of))
        elif each.limit:
            yield from (f"interventions.{number}.limit{p}" for p in _limit_problems(each.limit, of))
        elif each.control:
            wrong = _control_problems(each.control, of)
            yield from (f"interventions.{number}.control{problem}" for problem in wrong)


def _limit_problems(change: QueueLimit, of: Surroundings) -> Iterator[str]:
    queue = queue_of(PacketName(queue=change.queue), of)
    if queue is None:
        names = ", ".join(q.name for q in of.graph.placed_queues)
        yield f'.queue: no queue "{change.queue}"; there are {names}'
    elif not drops_when_full_alone(of.directions[queue.direction]):
        yield f".queue: {queue.name} is no drop-tail queue"
    yield from _late(change.at_s, of)


def _control_problems(change: FlowControl, of: Surroundings) -> Iterator[str]:
    if change.flow not in of.connections:
        guess, known = suggest(change.flow, of.connections), ", ".join(of.connections)
        yield f'.flow: no connection "{change.flow}"{guess}; there are {known}'
    if change.congestion not in KERNELS_OWN:
        guess, known = suggest(change.congestion, KERNELS_OWN), ", ".join(KERNELS_OWN)
        yield f'.congestion: no control "{change.congestion}" of the kernel{guess}; {known}'
    yield from _late(change.at_s, of)


def _host_problems(change: HostSysctls, of: Surroundings) -> Iterator[str]:
    if change.host not in of.graph.hosts:
        yield f'.host: no host "{change.host}"; there are {", ".join(of.graph.hosts)}'
    yield from _late(change.at_s, of)


def _late(at_s: float, of: Surroundings) -> Iterator[str]:
    if whole_ns(at_s) + CHANGE_NS > whole_ns(of.duration_s):
        yield f".at_s: must be below duration_s ({of.duration_s:g}), got {at_s:g}"


def route_problems(routers: Mapping[str, RouterSettings], of: Surroundings) -> Iterator[str]:
    """List changes of routes to hosts or neighbours that the topology does not have."""
    for router, settings in routers.items():
        neighbours = [interface.peer_node for interface in of.graph.interfaces_of(router)]
        for number, each in enumerate(settings.routes):
            where = f"routers.{router}.routes.{number}"
            if each.to not in of.graph.hosts:
                yield f'{where}.to: no host "{each.to}"; there are {", ".join(of.graph.hosts)}'
            if each.via not in neighbours:
                known = ", ".join(neighbours)
                yield f'{where}.via: no neighbour "{each.via}"; {router} has {known}'
            yield from (f"{where}{problem}" for problem in _late(each.at_s, of))


def _place_problems(action: str, named: PacketName, of: Surroundings) -> Iterator[str]:
    if named.flow and named.flow not in of.connections:
        guess, known = suggest(named.flow, of.connections), ", ".join(of.connections)
        yield f'.flow: no connection "{named.flow}"{guess}; there are {known}'
        return
    queue = queue_of(named, of)
    if queue is None:
        names = ", ".join(q.name for q in of.graph.placed_queues)
        wrong = f'no queue "{named.queue}"; there are' if named.queue else "without a flow, one of"
        yield f".queue: {wrong} {names}"
        return
    if named.flow:
        flow = of.connections[named.flow]
        passed = flow.directions if named.sequence else flow.directions + flow.ack_directions
        if queue.name not in passed:
            yield f".queue: no data of {named.flow} pass {queue.name}, but {', '.join(passed)}"
    elif named.sequence:
        yield f".sequence: needs a flow, got {named.sequence} of any"
    direction = of.directions[queue.direction]
    if action in BEHIND and not direction.acts_behind:
        yield f".queue: {queue.name} has no delay behind it, where `{action}` would act"
    if action == "keep" and not may_keep(direction, ecn=of.ecn):
        yield f".queue: {queue.name} has a manager that cannot mark a packet instead of dropping it"


def _time_problems(named: PacketName, of: Surroundings) -> Iterator[str]:
    latest, field = named.from_s, "from_s"
    if named.until_s is not None:
        latest, field = named.until_s, "until_s"
        if named.packet != 1:
            yield f".packet: not with until_s, got {named.packet}"
        if named.until_s <= named.from_s:
            yield f".until_s: must be above from_s ({named.from_s:g}), got {named.until_s:g}"
    if whole_ns(latest) > whole_ns(of.duration_s):
        yield f".{field}: must be at most duration_s ({of.duration_s:g}), got {latest:g}"
