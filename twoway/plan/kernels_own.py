"""Hosts with the kernel's own defaults: what a run changes there, and what it does not prove."""

from collections import defaultdict
from collections.abc import Iterable

from twoway.contract.not_proven import NotProven
from twoway.contract.plan import Plan, SetOffloads, SetSysctls, Step
from twoway.description.point import Point
from twoway.manifest import Setting
from twoway.plan.personality import FIELDS_OF

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
    """List the settings that the plan changes where the kernel's own defaults hold."""
    nodes: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for step in plan.setup:
        for name, value in _changes(point, step):
            nodes[name, str(value)] |= {step.node: None} if step.node else {}
    return tuple(
        Setting(nodes=tuple(of), name=name, value=value, why=_reason(name))
        for (name, value), of in nodes.items()
    )


def _changes(point: Point, step: Step) -> Iterable[tuple[str, int | str]]:
    """List the settings that a step changes on nodes with the kernel's own defaults."""
    experiment, node = point.experiment, step.node
    stacks = experiment.stacks if node is None else [experiment.stack_of(node)]
    if not any(stack.is_linux for stack in stacks):
        return ()
    if isinstance(step, SetOffloads):
        return [(f"offload {name}", "off") for name in step.off]
    return step.sysctls.items() if isinstance(step, SetSysctls) else ()


def _reason(name: str) -> str:
    if name in FIELDS_OF:
        return f"stack.{FIELDS_OF[name]}"
    return next(why for start, why in _REASONS.items() if name.startswith(start))


def not_proven(point: Point) -> tuple[NotProven, ...]:
    """List what no check proves because hosts have the kernel's own defaults."""
    stack_of = point.experiment.stack_of
    receivers = sorted({c.to for c in point.connections if stack_of(c.to).is_linux})
    windows = [c.name for c in point.connections if c.window_packets and stack_of(c.from_).is_linux]
    found = []
    if receivers:
        what = f"when data have an ACK from {', '.join(receivers)}"
        why = "Linux delays, defers and compresses ACKs"
        found.append(NotProven(what=what, why=why))
    if windows:
        what = f"that the constant windows of {', '.join(windows)} are full"
        why = "Linux's own send buffer, autocorking and packets of several segments hold data back"
        found.append(NotProven(what=what, why=why))
    return tuple(found)
