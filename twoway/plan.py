"""The plan: every command of a run, in order, decided before any of them runs.

Pure: the same experiment gives the same plan, byte for byte, wherever the checkout is.
"""

import math
from typing import Any

from twoway import personality
from twoway.case import Case
from twoway.congestion import CONTROLS
from twoway.connections import Connection
from twoway.topology import Graph

# The guest's clock at boot: 2000-01-01 00:00:00 UTC. Traffic starts 30 s later, in virtual
# time, which costs nothing; connections are set up in between, at zero load.
BOOT_NS = 946_684_800_000_000_000
READY_NS = BOOT_NS + 8_000_000_000
CONNECT_NS = BOOT_NS + 10_000_000_000
START_NS = BOOT_NS + 30_000_000_000
# tcpdump's ring hands over a block at the latest after 1 s.
SETTLE_NS = 3_000_000_000

SNAP_BYTES = 96
CAPTURE_RING_KIB = 2048
# What a source offers the kernel at least: refilled in few, large copies.
LEAST_SEND_BUFFER_BYTES = 1 << 20
# Guest memory: the system, then what each node, capture and connection may take at most.
SYSTEM_MIB, NODE_MIB, CAPTURE_MIB, CONNECTION_MIB = 512, 8, 4, 4
PROGRESS_REPORTS = 400
GUEST_BIN = "/mnt/bin"


def build_plan(case: Case, mode: str = "run") -> dict[str, Any]:
    """Everything the guest does, as plain data.

    Args:
        case: the experiment and what it refers to.
        mode: "run", or "shell" to stop after set-up with Mininet's prompt.
    """
    captures = _captures(case)
    return {
        "schema": 1,
        "experiment": case.id,
        "mode": mode,
        "memory_mib": _memory_mib(case, len(captures)),
        "topology": case.experiment.topology.model_dump(),
        "clock": {
            "boot_ns": BOOT_NS,
            "ready_by_ns": READY_NS,
            "start_ns": START_NS,
            "stop_ns": stop_ns(case),
            "settle_ns": SETTLE_NS,
        },
        "setup": _setup(case),
        "recorders": _recorders(case),
        "captures": captures,
        "at_start": _restarts(case),
        "sinks": [_sink(case, c) for c in case.connections],
        "sources": [
            _observer(case),
            *(_stream_source(case, c) for c in case.connections if c.flow.generator == "stream"),
        ],
        "timed_sources": sorted(
            (_iperf3_source(case, c) for c in case.connections if c.flow.generator == "iperf3"),
            key=lambda program: int(program["at_ns"]),
        ),
        "teardown": _queue_statistics(case, "after"),
    }


def stop_ns(case: Case) -> int:
    """When a case's traffic stops, on the guest's clock."""
    return START_NS + round(case.experiment.duration_s * 1e9)


def _setup(case: Case) -> list[dict[str, Any]]:
    stack, graph = case.experiment.stack, case.graph
    steps = _modules(case)
    steps.append(_step(None, sysctl=personality.root_sysctls(stack)))
    for node in graph.nodes:
        steps += _node_setup(case, node)
    for number, connection in enumerate(case.connections):
        if connection.flow.generator == "iperf3":
            steps += _control_link(graph, connection, number)
    return steps + _queue_statistics(case, "before")


def _modules(case: Case) -> list[dict[str, Any]]:
    """Load the modules in use, those of congestion controls with the variants that flows name."""
    variants: dict[str, dict[str, set[int]]] = {}
    if any(shaper.is_channel for shaper in case.shapers):
        variants["sch_dtm"] = {}
    for flow in case.experiment.flows:
        control = CONTROLS[flow.congestion]
        if control.module:
            parameters = variants.setdefault(control.module, {})
            if control.field and control.variants:
                parameters.setdefault(control.variants, set()).add(getattr(flow, control.field))
    steps = []
    for module, parameters in sorted(variants.items()):
        given = case.experiment.modules.get(module, {})
        words = [f"{name}={','.join(map(str, sorted(v)))}" for name, v in parameters.items()]
        words += [f"{name}={value}" for name, value in given.items()]
        steps.append(_step(None, run=["insmod", f"{GUEST_BIN}/{module}.ko", *words]))
    return steps


