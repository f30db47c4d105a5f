"""Interventions: other fates of single packets, and settings that change during the traffic."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from twoway.contract.model import Model, Name, NonNegative, Port, Positive
from twoway.contract.network import CHANGE_NS, START_NS, Connection, DatagramFlow, whole_ns
from twoway.description.congestion import KERNELS_OWN
from twoway.description.graph import Graph, PlacedQueue
from twoway.description.stack import RouterSettings
from twoway.description.sysctls import Sysctls
from twoway.links.delay import ChangingDelay, Milliseconds
from twoway.links.direction import Direction
from twoway.links.dtm import Channel
from twoway.links.element import Delay
from twoway.links.loss import Loss
from twoway.links.rate import Mbit, Rate
from twoway.messages import suggest

# The most of a run.
MOST_INTERVENTIONS = 100


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


class OvertakenPacket(PacketName):
    """A packet, and how many later ones are before it."""

    by_packets: Annotated[int, Field(ge=1, le=10_000)] = Field(
        description="number of later packets at the link that are before it"
    )


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


class FlowTime(Model):
    """Another time at which a flow starts or stops."""

    flow: Name = Field(description="a connection or a UDP flow, as in metrics")
    at_s: NonNegative = Field(description="its new time, after the traffic's start")


class _OfConnection(Model):
    """A setting of a connection, from a time on."""

    flow: Name = Field(description="a connection, as in metrics")
    at_s: Positive = Field(
        description="time of the change, after the traffic's start: the next packet is the last of "
        "the old setting"
    )


class FlowControl(_OfConnection):
    """Another congestion control of a connection, from a time on."""

    congestion: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")] = Field(
        description="a congestion control that is part of the kernel"
    )


class FlowWindow(_OfConnection):
    """Another congestion window of a connection, at a time."""

    packets: Annotated[int, Field(ge=1, le=10**6)] = Field(
        description="the window, from which the congestion control goes on, segments"
    )


class LinkChange(Model):
    """Another rate or delay of a link, from a time on."""

    direction: Name = Field(description="a direction of the profile")
    rate_mbit: Mbit | None = Field(
        default=None,
        description="its new rate, which holds for the packet in transmission, too; 0: an outage. "
        "Behind a manager, or where a byte takes no whole ns, tc changes it: a drop-tail queue has "
        "it for packets that come from then on",
    )
    delay_ms: Milliseconds | None = Field(
        default=None, description="its new delay, of packets that leave the queue from then on"
    )
    at_s: Positive = Field(description="time of the change, after the traffic's start")


class Programs(Model):
    """The programs at both ends of a connection, one of an experiment's or a program's own."""

    flow: Name | None = Field(default=None, description="a connection, as in metrics")
    ports: tuple[Port, Port] | None = Field(
        default=None,
        description="instead, the ports of a connection that a program makes: of the data's "
        "sender and of their receiver",
    )
    at_s: NonNegative = Field(description="the time, after the traffic's start")

    def ports_of(self, connections: Mapping[str, Connection]) -> tuple[int, int]:
        """Return the ports of the data's sender and of their receiver."""
        flow = connections[self.flow] if self.flow else None
        return (flow.source_port, flow.port) if flow else self.ports or (0, 0)


class Sleep(Programs):
    """A sleep of the process that sends."""

    until_s: Positive = Field(description="time at which it sends again without the intervention")


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
    reorder: OvertakenPacket | None = Field(
        default=None, description="the link behind the queue delivers later packets before it"
    )
    set: HostSysctls | None = Field(default=None, description="a host gets other sysctls")
    limit: QueueLimit | None = Field(default=None, description="a queue gets another limit")
    control: FlowControl | None = Field(
        default=None, description="a connection gets another congestion control"
    )
    window: FlowWindow | None = Field(
        default=None, description="a connection gets another congestion window"
    )
    resume: Sleep | None = Field(
        default=None, description="the process that sends does not sleep after a packet of then"
    )
    read: Programs | None = Field(
        default=None,
        description="as if the receiver read what waits for it as the first packet comes then",
    )
    link: LinkChange | None = Field(default=None, description="a link gets another rate or delay")
    start: FlowTime | None = Field(default=None, description="a flow starts at another time")
    stop: FlowTime | None = Field(default=None, description="a flow stops at another time")

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
BEHIND = ("delay", "duplicate", "reorder")


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
    behind = [Place(each.name, False, True) for each in of.graph.delays.get(queue.direction, ())]
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
    """A run's duration, connections, nodes and links, which interventions may name."""

    duration_s: float
    ecn: bool
    connections: Mapping[str, Connection]
    datagrams: Mapping[str, DatagramFlow]
    graph: Graph
    directions: Mapping[str, Direction]


