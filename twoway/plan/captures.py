"""Captures: one tcpdump per interface that the analysis needs."""

from typing import Literal

from twoway.contract.plan import Capture
from twoway.spec.point import Case

SNAP_BYTES = 96
CAPTURE_RING_KIB = 2048


def captures(case: Case) -> tuple[Capture, ...]:
    """List one tcpdump per interface that the analysis needs.

    Captured are hosts' interfaces, in both directions, and interfaces on both sides of each queue.
    """
    graph = case.graph
    wanted: dict[str, set[Literal["in", "out"]]] = {
        i.name: {"in", "out"} for host in graph.hosts for i in graph.of(host)
    }
    for placed in graph.queues.values():
        for queue in placed:
            wanted.setdefault(queue.name, set()).add("out")
            for other in graph.of(queue.node):
                if other.name != queue.name:
                    wanted.setdefault(other.name, set()).add("in")
    nodes = {i.name: i.node for i in graph.interfaces}
    return tuple(
        _capture(nodes[name], name, directions.pop() if len(directions) == 1 else "inout")
        for name, directions in sorted(wanted.items())
    )


def _capture(node: str, name: str, direction: Literal["in", "out", "inout"]) -> Capture:
    tcpdump = f"""
        tcpdump -Z root -n -i {name} -Q {direction} -s {SNAP_BYTES} -B {CAPTURE_RING_KIB}
        --time-stamp-precision=nano -w -
    """
    return Capture(
        name=f"tcpdump-{name}",
        node=node,
        interface=name,
        direction=direction,
        # tcpdump writes to standard output: given a file's name, tcpdump as root changes
        # the file's owner, which fails if the host's user is not root.
        stdout=f"pcap/{name}.pcap",
        run=tuple(tcpdump.split()),
        ready="listening on",
    )