def _node_setup(case: Case, node: str) -> list[dict[str, Any]]:
    """Set one node's stack, links and queues, then read everything back."""
    router = node in case.graph.routers
    steps = [
        _step(node, sysctl=personality.node_sysctls(case.experiment.stack, router=router)),
        *_link_setup(case, node),
        *_qdisc_setup(case, node, router=router),
    ]
    if not router:
        stack, interface = case.experiment.stack, case.graph.of(node)[0]
        command = personality.route_command(stack, case.graph, interface)
        steps.append(_step(node, run=["ip", "-batch", "-"], stdin=[command]))
        show = "ip -j route show default"
        steps.append(_check(node, "route", show, personality.route_readback(stack)))
    return steps


def _link_setup(case: Case, node: str) -> list[dict[str, Any]]:
    stack, graph = case.experiment.stack, case.graph
    commands, links, neighbours = [], [], []
    for interface in graph.of(node):
        commands += personality.link_commands(stack, interface)
        commands.append(personality.neighbour_command(graph, interface))
        links += personality.link_readback(stack, interface)
        neighbours += personality.neighbour_readback(graph, interface)
    steps = [_step(node, run=["ip", "-batch", "-"], stdin=commands)]
    for interface in graph.of(node):
        steps.append(_step(node, run=personality.offload_command(interface)))
        show = f"ethtool --json -k {interface.name}"
        wanted = personality.offload_readback(interface)
        steps.append(_check(node, f"offload-{interface.name}", show, wanted))
    return [
        *steps,
        _check(node, "link", "ip -j -d link show", links),
        _check(node, "neighbour", "ip -j neigh show", neighbours),
    ]


def _qdisc_setup(case: Case, node: str, *, router: bool) -> list[dict[str, Any]]:
    commands, wanted = [], []
    for shaper in case.shapers:
        name = shaper.interface.name
        if shaper.interface.node == node:
            commands.append(f"qdisc replace dev {name} root handle 1: {' '.join(shaper.arguments)}")
            commands += shaper.inner
            wanted += [([name, *path], value) for path, value in shaper.readback]
    if not router:
        for interface in case.graph.of(node):
            name = interface.name
            commands.append(f"qdisc replace dev {name} root handle 1: pfifo limit 10000")
            wanted += [([name, "kind"], "pfifo"), ([name, "options", "limit"], 10000)]
    if not commands:
        return []
    return [
        _step(node, run=[*_tc(case), "-batch", "-"], stdin=commands),
        _check(node, "qdisc", " ".join([*_tc(case), "-j qdisc show"]), wanted),
    ]


def _tc(case: Case) -> list[str]:
    """The command tc, with our plugin where there is a DTM channel."""
    if any(shaper.is_channel for shaper in case.shapers):
        return ["env", f"TC_LIB_DIR={GUEST_BIN}", "tc"]
    return ["tc"]


def _restarts(case: Case) -> list[dict[str, Any]]:
    """What is run as traffic starts: the clocks of DTM channels start with it."""
    return [
        _step(
            shaper.interface.node,
            run=[
                *_tc(case),
                *f"qdisc change dev {shaper.interface.name} root".split(),
                *shaper.arguments,
            ],
        )
        for shaper in case.shapers
        if shaper.is_channel
    ]


def _recorders(case: Case) -> list[dict[str, Any]]:
    """One program per node with a DTM channel writes down each reallocation."""
    nodes = dict.fromkeys(s.interface.node for s in case.shapers if s.is_channel)
    return [
        {
            "name": f"dtm-events-{node}",
            "node": node,
            "stdout": f"qdisc/{node}-reallocations.csv",
            "run": [f"{GUEST_BIN}/dtm-events"],
            "ready": "listening on",
        }
        for node in nodes
    ]


