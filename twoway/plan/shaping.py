"""Compiling link profiles to qdiscs.

spec/placement.py has checked the interfaces.
"""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

from twoway.contract.clock import START_NS
from twoway.contract.network import ETHERNET_BYTES
from twoway.plan import ack_queue
from twoway.spec import timetable
from twoway.spec.experiment import Direction, Profile
from twoway.spec.graph import Graph, Interface
from twoway.spec.half_duplex import media
from twoway.theory.medium import Medium
from twoway.theory.timetable import Timetable

# The smallest frame: a delay queue holds more of these than of any other.
_SMALLEST_FRAME_BYTES = 54
# What red takes for a packet.
_AVERAGE_BYTES = 1500
# A delay queue must never drop: its limit is ten times the most packets that the delay can hold.
_DELAY_LIMIT_MARGIN = 10


@dataclass(frozen=True)
class Shaper:
    """An interface's root qdisc, and what `tc -j qdisc show` must print.

    Attributes:
        interface: the interface.
        arguments: the qdisc's kind and options, as for tc.
        readback: paths into tc's output, with the values expected there.
        inner: lines of a tc batch that add the classes, qdiscs and filters inside.
        older_tc: tc may be older than a qdisc of the kernel's, and needs our plugin.
    """

    interface: Interface
    arguments: tuple[str, ...]
    readback: tuple[tuple[tuple[str, ...], Any], ...]
    inner: tuple[str, ...] = ()
    older_tc: bool = False

    @property
    def is_channel(self) -> bool:
        """True for our qdisc dtm, which has its own clock and events to record."""
        return self.arguments[0] == "dtm"

    @property
    def module(self) -> str | None:
        """The module of ours that it needs, with a plugin for tc; None for the kernel's own."""
        kind = self.arguments[0]
        return f"sch_{kind}" if kind in ("dtm", "medium", "timetable") else None


def compile_profile(profile: Profile, graph: Graph) -> list[Shaper]:
    """List the qdiscs of every shaped interface.

    Args:
        profile: rates, queues and delays by direction.
        graph: the interfaces of each direction.
    """
    shapers = []
    for name, direction in profile.directions.items():
        if profile.half_duplex:
            shapers += [
                _on_medium(i, direction, profile.half_duplex.medium, media(graph)[i.name])
                for i in graph.queues[name]
            ]
        else:
            shapers += [_preceded(_queue(i, direction), direction) for i in graph.queues[name]]
        if direction.acts_behind:
            shapers += [_delay(i, direction) for i in graph.delays[name]]
    return shapers


def _preceded(shaper: Shaper, direction: Direction) -> Shaper:
    """Put before a queue what the direction has there."""
    lines = (e.lines_before_queue(shaper.interface.name) for e in direction.elements.values())
    return replace(shaper, inner=(*shaper.inner, *itertools.chain(*lines)))


