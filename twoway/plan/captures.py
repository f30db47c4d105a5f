"""Captures by tcpdump or twoway_testbed: one for each interface that the analysis needs."""

from typing import Literal

from twoway.contract.plan import Capture, Line
from twoway.description.point import Point

SNAP_BYTES = 96
CAPTURE_RING_KIB = 2048

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