def _control_link(graph: Graph, connection: Connection, number: int) -> list[dict[str, Any]]:
    """A wire of its own for iperf3's control connection.

    iperf3 polls while its control connection waits a round trip, and each poll costs wall time
    but only 256 ns of virtual time. Over a direct link that round trip takes none. Policy rules
    tell the two apart: data comes from the connection's source port.
    """
    source, sink = connection.flow.from_, connection.flow.to
    interface, subnet = f"ctl{number}", f"10.255.{number}"
    sink_address = graph.address(sink)
    table = str(1000 + number)
    select = f"ipproto tcp dport {connection.port}"
    data = f"{select} sport {connection.source_port}"
    return [
        _step(
            source,
            run=[
                "ip",
                "link",
                "add",
                interface,
                "type",
                "veth",
                "peer",
                "name",
                interface,
                "netns",
                sink,
            ],
        ),
        _step(
            sink,
            run=["ip", "-batch", "-"],
            stdin=[
                f"address add {subnet}.2/24 dev {interface}",
                f"link set {interface} up",
            ],
        ),
        _step(
            source,
            run=["ip", "-batch", "-"],
            stdin=[
                f"address add {subnet}.1/24 dev {interface}",
                f"link set {interface} up",
                f"route add {sink_address} via {subnet}.2 dev {interface} table {table}",
                f"rule add pref {100 + 2 * number} {data} lookup main",
                f"rule add pref {101 + 2 * number} {select} lookup {table}",
            ],
        ),
    ]


def _queue_statistics(case: Case, when: str) -> list[dict[str, Any]]:
    nodes = dict.fromkeys(s.interface.node for s in case.shapers)
    return [
        _step(node, run=[*_tc(case), "-s", "-j", "qdisc", "show"], save=f"qdisc/{node}-{when}.json")
        for node in nodes
    ]


def _captures(case: Case) -> list[dict[str, Any]]:
    """One tcpdump per interface: hosts both ways, and both sides of each queue."""
    graph = case.graph
    wanted = {i.name: {"in", "out"} for host in graph.hosts for i in graph.of(host)}
    for placed in graph.queues.values():
        for queue in placed:
            wanted.setdefault(queue.name, set()).add("out")
            for other in graph.of(queue.node):
                if other.name != queue.name:
                    wanted.setdefault(other.name, set()).add("in")
    nodes = {i.name: i.node for i in graph.interfaces}
    captures = []
    for name, directions in sorted(wanted.items()):
        direction = directions.pop() if len(directions) == 1 else "inout"
        tcpdump = f"""
            tcpdump -Z root -n -i {name} -Q {direction} -s {SNAP_BYTES} -B {CAPTURE_RING_KIB}
            --time-stamp-precision=nano -w -
        """
        captures.append(
            {
                "name": f"tcpdump-{name}",
                "node": nodes[name],
                "interface": name,
                "direction": direction,
                # Not by its name: tcpdump as root would change the file's owner, and cannot where
                # the host's user is not root.
                "stdout": f"pcap/{name}.pcap",
                "run": tcpdump.split(),
                "ready": "listening on",
            }
        )
    return captures


