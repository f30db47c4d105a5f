"""Compiling link profiles to qdiscs.

description/placement.py has checked the interfaces.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from twoway.contract.network import START_NS, whole_ns
from twoway.description.experiment import Profile
from twoway.description.graph import Graph
from twoway.description.interventions import Intervention, rates_by_tc
from twoway.links.direction import Direction
from twoway.links.dtm import Channel
from twoway.links.element import BeforeQueue, Delay
from twoway.links.half_duplex import Place
from twoway.links.interface import Interface
from twoway.links.queue_limit import QueueLimit
from twoway.links.shaper import INSIDE, Shaper, egress_action, wrap_queue

# The smallest frame: a delay queue may hold more frames of this size than of any other.
_SMALLEST_FRAME_BYTES = 54
# A delay queue must never drop: its limit is ten times the most packets within the delay.
_DELAY_LIMIT_MARGIN = 10
# The kernel counts packets in 32 bits.
_MOST_LIMIT = (1 << 32) - 1


def compile_profile(profile: Profile, graph: Graph) -> list[Shaper]:
    """List the qdiscs of every shaped interface.

    Args:
        profile: rates, queues and delays by direction.
        graph: the interfaces of each direction.
    """
    shapers = []
    for name, direction in profile.directions.items():
        limits = direction.elements.find(QueueLimit)
        first = _limited(direction, limits.schedule[0][1]) if limits else direction
        shapers += [
            _preceded(_queue(profile, graph, i, first), direction) for i in graph.queues[name]
        ]
        if direction.acts_behind:
            shapers += [_delay(i, direction) for i in graph.delays[name]]
    return shapers


def changing_shapers(profile: Profile, graph: Graph, stop_ns: int) -> Iterator[tuple[int, Shaper]]:
    """List the states of the qdiscs of and behind queues during the traffic, with times in ns.

    Args:
        profile: rates, queues and delays by direction.
        graph: the interfaces of each direction.
        stop_ns: when the traffic stops.
    """
    for name, direction in profile.directions.items():
        for element in direction.behind_queue:
            for at_ns, becomes in element.changes(stop_ns):
                then = direction.model_copy(update={element.FIELD: becomes})
                yield from ((at_ns, _netem(i, then)) for i in graph.delays[name])
        limits = direction.elements.find(QueueLimit)
        for at_ns, packets in limits.changes(stop_ns) if limits else ():
            then = _limited(direction, packets)
            for interface in graph.queues[name]:
                new = _new_limits(profile, graph, interface, then)
                yield from ((at_ns, shaper) for shaper in new)


def rate_changes(
    profile: Profile, graph: Graph, asked: Sequence[Intervention]
) -> Iterator[tuple[int, Shaper]]:
    """List the states of queues whose rate tc changes during the traffic, with times in ns."""
    for change in rates_by_tc(profile.directions, asked).values():
        direction = profile.directions[change.direction]
        then = direction.model_copy(update={"rate_mbit": change.rate_mbit})
        at_ns = START_NS + whole_ns(change.at_s)
        queues = graph.queues[change.direction]
        yield from ((at_ns, _queue(profile, graph, each, then)) for each in queues)
        if then.transmits_behind:
            yield from ((at_ns, _netem(i, then)) for i in graph.delays[change.direction])


def pool_nodes(profile: Profile, graph: Graph) -> Mapping[str, str]:
    """Find each pool's node, the first with a channel; the pool lives in its network namespace."""
    nodes: dict[str, str] = {}
    for name, direction in profile.directions.items():
        channel = direction.elements.find(Channel)
        if channel and channel.pool and graph.queues[name]:
            nodes.setdefault(channel.pool, graph.queues[name][0].node)
    return nodes


