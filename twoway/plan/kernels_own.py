"""Hosts with the kernel's own defaults: what a run changes there, and what it does not prove."""

from collections.abc import Iterable

from twoway.contract.not_proven import NotProven
from twoway.contract.plan import Plan, SetOffloads, SetSysctls, Step
from twoway.description.interventions import rates_by_tc
from twoway.description.point import Point
from twoway.manifest import Setting
from twoway.plan.buffers import most_buffer_bytes
from twoway.plan.personality import EACH_SEGMENT, FIELDS_OF, node_sysctls, root_sysctls

_SILENT = "a host sends no packets of its own, such as requests for an address or a router"
_ONE_KERNEL = "one limit for all hosts of a run, and some have larger buffers"
_CUT = "captures and queues have the packets that a wire carries"
# Each setting, or the start of its name, and the reason for a value that is not the kernel's.
_REASONS = {
    "net.ipv4.tcp_mem": "the guest's memory is sized for the run's buffers, and a host's is not",
    "net.core.rmem_max": _ONE_KERNEL,
    "net.core.wmem_max": _ONE_KERNEL,
    "net.ipv6.conf.": _SILENT,
    "net.ipv4.ip_forward": "the node is a router",
    "offload gro": "in virtual time each packet arrives at its own time: there is none to merge",
    "offload ": _CUT,
}


def changed_settings(point: Point, plan: Plan) -> tuple[Setting, ...]:
    """List commands and sysctls of the file, and changes of the kernel's own defaults."""
    found: dict[tuple[str, ...], Setting] = {}
    for step in plan.setup:
        for each in _changes(point, step):
            key = (each.name, each.value, each.why, str(each.instead_of))
            nodes = found[key].nodes if key in found else ()
            found[key] = each.model_copy(update={"nodes": (*nodes, *each.nodes)})
    commands = point.experiment.setup_lines
    return (
        *found.values(),
        *(Setting(nodes=(c.node,), name="setup", value=c.text, why=c.place) for c in commands),
        *(
            Setting(
                nodes=(interface.node,),
                name="setup",
                value=f"rate {each.rate_mbit:g} Mbit/s at {each.at_s:g} s, by tc",
                why=f"interventions.{number}.link",
            )
            for number, each in rates_by_tc(
                point.profile.directions, point.experiment.interventions
            ).items()
            for interface in point.graph.queues[each.direction]
        ),
    )


def _changes(point: Point, step: Step) -> Iterable[Setting]:
    """List the sysctls of the file in a step, and all others on a node of `linux`."""
    experiment, node = point.experiment, step.node
    stacks = experiment.stacks if node is None else [experiment.stack_of(node)]
    linux, nodes = any(stack.is_linux for stack in stacks), (node,) if node else ()
    if isinstance(step, SetOffloads) and linux:
        for name in (f"offload {offload}" for offload in step.off):
            yield Setting(nodes=nodes, name=name, value="off", why=_reason(name))
    if not isinstance(step, SetSysctls):
        return
    router = node in point.graph.routers
    own = experiment.sysctls_of(node, router=router)
    most_bytes = most_buffer_bytes(point)
    preset = (
        node_sysctls(stacks[0], most_bytes, router=router) if node else root_sysctls(most_bytes)
    )
    for name, value in step.sysctls.items():
        if name in own:
            why = f"routers.{node}.sysctls" if router else "stack.sysctls"
            instead = str(preset[name]) if preset.get(name, value) != value else None
            yield Setting(nodes=nodes, name=name, value=str(value), why=why, instead_of=instead)
        elif linux:
            yield Setting(nodes=nodes, name=name, value=str(value), why=_reason(name))


def _reason(name: str) -> str:
    if name in EACH_SEGMENT:
        return "stack.acks"
    if name in FIELDS_OF:
        return f"stack.{FIELDS_OF[name]}"
    return next(why for start, why in _REASONS.items() if name.startswith(start))


def not_proven(point: Point) -> tuple[NotProven, ...]:
    """List what no check proves of Linux's defaults, offloads and `setup`."""
    stack_of = point.experiment.stack_of
    linux = {c.to for c in point.connections if stack_of(c.to).is_linux}
    receivers = sorted(host for host in linux if stack_of(host).acks == "delayed")
    windows = [c.name for c in point.connections if c.window_packets and stack_of(c.from_).is_linux]
    experiment, found = point.experiment, list[NotProven]()
    merging = [n for n, host in experiment.hosts.items() if host.gso or host.gro]
    if merging:
        what = f"that frames have the sizes that a wire carries ({', '.join(merging)})"
        found.append(NotProven(what=what, why="gso and gro make one frame of several segments"))
    if experiment.has_gso:
        why = "a frame of several segments takes the time of headers that captures do not have"
        found.append(NotProven(what="when packets leave their queues", why=why))
    if commands := dict.fromkeys(line.field for line in point.experiment.setup_lines):
        what = f"that the network is as {', '.join(commands)} should make it"
        why = "each command ended with status 0, and nothing else is checked"
        found.append(NotProven(what=what, why=why))
    if any(router.routes for router in experiment.routers.values()):
        what = "the queues and losses of a flow after a change of routes"
        found.append(NotProven(what=what, why="its metrics have those of its first way"))
    if receivers:
        what = f"when data have an ACK from {', '.join(receivers)}"
        why = "Linux delays, defers and compresses ACKs"
        found.append(NotProven(what=what, why=why))
    if windows:
        what = f"that the constant windows of {', '.join(windows)} are full"
        why = "Linux's own send buffer, autocorking and packets of several segments hold data back"
        found.append(NotProven(what=what, why=why))
    return tuple(found)
