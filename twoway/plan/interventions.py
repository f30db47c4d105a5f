"""Steps of interventions: our module for packets, and commands for settings; and of a probe."""

from collections.abc import Sequence

from twoway.contract.network import CHANGE_NS, START_NS, whole_ns
from twoway.contract.plan import Copy, LoadModule, Plan, TimedCommand
from twoway.description.interventions import PacketName, drops_when_full_alone, queue_of
from twoway.description.point import Point
from twoway.paths import KERNEL_MODULES

MODULE = "twoway_interventions"
# A line for each intervention on packets: how many fitted, how many had another fate, and when.
OUTCOMES = "interventions.txt"
PROBE = "twoway_probe"
# The table that it leaves.
EVENTS = "events.csv"


def packet_interventions(point: Point) -> tuple[LoadModule, ...]:
    """Load our module with a rule for each packet, built for this run alone."""
    named = [found for each in point.experiment.interventions if (found := each.packet)]
    if not named:
        return ()
    rules = ",".join(_rule(point, action, packet) for action, packet in named)
    return (_load(MODULE, {"rules": rules}),)


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


def _rule(point: Point, action: str, packet: PacketName) -> str:
    """Write a rule as the module reads it."""
    flows = {each.name: each for each in point.connections}
    queue = queue_of(packet, flows, point.graph)
    assert queue is not None
    flow = flows.get(packet.flow or "")
    words = (
        action,
        queue.interface.name,
        int(drops_when_full_alone(point.profile.directions[queue.direction])),
        *((flow.source_port, flow.port) if flow else (0, 0)),
        packet.sequence or 0,
        START_NS + whole_ns(packet.from_s) if packet.from_s else 0,
        START_NS + whole_ns(packet.until_s) if packet.until_s else 0,
        packet.packet,
    )
    return "/".join(map(str, words))


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
        for name, value in change.sysctls.items()
    )
