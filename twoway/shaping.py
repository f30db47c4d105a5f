"""Link profiles compiled to tc, under the fidelity rules.

Each rule has bitten a published testbed; a layout that breaks one is refused with its reason.
"""

import math
from dataclasses import dataclass
from typing import Any

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
    """One qdisc: what to run, and what `tc -j qdisc show` must then say."""

    interface: Interface
    arguments: tuple[str, ...]
    readback: tuple[tuple[tuple[str, ...], Any], ...]

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
        queue = _channel if direction.dtm else _rate
        if direction.aqm != "drop-tail":
            queue = _cake
        shapers += [queue(i, direction) for i in graph.queues[name]]
        if direction.delay_ms:
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


def _rate(interface: Interface, direction: Direction) -> Shaper:
    rate_bit = round(direction.start_mbit * 1e6)
    arguments = ["netem", "limit", str(direction.queue_packets), "rate", f"{rate_bit}bit"]
    overhead = [direction.overhead_bytes, direction.cell_bytes, direction.cell_overhead_bytes]
    if any(overhead):
        arguments += [str(value) for value in overhead]
    return Shaper(
        interface,
        tuple(arguments),
        (
            (("kind",), "netem"),
            (("options", "limit"), direction.queue_packets),
            (("options", "rate", "rate"), rate_bit // 8),
            (("options", "rate", "packetoverhead"), direction.overhead_bytes),
            (("options", "rate", "cellsize"), direction.cell_bytes),
            (("options", "rate", "celloverhead"), direction.cell_overhead_bytes),
        ),
    )


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
    return Shaper(
        interface,
        ("netem", "limit", str(limit), "delay", f"{delay_ns // 1000}us"),
        (
            (("kind",), "netem"),
            (("options", "limit"), limit),
            # tc prints seconds with six digits.
            (("options", "delay", "delay"), float(f"{delay_ns / 1e9:.6g}")),
        ),
    )
