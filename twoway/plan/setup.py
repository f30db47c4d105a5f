"""Steps that set up nodes, links and queues of a run's network.

Every setting is read back.
"""

from collections.abc import Sequence
from typing import Any

from twoway.plan import personality
from twoway.plan.shaping import Shaper
from twoway.plan.steps import GUEST_BIN, check, step
from twoway.spec.congestion import CONTROLS
from twoway.spec.connections import Connection
from twoway.spec.point import Case
from twoway.spec.topology import Graph


def setup_steps(case: Case, shapers: Sequence[Shaper]) -> list[dict[str, Any]]:
    """List the steps between boot and traffic, in order."""
    stack, graph = case.experiment.stack, case.graph
    steps = _modules(case, shapers)
    steps.append(step(None, sysctl=personality.root_sysctls(stack)))
    for node in graph.nodes:
        steps += _node_setup(case, shapers, node)
    for number, connection in enumerate(case.connections):
        if connection.flow.generator == "iperf3":
            steps += _control_link(graph, connection, number)
    return steps + queue_statistics(shapers, "before")


def _modules(case: Case, shapers: Sequence[Shaper]) -> list[dict[str, Any]]:
    """Load the modules in use, with the variants that flows name."""
    variants: dict[str, dict[str, set[int]]] = {}
    if any(shaper.is_channel for shaper in shapers):
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
        steps.append(step(None, run=["insmod", f"{GUEST_BIN}/{module}.ko", *words]))
    return steps


def _node_setup(case: Case, shapers: Sequence[Shaper], node: str) -> list[dict[str, Any]]:
    """Set one node's stack, links and queues, then read everything back."""
    router = node in case.graph.routers
    steps = [
        step(node, sysctl=personality.node_sysctls(case.experiment.stack, router=router)),
        *_link_setup(case, node),
        *_qdisc_setup(case, shapers, node, router=router),
    ]
    if not router:
        stack, interface = case.experiment.stack, case.graph.of(node)[0]
        command = personality.route_command(stack, case.graph, interface)
        steps.append(step(node, run=["ip", "-batch", "-"], stdin=[command]))
        show = "ip -j route show default"
        steps.append(check(node, "route", show, personality.route_readback(stack)))
    return steps


def _link_setup(case: Case, node: str) -> list[dict[str, Any]]:
    stack, graph = case.experiment.stack, case.graph
    commands, links, neighbours = [], [], []
    for interface in graph.of(node):
        commands += personality.link_commands(stack, interface)
        commands.append(personality.neighbour_command(graph, interface))
        links += personality.link_readback(stack, interface)
        neighbours += personality.neighbour_readback(graph, interface)
    steps = [step(node, run=["ip", "-batch", "-"], stdin=commands)]
    for interface in graph.of(node):
        steps.append(step(node, run=personality.offload_command(interface)))
        show = f"ethtool --json -k {interface.name}"
        wanted = personality.offload_readback(interface)
        steps.append(check(node, f"offload-{interface.name}", show, wanted))
    return [
        *steps,
        check(node, "link", "ip -j -d link show", links),
        check(node, "neighbour", "ip -j neigh show", neighbours),
    ]


def _qdisc_setup(
    case: Case, shapers: Sequence[Shaper], node: str, *, router: bool
) -> list[dict[str, Any]]:
    commands, wanted = [], []
    for shaper in shapers:
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
        step(node, run=[*_tc(shapers), "-batch", "-"], stdin=commands),
        check(node, "qdisc", " ".join([*_tc(shapers), "-j qdisc show"]), wanted),
    ]


def _tc(shapers: Sequence[Shaper]) -> list[str]:
    """Build the command tc, with our plugin if there is a DTM channel."""
    if any(shaper.is_channel for shaper in shapers):
        return ["env", f"TC_LIB_DIR={GUEST_BIN}", "tc"]
    return ["tc"]


def channel_restarts(shapers: Sequence[Shaper]) -> list[dict[str, Any]]:
    """List the commands at the start that start DTM channels' clocks.

    The reason is in docs/decisions/0017.
    """
    return [
        step(
            shaper.interface.node,
            run=[
                *_tc(shapers),
                *f"qdisc change dev {shaper.interface.name} root".split(),
                *shaper.arguments,
            ],
        )
        for shaper in shapers
        if shaper.is_channel
    ]


def channel_recorders(shapers: Sequence[Shaper]) -> list[dict[str, Any]]:
    """List the programs that record reallocations, one per DTM node."""
    nodes = dict.fromkeys(s.interface.node for s in shapers if s.is_channel)
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
    """Add a separate link for iperf3's control connection.

    iperf3 polls while its control connection waits a round trip, and each poll costs wall time
    but only 256 ns of virtual time. Over a direct link that round trip takes no time
    (docs/decisions/0007). Policy rules select the link: only data comes from the connection's
    source port.
    """
    source, sink = connection.flow.from_, connection.flow.to
    interface, subnet = f"ctl{number}", f"10.255.{number}"
    sink_address = graph.address(sink)
    table = str(1000 + number)
    select = f"ipproto tcp dport {connection.port}"
    data = f"{select} sport {connection.source_port}"
    return [
        step(
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
        step(
            sink,
            run=["ip", "-batch", "-"],
            stdin=[
                f"address add {subnet}.2/24 dev {interface}",
                f"link set {interface} up",
            ],
        ),
        step(
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


def queue_statistics(shapers: Sequence[Shaper], when: str) -> list[dict[str, Any]]:
    """Save the kernel's counts of all queues, `before` or `after` traffic."""
    nodes = dict.fromkeys(s.interface.node for s in shapers)
    return [
        step(
            node, run=[*_tc(shapers), "-s", "-j", "qdisc", "show"], save=f"qdisc/{node}-{when}.json"
        )
        for node in nodes
    ]