def media(graph: Graph) -> Mapping[str, Place]:
    """Place a medium for each link whose queues share one; by the link's interfaces."""
    places: dict[str, Place] = {}
    for name, interface in graph.queued.items():
        if name not in places:
            place = Place(node=interface.node, number=len(places) // 2)
            places |= {name: place, interface.peer_name: place}
    return places


def _limited(direction: Direction, packets: int) -> Direction:
    return direction.model_copy(update={"queue_packets": packets})


def _new_limits(
    profile: Profile, graph: Graph, interface: Interface, direction: Direction
) -> list[Shaper]:
    """Build the change of a queue's limit: our shapers keep what a change does not name."""
    shaper = replace(_queue(profile, graph, interface, direction), inner=())
    if manager := direction.manager:
        inside = [(place, tuple(words.split())) for place, words in manager.limited(direction)]
        return [replace(shaper, arguments=of, place=place, sizes=()) for place, of in inside]
    if shaper.is_ours:
        limit = (shaper.arguments[0], "limit", str(direction.queue_packets))
        shaper = replace(shaper, arguments=limit)
    return [shaper]


def _preceded(shaper: Shaper, direction: Direction) -> Shaper:
    """Put the direction's elements before the queue in front of it."""
    before = direction.elements.list_kind(BeforeQueue)
    actions = [element.police for element in before if element.police]
    if not actions:
        return shaper
    # A packet that one action lets pass goes to the next.
    words = " conform-exceed drop/pipe action ".join(actions) + " conform-exceed drop/pass"
    return replace(shaper, inner=(*shaper.inner, *egress_action(shaper.interface.name, words)))


def _queue(profile: Profile, graph: Graph, interface: Interface, direction: Direction) -> Shaper:
    manager = direction.manager
    if shaper := _own_shaper(profile, graph, interface, direction):
        inside = manager.put_inside(interface.name, direction) if manager else ()
        return wrap_queue(shaper, direction, inside)
    if manager:
        return manager.shaper(interface, direction)
    limit = direction.queue_packets
    rate, readback = _rate(direction)
    return Shaper(
        interface,
        ("netem", "limit", str(limit), *rate),
        ((("kind",), "netem"), (("options", "limit"), limit), *readback),
    )


def _own_shaper(
    profile: Profile, graph: Graph, interface: Interface, direction: Direction
) -> Shaper | None:
    """Build a shaper that takes a queue inside; None for a rate_mbit without a shared medium."""
    if profile.half_duplex:
        return profile.half_duplex.shaper(interface, direction, media(graph)[interface.name])
    if not direction.rate_shaper:
        return None
    shaper = direction.rate_shaper.shaper(interface, direction)
    channel = direction.elements.find(Channel)
    if channel and channel.pool:
        return shaper.in_namespace(pool_nodes(profile, graph)[channel.pool])
    return shaper


def _rate(direction: Direction) -> tuple[list[str], list[tuple[tuple[str, ...], Any]]]:
    """Build netem's arguments for a rate, and the values that tc reads back."""
    rate_bit = round(direction.start_mbit * 1e6)
    overhead = [direction.overhead_bytes, direction.cell_bytes, direction.cell_overhead_bytes]
    arguments = ["rate", f"{rate_bit}bit"]
    if any(overhead):
        arguments += [str(value) for value in overhead]
    names = ("packetoverhead", "cellsize", "celloverhead")
    said = {"rate": rate_bit // 8, **dict(zip(names, overhead, strict=True))}
    return arguments, [(("options", "rate", name), value) for name, value in said.items()]


def _delay(interface: Interface, direction: Direction) -> Shaper:
    """Build the delay: netem's, or a table of delays with netem inside for what acts behind."""
    netem, changing = _netem(interface, direction), direction.elements.find(Delay)
    if not changing:
        return netem
    behind = direction.behind_queue
    inside_ns = max((element.least_delay_ns for element in behind), default=0)
    shaper = changing.shaper(interface, _delay_limit(direction), inside_ns)
    if not behind:
        return shaper
    line = f"qdisc add dev {interface.name} {netem.place} {' '.join(netem.arguments)}"
    return replace(shaper, inner=(*shaper.inner, line, *netem.inner))


def _delay_limit(direction: Direction) -> int:
    rated = direction.rate_shaper
    held_ns = max(direction.delay_ns, rated.burst_ns if rated else 0)
    most = direction.most_mbit * 1e6 / 8 * held_ns * 1e-9 / _SMALLEST_FRAME_BYTES
    return min(max(1000, math.ceil(_DELAY_LIMIT_MARGIN * most)), _MOST_LIMIT)


def _netem(interface: Interface, direction: Direction) -> Shaper:
    """Build netem with all that acts behind the queue, inside a delay that changes."""
    behind, limit = direction.behind_queue, _delay_limit(direction)
    place, delay_ns = "root", direction.delay_ns
    if direction.elements.contains(Delay):
        place = INSIDE
        delay_ns = max((element.least_delay_ns for element in behind), default=0)
    rate, readback = _rate(direction) if direction.transmits_behind else ([], [])
    words = [word for element in behind for word in element.arguments]
    return Shaper(
        interface,
        ("netem", "limit", str(limit), "delay", f"{delay_ns // 1000}us", *words, *rate),
        (
            (("kind",), "netem"),
            (("options", "limit"), limit),
            # tc prints seconds with six digits.
            (("options", "delay", "delay"), float(f"{delay_ns / 1e9:.6g}")),
            *(expected for element in behind for expected in element.readback()),
            *readback,
        ),
        tuple(line for element in behind for line in element.lines(interface.name)),
        place=place,
    )