def _observer(case: Case) -> dict[str, Any]:
    interval_ns = round(case.experiment.observe.tcp_info_ms * 1e6)
    progress_ns = max((stop_ns(case) - START_NS) // PROGRESS_REPORTS, 1_000_000)
    queues = [i for placed in case.graph.queues.values() for i in placed]
    senders = dict.fromkeys(c.flow.from_ for c in case.connections)
    observe = f"""
        {GUEST_BIN}/observe --start {START_NS} --stop {stop_ns(case)} --interval {interval_ns}
        --progress-interval {progress_ns} --out /mnt/run/sockets
        {" ".join(f"--sockets {host}" for host in senders)}
        {" ".join(f"--queue {i.node}/{i.name}" for i in queues)}
    """
    return {"name": "observe", "node": None, "run": observe.split()}


def _sink(case: Case, connection: Connection) -> dict[str, Any]:
    if connection.flow.generator == "iperf3":
        # -1: it ends by itself once the test is over.
        sink = f"iperf3 -s -1 -J -p {connection.port}"
    else:
        buffer = case.experiment.stack.receive_buffer_bytes
        sink = f"{GUEST_BIN}/stream receive --port {connection.port} --receive-buffer {buffer}"
    return {
        "name": f"sink-{connection.name}",
        "node": connection.flow.to,
        "stdout": f"traffic/{connection.name}-sink.json",
        "patience_s": _drain_s(case),
        "run": sink.split(),
    }


def _drain_s(case: Case) -> float:
    """How long the last packet of a run may take to arrive, in virtual time."""
    mtu_bit = case.experiment.stack.mtu_bytes * 8
    return 5 + sum(
        d.queue_packets * mtu_bit / (d.least_mbit * 1e6) + d.delay_ms / 1e3
        for d in case.profile.directions.values()
    )


def _source(connection: Connection) -> dict[str, Any]:
    return {
        "name": f"source-{connection.name}",
        "node": connection.flow.from_,
        "stdout": f"traffic/{connection.name}-source.json",
    }


def _connect_ns(connection: Connection) -> int:
    return CONNECT_NS if connection.flow.connect == "before" else _start_ns(connection)


def _start_ns(connection: Connection) -> int:
    return START_NS + round(connection.start_s * 1e9)


def _stream_source(case: Case, connection: Connection) -> dict[str, Any]:
    stack, flow = case.experiment.stack, connection.flow
    stream = f"""
        {GUEST_BIN}/stream send --to {case.graph.address(flow.to)} --port {connection.port}
        --source-port {connection.source_port} --connect-at {_connect_ns(connection)}
        --start-at {_start_ns(connection)} --stop-at {stop_ns(case)}
        --congestion {connection.congestion} --send-buffer {_send_buffer_bytes(case, connection)}
    """
    if flow.rate_mbit is not None:
        interval_ns = round(stack.mtu_bytes * 8e3 / flow.rate_mbit)
        stream += f" --interval {interval_ns} --sizes {stack.segment_bytes}"
    if flow.film is not None:
        frames = flow.film.frame_bytes(case.experiment.duration_s - flow.start_s)
        interval_ns = round(1e9 / flow.film.frames_per_s)
        stream += f" --interval {interval_ns} --sizes {','.join(map(str, frames))}"
    if connection.transfer_bytes is not None:
        stream += f" --bytes {connection.transfer_bytes}"
    if stack.pacing:
        stream += " --pacing"
    return _source(connection) | {"run": stream.split()}


def _send_buffer_bytes(case: Case, connection: Connection) -> int:
    """SO_SNDBUF with which a window is never short of data.

    The kernel doubles it and wakes the writer when a third of that is free. It counts a segment
    at the size of its allocation, the next power of two, and one page more for headers.
    """
    truesize = (1 << (case.experiment.stack.mtu_bytes + 320 - 1).bit_length()) + 4096
    return max(LEAST_SEND_BUFFER_BYTES, _most_packets(case, connection) * truesize)


def _most_packets(case: Case, connection: Connection) -> int:
    """The largest window that is known before: a constant one, or what FAST settles at.

    No flow of FAST has more on its way than its direction carries in a round trip without queues,
    and in queues than the alphas of all, which is also what one that came last takes for the path.
    """
    flow = connection.flow
    if flow.alpha_packets is None:
        return flow.window_packets or 0
    data = case.profile.directions[connection.direction]
    delay_ms = sum(each.delay_ms for each in case.profile.directions.values())
    packet_bit = case.experiment.stack.mtu_bytes * 8
    alphas = sum(c.flow.alpha_packets or 0 for c in case.connections)
    return alphas + math.ceil(data.most_mbit * 1e3 * delay_ms / packet_bit)


def _memory_mib(case: Case, captures: int) -> int:
    """Memory that the guest needs; it takes from the host only what it touches."""
    buffers = sum(2 * _send_buffer_bytes(case, c) for c in case.connections) >> 20
    return (
        SYSTEM_MIB
        + NODE_MIB * len(case.graph.nodes)
        + CAPTURE_MIB * captures
        + CONNECTION_MIB * len(case.connections)
        + buffers
    )


def _iperf3_source(case: Case, connection: Connection) -> dict[str, Any]:
    start_ns = _start_ns(connection)
    seconds = (stop_ns(case) - start_ns) // 1_000_000_000
    iperf3 = f"""
        iperf3 -c {case.graph.address(connection.flow.to)} -p {connection.port}
        --cport {connection.source_port} -t {seconds} -C {connection.congestion} -J
    """
    return _source(connection) | {
        "at_ns": start_ns,
        "patience_s": _drain_s(case),
        "run": iperf3.split(),
    }


def _step(node: str | None, **what: Any) -> dict[str, Any]:
    return {"node": node, **what}


def _check(
    node: str, name: str, command: str, expect: list[tuple[list[str], Any]]
) -> dict[str, Any]:
    return _step(node, check=command.split(), name=f"{node}-{name}", expect=expect)