def intervention_problems(asked: Sequence[Intervention], of: Surroundings) -> Iterator[str]:
    """List interventions in what an experiment does not have, each after its field."""
    for number, each in enumerate(asked):
        (action,) = each.model_fields_set
        problems = [*_problems(each, of), *_order_problems(each, asked, of)]
        yield from (f"interventions.{number}.{action}{problem}" for problem in problems)


def _problems(asked: Intervention, of: Surroundings) -> Iterator[str]:
    """List what an intervention names and an experiment does not have, each after its action."""
    if found := asked.packet:
        yield from _place_problems(*found, of)
        yield from _time_problems(found[1], of)
    elif asked.set:
        yield from _host_problems(asked.set, of)
    elif asked.limit:
        yield from _limit_problems(asked.limit, of)
    elif asked.link:
        yield from _link_problems(asked.link, of)
    elif change := asked.control or asked.window:
        yield from _no_flow(change.flow, of.connections)
        if isinstance(change, FlowControl) and change.congestion not in KERNELS_OWN:
            guess, known = suggest(change.congestion, KERNELS_OWN), ", ".join(KERNELS_OWN)
            yield f'.congestion: no control "{change.congestion}" of the kernel{guess}; {known}'
        yield from _late(change.at_s, of)
    elif ends := asked.resume or asked.read:
        yield from _programs_problems(ends, of)
    elif then := asked.start or asked.stop:
        yield from _no_flow(then.flow, {**of.connections, **of.datagrams})
        yield from _late(then.at_s, of)


def _programs_problems(ends: Programs, of: Surroundings) -> Iterator[str]:
    if bool(ends.flow) == bool(ends.ports):
        yield ": needs a flow, or ports"
    elif ends.flow:
        yield from _no_flow(ends.flow, of.connections)
    if isinstance(ends, Sleep) and ends.until_s <= ends.at_s:
        yield f".until_s: must be above at_s ({ends.at_s:g}), got {ends.until_s:g}"
    yield from _late(ends.at_s, of)


def _order_problems(
    asked: Intervention, every: Sequence[Intervention], of: Surroundings
) -> Iterator[str]:
    """Tell that a flow would stop before its start, with all interventions."""
    then = asked.start or asked.stop
    if not then or not (flow := of.connections.get(then.flow) or of.datagrams.get(then.flow)):
        return
    times = flow.model_copy(update=changed_times(flow, every))
    start_s = (times.start_ns - START_NS) / 1e9
    stop_s = of.duration_s if times.stop_ns is None else (times.stop_ns - START_NS) / 1e9
    if start_s >= stop_s:
        yield (
            f".at_s: {then.flow} would start at {start_s:g} and stop at {stop_s:g} s, "
            f"got {then.at_s:g}"
        )


def _no_flow(name: str, known: Mapping[str, Any]) -> Iterator[str]:
    if name not in known:
        yield f'.flow: no connection "{name}"{suggest(name, known)}; there are {", ".join(known)}'


def _link_problems(change: LinkChange, of: Surroundings) -> Iterator[str]:
    direction = of.directions.get(change.direction)
    if direction is None:
        known = ", ".join(of.directions)
        yield f'.direction: no direction "{change.direction}"; there are {known}'
    elif change.rate_mbit is None and change.delay_ms is None:
        yield ": needs a rate_mbit or a delay_ms"
    elif change.rate_mbit is not None and not _rate_by_table(direction):
        if direction.rate_shaper:
            yield f".rate_mbit: {change.direction} needs a rate_mbit, or a rate.schedule that ends"
        elif not change.rate_mbit:
            yield (
                f".rate_mbit: {change.direction} must be a drop-tail queue with a rate_mbit at "
                "which a byte takes whole ns (such as 2, 8 or 10, not 3) for an outage, got 0"
            )
    elif change.delay_ms is not None and not _may_change_delay(direction):
        yield f".delay_ms: the delays of {change.direction} repeat"
    yield from _late(change.at_s, of)


