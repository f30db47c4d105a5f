"""Steps of interventions: our module for packets, and commands for settings; and of a probe."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from twoway.contract.network import CHANGE_NS, START_NS, whole_ns
from twoway.contract.plan import Copy, LoadModule, Plan, TimedCommand
from twoway.description.interventions import (
    FlowControl,
    Intervention,
    LatePacket,
    OvertakenPacket,
    PacketName,
    places_of,
    queue_of,
)
from twoway.description.point import Point
from twoway.description.sysctls import in_order
from twoway.links.shaper import Shaper
from twoway.paths import KERNEL_MODULES

MODULE = "twoway_interventions"
# A line for each intervention on packets: how many fitted, how many had another fate, and when.
OUTCOMES = "interventions.txt"
PROBE = "twoway_probe"
# The table that it leaves.
EVENTS = "events.csv"


def packet_interventions(point: Point) -> tuple[LoadModule, ...]:
    """Load our module with a rule for each packet, built for this run alone."""
    rules = [rule for each in point.experiment.interventions for rule in _rules(point, each)]
    return (_load(MODULE, {"rules": ",".join(rules)}),) if rules else ()


def _load(module: str, parameters: dict[str, str]) -> LoadModule:
    """Load a module that is built for this run alone."""
    folder = KERNEL_MODULES / "interventions"
    sources = {name: (folder / name).read_text("utf-8") for name in (f"{module}.c", "seen.h")}
    sources["Kbuild"] = f"obj-m := {module}.o\n"
    return LoadModule(module=module, parameters=parameters, sources=sources)


def with_probe(plan: Plan, interfaces: Sequence[str], between_ns: tuple[int, int]) -> Plan:
    """Add our probe to a run: events of TCP and of interfaces' queues between two times."""
    start, stop = map(str, between_ns)
    load = _load(PROBE, {"from": start, "until": stop, "interfaces": ",".join(interfaces)})
    keep = Copy(node=None, source=f"/proc/{PROBE}", file=EVENTS)
    return plan.model_copy(
        update={"setup": (*plan.setup, load), "teardown": (*plan.teardown, keep)}
    )


def _rules(point: Point, asked: Intervention) -> Iterator[str]:
    """Write a rule for each place of an intervention, as the module reads it."""
    around = point.surroundings
    if change := asked.limit:
        queue = queue_of(PacketName(queue=change.queue), around)
        assert queue is not None
        words = ("limit", queue.interface.name, 1, 0, 0, 0, _ns(change.at_s), 0, 1)
        yield "/".join(map(str, (*words, change.packets)))
    elif then := asked.control or asked.window:
        flow = around.connections[then.flow]
        ports, at_ns = (flow.source_port, flow.port), _ns(then.at_s)
        (action,) = asked.model_fields_set
        new = then.congestion if isinstance(then, FlowControl) else then.packets
        yield "/".join(map(str, (action, flow.source_interface, 0, *ports, 0, at_ns, 0, 1, new)))
    elif ends := asked.resume or asked.read:
        until_ns = _ns(asked.resume.until_s) if asked.resume else 0
        ports = ends.ports_of(around.connections)
        (action,) = asked.model_fields_set
        yield "/".join(map(str, (action, "-", 0, *ports, 0, _ns(ends.at_s), until_ns, 1, "-")))
    elif found := asked.packet:
        action, packet = found
        sender, queue = around.connections.get(packet.flow or ""), queue_of(packet, around)
        assert queue is not None
        fields = (
            *((sender.source_port, sender.port) if sender else (0, 0)),
            packet.sequence or 0,
            _ns(packet.from_s) if packet.from_s else 0,
            _ns(packet.until_s) if packet.until_s else 0,
            packet.packet,
        )
        value: int | str = "-"
        if isinstance(packet, LatePacket):
            value = whole_ns(packet.by_ms / 1e3)
        elif isinstance(packet, OvertakenPacket):
            value = packet.by_packets
        for place in places_of(action, queue, around):
            yield "/".join(map(str, (action, place.interface, int(place.limited), *fields, value)))


def _ns(time_s: float) -> int:
    return START_NS + whole_ns(time_s)


def marking(shapers: Sequence[Shaper], point: Point) -> list[Shaper]:
    """Let the qdiscs mark from which interventions keep packets: nothing else can be marked."""
    around = point.surroundings
    kept = [
        place
        for each in point.experiment.interventions
        if each.keep and (queue := queue_of(each.keep, around))
        for place in places_of("keep", queue, around)
        if not place.limited
    ]
    behind = {place.interface for place in kept if place.behind}
    managed = {place.interface for place in kept if not place.behind}
    return [
        replace(shaper, arguments=(*shaper.arguments, "ecn"))
        if shaper.interface.name in behind
        else replace(shaper, inner=tuple(map(_with_ecn, shaper.inner)))
        if shaper.interface.name in managed
        else shaper
        for shaper in shapers
    ]


def _with_ecn(line: str) -> str:
    """Let a managed queue mark, unless it always does."""
    words = line.split()
    if words[:2] != ["qdisc", "add"] or "ecn" in words or "cake" in words or "dualpi2" in words:
        return line
    return " ".join([*(word for word in words if word != "noecn"), "ecn"])


def outcomes(point: Point) -> tuple[Copy, ...]:
    """Keep what became of the packets."""
    if not packet_interventions(point):
        return ()
    source = f"/sys/module/{MODULE}/parameters/rules"
    return (Copy(node=None, source=source, file=OUTCOMES),)


def setting_changes(point: Point) -> tuple[TimedCommand, ...]:
    """List the commands that set sysctls during the traffic, by time."""
    changes = [each.set for each in point.experiment.interventions if each.set]
    return tuple(
        TimedCommand(
            node=change.host,
            run=("tee", f"/proc/sys/{name.replace('.', '/')}"),
            stdin=(str(value),),
            at_ns=(at_ns := START_NS + whole_ns(change.at_s)),
            by_ns=at_ns + CHANGE_NS,
        )
        for change in sorted(changes, key=lambda each: each.at_s)
        for name, value in in_order(change.sysctls).items()
    )
