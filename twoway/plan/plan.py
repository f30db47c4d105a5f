"""Building the plan: the commands of a run, before the first one runs.

An experiment always gives the same plan, byte for byte, wherever the checkout is.
"""

from typing import Literal

from twoway.contract.plan import Capture, Line, Plan, Times, Topology
from twoway.description.congestion import parameters_in_kernel
from twoway.description.point import Point
from twoway.plan.buffers import buffers_mib
from twoway.plan.interventions import marking, outcomes, packet_interventions, setting_changes
from twoway.plan.setup import (
    channel_recorders,
    channel_restarts,
    host_counters,
    link_changes,
    queue_statistics,
    route_changes,
    setup_steps,
)
from twoway.plan.shaping import changing_shapers, compile_profile, rate_changes
from twoway.plan.timing import stop_ns
from twoway.plan.traffic import datagram_sink, datagram_source, observer, streams, user_programs

SNAP_BYTES = 96
CAPTURE_RING_KIB = 2048
# Guest memory, MiB: for the system, and the most for each node, capture, connection and program.
SYSTEM_MIB, NODE_MIB, CAPTURE_MIB, CONNECTION_MIB, PROGRAM_MIB = 512, 8, 4, 4, 128
# The least for hosts with the kernel's own defaults: Linux limits a socket's buffers to 1/128 of
# the free memory, and to its own 6 MiB from 768 MiB on (tcp_init); 64 MiB are not free at boot.
LINUX_MIB = 768 + 64

_Which = Literal["in", "out", "inout"]


def captures(point: Point, *, in_kernel: bool) -> tuple[Capture, ...]:
    """List one capture per interface that the analysis needs.

    These are the hosts' interfaces, in both directions, and interfaces on both sides of each queue.
    """
    graph = point.graph
    wanted: dict[str, set[_Which]] = {
        i.name: {"in", "out"} for host in graph.hosts for i in graph.interfaces_of(host)
    }
    for placed in graph.queues.values():
        for queue in placed:
            wanted.setdefault(queue.name, set()).add("out")
            for other in graph.interfaces_of(queue.node):
                if other.name != queue.name:
                    wanted.setdefault(other.name, set()).add("in")
    nodes = {i.name: i.node for i in graph.interfaces}
    capture = _tap if in_kernel else _tcpdump
    return tuple(
        capture(nodes[name], name, directions.pop() if len(directions) == 1 else "inout")
        for name, directions in sorted(wanted.items())
    )


def _tap(node: str, name: str, direction: _Which) -> Capture:
    words = f"tap {name} {direction} {SNAP_BYTES} /mnt/run/pcap/{name}.pcap"
    return Capture(
        name=f"tap-{name}",
        node=node,
        interface=name,
        direction=direction,
        lines=(Line(node=node, text=words),),
    )


def _tcpdump(node: str, name: str, direction: _Which) -> Capture:
    tcpdump = f"""
        tcpdump -Z root -n -i {name} -Q {direction} -s {SNAP_BYTES} -B {CAPTURE_RING_KIB}
        --time-stamp-precision=nano -w -
    """
    return Capture(
        name=f"tcpdump-{name}",
        node=node,
        interface=name,
        direction=direction,
        # tcpdump writes to standard output: with a file's name, tcpdump as root changes the file's
        # owner, which fails if the host's user is not root.
        stdout=f"pcap/{name}.pcap",
        run=tuple(tcpdump.split()),
        ready="listening on",
    )


def build_plan(
    point: Point, mode: Literal["run", "shell"] = "run", *, in_kernel: bool = False
) -> Plan:
    """Build the plan of a run.

    Args:
        point: the experiment and the files that it names.
        mode: "run", or "shell" to stop after set-up with Mininet's prompt.
        in_kernel: True if twoway_testbed captures and samples unless the experiment says otherwise.
    """
    point = point.planned
    chosen = point.experiment
    taps = (chosen.capture or ("kernel" if in_kernel else "tcpdump")) == "kernel"
    samples = (chosen.observe.sampler or ("kernel" if in_kernel else "program")) == "kernel"
    found = captures(point, in_kernel=taps)
    shapers = marking(compile_profile(point.profile, point.graph), point)
    return Plan(
        experiment=point.id,
        mode=mode,
        memory_mib=_memory_mib(point, len(found)),
        seed=chosen.seed,
        topology=Topology(**dict(chosen.topology), source=point.topology_source)
        if mode == "shell"
        else None,
        ipv6=point.experiment.has_ipv6,
        clock=Times(stop_ns=stop_ns(point)),
        guest_only=(
            *point.profile.guest_only,
            *(f"topology.name: switch {switch}" for switch in point.graph.switches),
            *(f"own_modules.{module.name}" for module in point.own_modules),
            *(f"modules.{name}" for name in chosen.parameters if parameters_in_kernel(name)),
            *(f"programs.{program.name}" for program in chosen.programs),
            *(("interventions",) if chosen.interventions else ()),
            *dict.fromkeys(line.field for line in chosen.setup_lines),
        ),
        setup=(
            *setup_steps(point, shapers, instruments=taps or samples),
            *packet_interventions(point),
        ),
        recorders=channel_recorders(shapers),
        captures=found,
        at_start=channel_restarts(shapers),
        sinks=tuple(datagram_sink(flow) for flow in point.datagrams),
        sources=(
            observer(point, in_kernel=samples),
            *streams(point),
            *(datagram_source(point, flow) for flow in point.datagrams),
        ),
        changes=(
            *link_changes(
                (
                    *changing_shapers(point.profile, point.graph, stop_ns(point)),
                    *rate_changes(point.profile, point.graph, chosen.interventions),
                )
            ),
            *setting_changes(point),
            *route_changes(point),
        ),
        user_programs=user_programs(point),
        teardown=(*queue_statistics(shapers), *host_counters(point), *outcomes(point)),
    )


def _memory_mib(point: Point, captures: int) -> int:
    """Compute the guest's memory, which is an upper limit of its use."""
    needed = (
        SYSTEM_MIB
        + NODE_MIB * len(point.graph.nodes)
        + CAPTURE_MIB * captures
        + CONNECTION_MIB * (len(point.connections) + len(point.datagrams))
        + PROGRAM_MIB * len(point.experiment.programs)
        + buffers_mib(point)
    )
    linux = any(stack.is_linux for stack in point.experiment.stacks)
    return max(needed, LINUX_MIB) if linux else needed