def _rate_by_table(direction: Direction) -> bool:
    """Tell whether a table of rates has the same packets as a direction until its first change.

    If not, tc changes the rate; the times of a drop-tail queue's packets are not proven then.
    """
    if shaper := direction.rate_shaper:
        return isinstance(shaper, Rate) and bool(shaper.schedule) and not shaper.repeat_s
    return direction.manager is None and not 8_000_000_000 % round(direction.start_mbit * 1e6)


def rates_by_tc(
    directions: Mapping[str, Direction], asked: Sequence[Intervention]
) -> dict[int, LinkChange]:
    """Find the changes of rates that tc makes, by the number of the intervention."""
    return {
        number: each.link
        for number, each in enumerate(asked)
        if each.link and each.link.rate_mbit
        if not _rate_by_table(directions[each.link.direction])
    }


def _may_change_delay(direction: Direction) -> bool:
    delay = direction.elements.find(Delay)
    return delay is None or (isinstance(delay, ChangingDelay) and not delay.repeat_s)


def changed_directions(
    directions: Mapping[str, Direction], asked: Sequence[Intervention], *, by_tc: bool = False
) -> dict[str, Direction]:
    """Return links with the rates and delays of interventions, as tables by time.

    Args:
        directions: the links.
        asked: the interventions.
        by_tc: leave rates as they are that tc changes.
    """
    found = dict(directions)
    for change in sorted((each.link for each in asked if each.link), key=lambda each: each.at_s):
        link, fields = found[change.direction], dict[str, Any]()
        if change.rate_mbit is not None and (_rate_by_table(link) or not by_tc):
            rate = link.elements.find(Rate)
            steps = (rate and rate.schedule) or [(0, link.start_mbit)]
            steps = [*(s for s in steps if s[0] < change.at_s), (change.at_s, change.rate_mbit)]
            fields |= {"rate_mbit": None, "rate": Rate(schedule=steps)}
        if change.delay_ms is not None:
            delay = link.elements.find(ChangingDelay)
            trips = delay.schedule if delay else [(0, link.delay_ms or 0)]
            trips = [*(s for s in trips if s[0] < change.at_s), (change.at_s, change.delay_ms)]
            fields |= {"delay_ms": None, "delay": ChangingDelay(schedule=trips)}
        found[change.direction] = link.model_copy(update=fields)
    return found


def changed_times(flow: Connection | DatagramFlow, asked: Sequence[Intervention]) -> dict[str, int]:
    """Return the times of a flow that interventions change, by field, ns on the plan's clock."""
    found: dict[str, int] = {}
    for each in asked:
        if (begin := each.start) and begin.flow == flow.name:
            found["start_ns"] = START_NS + whole_ns(begin.at_s)
            if isinstance(flow, Connection) and flow.connect_ns == flow.start_ns:
                found["connect_ns"] = found["start_ns"]
        elif (end := each.stop) and end.flow == flow.name:
            found["stop_ns"] = START_NS + whole_ns(end.at_s)
    return found


def _limit_problems(change: QueueLimit, of: Surroundings) -> Iterator[str]:
    queue = queue_of(PacketName(queue=change.queue), of)
    if queue is None:
        names = ", ".join(q.name for q in of.graph.placed_queues)
        yield f'.queue: no queue "{change.queue}"; there are {names}'
    elif not drops_when_full_alone(of.directions[queue.direction]):
        yield f".queue: {queue.name} is no drop-tail queue"
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
        yield from _no_flow(named.flow, of.connections)
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
        if isinstance(named, OvertakenPacket):
            yield f".until_s: not with reorder, got {named.until_s:g}"
        if named.packet != 1:
            yield f".packet: not with until_s, got {named.packet}"
        if named.until_s <= named.from_s:
            yield f".until_s: must be above from_s ({named.from_s:g}), got {named.until_s:g}"
    if whole_ns(latest) > whole_ns(of.duration_s):
        yield f".{field}: must be at most duration_s ({of.duration_s:g}), got {latest:g}"
