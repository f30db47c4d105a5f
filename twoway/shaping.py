"""Link profiles compiled to tc, under the fidelity rules.

Each rule has bitten a published testbed; a layout that breaks one is refused with its reason.
"""

import math
from dataclasses import dataclass
from typing import Any

from twoway import ack_queue
from twoway.errors import SpecError
from twoway.spec import Direction, Profile
from twoway.topology import Graph, Interface

# The smallest frame there is: what a delay queue holds most of.
_SMALLEST_FRAME_BYTES = 54
_ETHERNET_BYTES = 14
# A delay queue must never drop: ten times the most it can hold.
_DELAY_LIMIT_MARGIN = 10
# The least common multiple of tc's microsecond and the kernel's 64 ns tick.
_DELAY_STEP_US = 8


@dataclass(frozen=True)
class Shaper:
    """One qdisc: what to run, and what `tc -j qdisc show` must then say.

    Attributes:
        interface: whose root it is.
        arguments: its kind, and what it is told.
        readback: paths into tc's output, and what is there.
        inner: lines of a tc batch for what is inside it.
    """

    interface: Interface
    arguments: tuple[str, ...]
    readback: tuple[tuple[tuple[str, ...], Any], ...]
    inner: tuple[str, ...] = ()

    @property
    def is_channel(self) -> bool:
        """It is our qdisc dtm, which has a clock of its own and events to record."""
        return self.arguments[0] == "dtm"


def compile_profile(where: str, profile: Profile, graph: Graph) -> list[Shaper]:
    """The qdiscs of every shaped interface.

    Args:
        where: the profile's path, for errors.
        profile: link behaviour by direction.
        graph: where directions take effect.

    Raises: SpecError naming each rule the layout breaks.
    """
    problems = [f"{where}: {problem}" for problem in _broken_rules(profile, graph)]
    if problems:
        raise SpecError(problems)
    shapers = []
    for name, direction in profile.directions.items():
        shapers += [_queue(i, direction) for i in graph.queues[name]]
        if direction.delay_ms or direction.has_ack_queue:
            shapers += [_delay(i, direction) for i in graph.delays[name]]
    return shapers


def _broken_rules(profile: Profile, graph: Graph) -> list[str]:
    problems = []
    if set(profile.directions) != set(graph.queues):
        problems.append(
            f"directions: the topology has {', '.join(sorted(graph.queues))}; "
            f"got {', '.join(sorted(profile.directions))}"
        )
    queues = [i for placed in graph.queues.values() for i in placed]
    delays = [i for placed in graph.delays.values() for i in placed]
    both = {i.name for i in queues} & {i.name for i in delays}
    problems += [
        f"{name}: rate and delay on one interface: netem's limit counts packets in flight, "
        "so the buffer would be wrong; put the delay on another hop"
        for name in sorted(both)
    ]
    problems += [
        f"{i.name}: shaping on {i.node}, a sending host: TCP small queues would keep the queue "
        "from building; the bottleneck must be a router's"
        for i in [*queues, *delays]
        if i.node in graph.hosts
    ]
    problems += [
        f"directions.{name}.delay_ms: the topology has no place for it, got {direction.delay_ms:g}"
        for name, direction in profile.directions.items()
        if direction.delay_ms and name not in graph.delays
    ]
    problems += _misplaced_ack_queues(profile, graph)
    problems += [
        f"directions.{name}.aqm: {direction.aqm} is a shaper of its own, without cells or slots"
        for name, direction in profile.directions.items()
        if direction.aqm != "drop-tail" and (direction.dtm or direction.cell_bytes)
    ]
    for name, direction in profile.directions.items():
        delay_us = direction.delay_ms * 1000
        if abs(delay_us / _DELAY_STEP_US - round(delay_us / _DELAY_STEP_US)) > 1e-9:
            below = math.floor(delay_us / _DELAY_STEP_US) * _DELAY_STEP_US / 1000
            problems.append(
                f"directions.{name}.delay_ms: tc sets netem's delay in whole microseconds and "
                f"ticks of 64 ns, exact for multiples of 0.008 ms only; got {direction.delay_ms:g},"
                f" nearest {below:g} and {below + _DELAY_STEP_US / 1000:g}"
            )
    return problems