def _queue(interface: Interface, direction: Direction) -> Shaper:
    if direction.dtm:
        return _channel(interface, direction)
    if direction.rate:
        limits = (direction.queue_packets, direction.overhead_bytes)
        return _by_table(interface, direction.rate.table, *limits)
    if direction.is_under_htb:
        return _under_htb(interface, direction)
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
    """Build netem's arguments for a rate, and the values that tc reads back."""
    rate_bit = round(direction.start_mbit * 1e6)
    overhead = [direction.overhead_bytes, direction.cell_bytes, direction.cell_overhead_bytes]
    arguments = ["rate", f"{rate_bit}bit"]
    if any(overhead):
        arguments += [str(value) for value in overhead]
    names = ("packetoverhead", "cellsize", "celloverhead")
    said = {"rate": rate_bit // 8, **dict(zip(names, overhead, strict=True))}
    return arguments, [(("options", "rate", name), value) for name, value in said.items()]


def _cake(interface: Interface, direction: Direction) -> Shaper:
    """Build a cake, whose own shaper is exact.

    A packet leaves cake when its transmission starts, not when it ends (docs/decisions/0021).
    cake adds its overhead to the IP packet, not to the frame.
    """
    rate_bit = round(direction.start_mbit * 1e6)
    isolation = "flowblind" if direction.aqm == "cake-flowblind" else "flows"
    overhead = direction.overhead_bytes + ETHERNET_BYTES
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


def _under_htb(interface: Interface, direction: Direction) -> Shaper:
    """Build a managed queue inside HTB, which keeps the rate as in ack_queue.py."""
    rate_bit = round(direction.start_mbit * 1e6)
    dev = interface.name
    return Shaper(
        interface,
        ack_queue.root_arguments(direction),
        ((("kind",), "htb"),),
        (
            f"class add dev {dev} parent 1: classid 1:1 htb rate {rate_bit}bit burst 1 cburst 1",
            f"qdisc add dev {dev} parent 1:1 handle 2: {_managed(direction, rate_bit)}",
        ),
        older_tc=direction.aqm == "dualpi2",
    )


def _managed(direction: Direction, rate_bit: int) -> str:
    """Build the arguments of a managed queue; what is not given is tc's default."""
    aqm, limit = direction.aqm, direction.queue_packets
    words = f"{aqm} limit {limit}"
    if aqm == "fq_codel":  # whose own limit of 10240 packets is there only to bound its memory
        words = aqm
    if aqm == "choke":
        words += f" bandwidth {rate_bit}bit"
    if aqm == "red":  # which counts bytes
        words = f"red limit {limit * _AVERAGE_BYTES} avpkt {_AVERAGE_BYTES} bandwidth {rate_bit}bit"
    if direction.ecn:
        words += " ecn"
    elif aqm == "fq_codel":
        words += " noecn"
    return words


def _by_table(interface: Interface, table: Timetable, limit: int, overhead: int = 0) -> Shaper:
    """Build a queue whose packets leave by a table that starts with the traffic."""
    said = {
        "table": table.kind,
        "steps": len(table.steps),
        "digest": table.digest,
        "period_ns": table.period_ns,
        "start_ns": START_NS,
        "limit": limit,
        "overhead": overhead,
    }
    return Shaper(
        interface,
        timetable.arguments(table, START_NS, limit, overhead),
        ((("kind",), "timetable"), *((("options", name), value) for name, value in said.items())),
        tuple(
            f"qdisc change dev {interface.name} root {words}"
            for words in timetable.more_arguments(table)
        ),
    )


def _on_medium(interface: Interface, direction: Direction, medium: Medium, number: int) -> Shaper:
    """Build a queue at one end of a half-duplex link."""
    rate = round(direction.start_mbit * 1e6) // 8
    said = {
        "number": number,
        "gap_ns": medium.gap_ns,
        "turn_packets": medium.turn_packets,
        "rate": rate,
        "overhead": direction.overhead_bytes,
        "limit": direction.queue_packets,
    }
    arguments = (
        f"medium number {number} gap {medium.gap_ns}ns turn {medium.turn_packets} "
        f"rate {8 * rate}bit overhead {direction.overhead_bytes} limit {direction.queue_packets}"
    )
    return Shaper(
        interface,
        tuple(arguments.split()),
        ((("kind",), "medium"), *((("options", name), value) for name, value in said.items())),
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
    delay_ns = direction.delay_ns
    held_ns = max(delay_ns, 10**6) if direction.rate else delay_ns  # a ms of a trace leaves at once
    most = direction.most_mbit * 1e6 / 8 * held_ns * 1e-9 / _SMALLEST_FRAME_BYTES
    limit = max(1000, math.ceil(_DELAY_LIMIT_MARGIN * most))
    if direction.delay:
        return _by_table(interface, direction.delay.table, limit)
    rate, readback = _rate(direction) if direction.has_ack_queue else ([], [])
    loss = direction.loss.arguments if direction.loss else ()
    impairments = direction.impairments
    words = impairments.arguments if impairments else ()
    return Shaper(
        interface,
        ("netem", "limit", str(limit), "delay", f"{delay_ns // 1000}us", *words, *loss, *rate),
        (
            (("kind",), "netem"),
            (("options", "limit"), limit),
            # tc prints seconds with six digits.
            (("options", "delay", "delay"), float(f"{delay_ns / 1e9:.6g}")),
            *(impairments.readback() if impairments else ()),
            *(direction.loss.readback() if direction.loss else ()),
            *readback,
        ),
    )