def _misplaced_ack_queues(profile: Profile, graph: Graph) -> list[str]:
    """A delay that adds the transmission can do so for one queue."""
    fed = [i.name for placed in graph.delays.values() for i in placed]
    problems = []
    for name, direction in profile.directions.items():
        places = [fed.count(i.name) for i in graph.delays.get(name, ())]
        if direction.has_ack_queue and (len(graph.queues.get(name, ())) != 1 or set(places) != {1}):
            problems.append(
                f"directions.{name}.ack_queue: takes a direction with one queue, and with delays "
                f'that no other direction has; got "{direction.ack_queue}"'
            )
    return problems


def _queue(interface: Interface, direction: Direction) -> Shaper:
    if direction.dtm:
        return _channel(interface, direction)
    if direction.aqm == "fq_codel":
        return _fq_codel(interface, direction)
    if direction.aqm != "drop-tail":
        return _cake(interface, direction)
    if direction.has_ack_queue:
        return Shaper(
            interface,
            ack_queue.root_arguments(direction),
            ((("kind",), "htb"),),
            tuple(ack_queue.inner_lines(interface.name, direction)),
        )
    limit = direction.queue_packets
    rate, readback = _rate(direction)
    return Shaper(
        interface,
        ("netem", "limit", str(limit), *rate),
        ((("kind",), "netem"), (("options", "limit"), limit), *readback),
    )


def _rate(direction: Direction) -> tuple[list[str], list[tuple[tuple[str, ...], Any]]]:
    """A rate as netem takes it, and as tc reads it back."""
    rate_bit = round(direction.start_mbit * 1e6)
    overhead = [direction.overhead_bytes, direction.cell_bytes, direction.cell_overhead_bytes]
    arguments = ["rate", f"{rate_bit}bit"]
    if any(overhead):
        arguments += [str(value) for value in overhead]
    names = ("packetoverhead", "cellsize", "celloverhead")
    said = {"rate": rate_bit // 8, **dict(zip(names, overhead, strict=True))}
    return arguments, [(("options", "rate", name), value) for name, value in said.items()]


def _cake(interface: Interface, direction: Direction) -> Shaper:
    """Cake's own shaper: exact, but a packet leaves as its transmission starts, not as it ends.

    Its overhead is added to the IP packet, not to the frame.
    """
    rate_bit = round(direction.start_mbit * 1e6)
    isolation = "flowblind" if direction.aqm == "cake-flowblind" else "flows"
    overhead = direction.overhead_bytes + _ETHERNET_BYTES
    arguments = f"cake bandwidth {rate_bit}bit besteffort {isolation} overhead {overhead}"
    return Shaper(
        interface,
        tuple(arguments.split()),
        (
            (("kind",), "cake"),
            (("options", "bandwidth"), rate_bit // 8),
            (("options", "diffserv"), "besteffort"),
            (("options", "flowmode"), isolation),
            (("options", "overhead"), overhead),
        ),
    )


def _fq_codel(interface: Interface, direction: Direction) -> Shaper:
    """With HTB for the rate, as where ACKs have a queue of their own (ack_queue.py)."""
    rate_bit = round(direction.start_mbit * 1e6)
    dev = interface.name
    return Shaper(
        interface,
        ack_queue.root_arguments(direction),
        ((("kind",), "htb"),),
        (
            f"class add dev {dev} parent 1: classid 1:1 htb rate {rate_bit}bit burst 1 cburst 1",
            f"qdisc add dev {dev} parent 1:1 handle 2: fq_codel",
        ),
    )


def _channel(interface: Interface, direction: Direction) -> Shaper:
    assert direction.dtm is not None
    limits = (direction.queue_packets, direction.overhead_bytes)
    said = direction.dtm.readback(*limits)
    return Shaper(
        interface,
        tuple(direction.dtm.arguments(*limits)),
        ((("kind",), "dtm"), *((("options", name), value) for name, value in said.items())),
    )


def _delay(interface: Interface, direction: Direction) -> Shaper:
    delay_ns = round(direction.delay_ms * 1e6)
    most = direction.most_mbit * 1e6 / 8 * delay_ns * 1e-9 / _SMALLEST_FRAME_BYTES
    limit = max(1000, math.ceil(_DELAY_LIMIT_MARGIN * most))
    rate, readback = _rate(direction) if direction.has_ack_queue else ([], [])
    return Shaper(
        interface,
        ("netem", "limit", str(limit), "delay", f"{delay_ns // 1000}us", *rate),
        (
            (("kind",), "netem"),
            (("options", "limit"), limit),
            # tc prints seconds with six digits.
            (("options", "delay", "delay"), float(f"{delay_ns / 1e9:.6g}")),
            *readback,
        ),
    )
