"""Steps that set up nodes, links and queues of a run's network.

Every setting is read back.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from twoway.contract.network import CHANGE_NS, START_NS, IpVersion, netstat_file
from twoway.contract.plan import (
    GUEST_BIN,
    Check,
    Command,
    Copy,
    End,
    LoadModule,
    MakeNetwork,
    Program,
    Readback,
    Reading,
    Save,
    SetOffloads,
    SetParameters,
    SetSysctls,
    Step,
    TimedCommand,
)
from twoway.description.addresses import network_in_ipv6
from twoway.description.congestion import CONTROLS, Control, parameters_in_kernel
from twoway.description.graph import Graph
from twoway.description.mininet_commands import DEFAULT, Route
from twoway.description.point import Point
from twoway.links.interface import Interface
from twoway.links.shaper import Shaper
from twoway.plan import personality
from twoway.plan.buffers import most_buffer_bytes
from twoway.plan.shaping import pool_nodes
from twoway.plan.traffic import host_names

# A node announces twice to its neighbours which groups of IPv6 it has joined, within 1 s each, and
# begins up to 1 s late (RFC 3810, section 9.11).
_REPORTS_S = 4
# Functions of a switch's port that are switched off: the plan sets the table of addresses.
_SWITCH_OFF = ("learning", "flood")


def setup_steps(point: Point, shapers: Sequence[Shaper], *, instruments: bool) -> tuple[Step, ...]:
    """List the steps between boot and traffic, in order.

    Args:
        point: the experiment.
        shapers: the experiment's qdiscs.
        instruments: True if our module twoway_testbed captures or samples.
    """
    steps: list[Step] = [make_network(point.graph), *_modules(point, shapers), *_parameters(point)]
    if instruments:
        steps.append(LoadModule(module="twoway_testbed", parameters={}))
    most_bytes = most_buffer_bytes(point)
    sysctls = personality.root_sysctls(most_bytes)
    sysctls |= point.experiment.sysctls_of(None, router=False)
    steps.append(SetSysctls(node=None, sysctls=sysctls))
    steps += _pools(point)
    for node in point.graph.nodes:
        steps += _node_setup(point, node, most_bytes)
    if point.experiment.has_ipv6:
        steps.append(Command(node=None, run=("sleep", str(_REPORTS_S))))
    steps += host_names(point)
    for node in point.graph.nodes:  # last, because packets are counted from here on
        steps += _qdisc_setup(point, shapers, node)
    steps += (line.command for line in point.experiment.setup_lines)
    return tuple(steps)


def make_network(graph: Graph) -> MakeNetwork:
    """Make the nodes' namespaces and links, as Mininet does, with the plan's MAC addresses."""
    links = tuple((_end(one), _end(other)) for one, other in graph.links)
    return MakeNetwork(nodes=graph.nodes, links=links)


def _end(interface: Interface) -> End:
    return End(node=interface.node, interface=interface.name, mac=interface.mac)


def _modules(point: Point, shapers: Sequence[Shaper]) -> Iterable[LoadModule]:
    """Load the modules in use, with the variants that flows name, then the experiment's own."""
    variants: dict[str, dict[str, set[int]]] = {}
    for shaper in shapers:
        if shaper.module:
            variants[shaper.module] = {}
    for flow in point.experiment.flows:
        control = CONTROLS.get(flow.congestion, Control())
        if control.module:
            parameters = variants.setdefault(control.module, {})
            if control.field and control.variants:
                parameters.setdefault(control.variants, set()).add(getattr(flow, control.field))
    for module, parameters in sorted(variants.items()):
        values = {name: ",".join(map(str, sorted(v))) for name, v in parameters.items()}
        yield LoadModule(module=module, parameters=values | _own_values(point, module))
    for own in point.own_modules:
        given = _own_values(point, own.name)
        yield LoadModule(module=own.name, parameters=given, sources=dict(own.sources))


def _parameters(point: Point) -> Iterable[SetParameters]:
    """Set the parameters of controls that are part of the kernel."""
    for name, given in point.experiment.parameters.items():
        if parameters_in_kernel(name) and given:
            yield SetParameters(module=name, parameters=_own_values(point, name))


def _own_values(point: Point, module: str) -> dict[str, str]:
    """Write the values of a module's parameters that the experiment gives."""
    given = point.experiment.parameters.get(module, {})
    return {name: str(value) for name, value in given.items()}


def _pools(point: Point) -> Iterable[Command]:
    """Make the pools of slots, each in a node with a channel; the pool ends with that node."""
    for name, node in pool_nodes(point.profile, point.graph).items():
        run = f"{GUEST_BIN}/dtm pool add {name} slots {point.profile.pools[name]}"
        yield Command(node=node, run=tuple(run.split()))


def _node_setup(point: Point, node: str, most_bytes: int | None) -> list[Step]:
    """Set one node's stack and links, then read everything back."""
    router = node in point.graph.routers
    ipv6 = point.experiment.has_ipv6 and node not in point.graph.switches
    sysctls = (
        personality.ipv6_sysctls(point.graph.interfaces_of(node), router=router)
        if ipv6
        else personality.no_ipv6_sysctls()
    )
    stack, host = point.experiment.stack_of(node), node in point.graph.hosts
    off = personality.offloads_off(point.experiment, node, host=host)
    sysctls |= personality.node_sysctls(stack, most_bytes, router=router)
    if node not in point.graph.switches:
        sysctls |= point.experiment.sysctls_of(node, router=router)
    return [
        SetSysctls(node=node, sysctls=sysctls),
        *(
            SetOffloads(node=node, interface=interface.name, off=off)
            for interface in point.graph.interfaces_of(node)
        ),
        *(_ip_setup(point, node, ip) for ip in ((4, 6) if ipv6 else (4,))),
        *_forwarding(point.graph, node),
    ]


def _forwarding(graph: Graph, node: str) -> Iterable[Check]:
    """Set the port of a switch for each address, so that it floods and learns nothing."""
    if node not in graph.switches:
        return
    ports = [port.name for port in graph.interfaces_of(node)]
    by_mac = {
        each.mac: port.name for port in graph.interfaces_of(node) for each in graph.neighbours(port)
    }
    off = [Readback(path=(name, word), value=False) for name in ports for word in _SWITCH_OFF]
    found = [Readback(path=(mac, "ifname"), value=port) for mac, port in by_mac.items()]
    yield Check(
        node=node,
        run=("bridge", "-json", "-details", "-batch", "-"),
        stdin=(
            *(f"link set dev {name} {' off '.join(_SWITCH_OFF)} off" for name in ports),
            *(f"fdb replace {mac} dev {port} master static" for mac, port in by_mac.items()),
            "link show",
            "fdb show",
        ),
        readings=(
            Reading(file=f"stack/{node}-ports.json", expect=tuple(off)),
            Reading(file=f"stack/{node}-addresses.json", expect=tuple(found)),
        ),
    )


def _ip_setup(point: Point, node: str, ip: IpVersion) -> Check:
    """Set one node's addresses, neighbours and routes, with IPv4 also its links; read them back."""
    stack, graph = point.experiment.stack_of(node), point.graph
    lines, links, neighbours = _own_commands(graph, node, ip), list[Readback](), list[Readback]()
    for interface in graph.interfaces_of(node):
        if ip == 4:
            length = point.experiment.settings_of(node).txqueuelen
            of_link = None if node in graph.routers else point.mtu_of(interface)
            size = (of_link or point.experiment.stack.mtu_bytes, length)
            lines.append(personality.link_command(stack, interface, *size))
            links += personality.link_readback(stack, interface, *size)
        if interface.address:
            lines += personality.neighbour_commands(graph, interface, ip)
            neighbours += personality.neighbour_readback(graph, interface, ip)
    wanted = {"link": ("link show", links)} if ip == 4 else {}
    if neighbours:
        wanted["neighbour"] = ("neigh show", neighbours)
    if node in graph.hosts:
        routes = personality.host_routes(graph, graph.interfaces_of(node)[0], ip)
        accepts = _accepts_with(point, node)
        lines += personality.route_commands(stack, routes, ip, accepts)
        show = "route show default" if [*routes] == ["default"] else "route show"
        wanted["route"] = (show, personality.route_readback(stack, routes, ip, accepts))
    if node in graph.routers:
        lines += _routes_with_mtu(point, node, ip)
    version = ("-6",) if ip == 6 else ()
    return Check(
        node=node,
        run=("ip", *version, "-json", "-details", "-batch", "-"),
        stdin=(*lines, *(show for show, _ in wanted.values())),
        readings=tuple(
            Reading(file=f"stack/{node}-{name}{'6' * (ip == 6)}.json", expect=tuple(expect))
            for name, (_, expect) in wanted.items()
        ),
    )


def _routes_with_mtu(point: Point, node: str, ip: IpVersion) -> Iterable[str]:
    """Give a router's routes over an interface the MTU of its link.

    As the interface's own it would also refuse larger packets on their way in.
    """
    for interface in point.graph.interfaces_of(node):
        if (mtu := point.mtu_of(interface)) is None or interface.address is None:
            continue
        network = interface.address.network
        own = f"scope link src {interface.ip}" if ip == 4 else "metric 256"
        goal = network if ip == 4 else network_in_ipv6(network)
        yield f"route replace {goal} dev {interface.name} proto kernel {own} mtu lock {mtu}"
        for command in point.graph.commands[node]:
            if isinstance(command, Route) and command.gateway in network:
                yield f"{command.line(ip)} mtu lock {mtu}"


def _accepts_with(point: Point, node: str) -> str | None:
    """Return the control that a receiver of DCTCP or Prague needs with ECN; None for any other.

    The SYN of both has a mark of ECN itself, which no other receiver takes, and DCTCP's receiver
    echoes each packet's mark (RFC 8257). The control holds for every connection that the host
    accepts (decision 0062).
    """
    controls = {each.congestion_in_kernel for each in point.connections if each.to == node}
    marked = controls & {"dctcp", "prague"}
    return "dctcp" if point.experiment.stack_of(node).ecn and marked else None


def _own_commands(graph: Graph, node: str, ip: IpVersion) -> list[str]:
    """Build the commands that a node runs itself, except for a host's default route."""
    host = node in graph.hosts
    return [
        line
        for command in graph.commands[node]
        if not (host and isinstance(command, Route) and command.network == DEFAULT)
        if (line := command.line(ip))
    ]


def _qdisc_setup(point: Point, shapers: Sequence[Shaper], node: str) -> list[Step]:
    """Set one node's queues; read them back, and the kernel's counts before any traffic."""
    lines, wanted = [], []
    for shaper in shapers:
        name = shaper.interface.name
        if shaper.interface.node == node:
            words = " ".join((*shaper.sizes, *shaper.arguments, *shaper.home))
            lines.append(f"qdisc replace dev {name} root handle 1: {words}")
            lines += shaper.inner
            wanted += [Readback(path=(name, *path), value=v) for path, v in shaper.readback]
    experiment, shaped = point.experiment, {shaper.interface for shaper in shapers}
    given = experiment.qdisc_of(node)
    if given or node in point.graph.hosts:
        for interface in point.graph.interfaces_of(node):
            if interface not in shaped:
                stack = experiment.stack_of(node)
                own, expected = personality.own_qdisc(given, stack, interface)
                lines += own
                wanted += expected
    if not lines:
        return []
    return [
        Check(
            node=node,
            run=_in_json((*_tc(shapers), "-s", "-json", "-batch", "-"), lines),
            stdin=(*lines, "qdisc show"),
            readings=(Reading(file=f"qdisc/{node}-before.json", expect=tuple(wanted)),),
        )
    ]


def _in_json(run: tuple[str, ...], lines: Iterable[str]) -> tuple[str, ...]:
    """Cut the text out of the JSON that tc prints for hfsc: `"options":{default 1 }`."""
    if not any("hfsc" in line.split() for line in lines):
        return run
    cut = """sed 's/"options":{[^"}]*}/"options":{}/g'"""
    return ("sh", "-c", f"""found=$("$@") || exit; printf '%s\\n' "$found" | {cut}""", "-", *run)


def _tc(shapers: Sequence[Shaper]) -> tuple[str, ...]:
    """Build the command tc, with our plugins if a qdisc is ours or newer than tc."""
    if any(shaper.module or shaper.older_tc for shaper in shapers):
        return ("env", f"TC_LIB_DIR={GUEST_BIN}", "tc")
    return ("tc",)


def channel_restarts(shapers: Sequence[Shaper]) -> tuple[Command, ...]:
    """List the commands at the start that start DTM channels' clocks.

    The reason is in decision 0017.
    """
    return tuple(
        Command(
            node=shaper.interface.node,
            run=(
                *_tc(shapers),
                *f"qdisc change dev {shaper.interface.name} root".split(),
                *shaper.sizes,
                *shaper.arguments,
                "restart",
            ),
        )
        for shaper in shapers
        if shaper.is_channel
    )


def link_changes(changing: Iterable[tuple[int, Shaper]]) -> tuple[TimedCommand, ...]:
    """List the commands that change qdiscs during the traffic, by time."""
    states: dict[tuple[int, str], list[Shaper]] = defaultdict(list)
    for at_ns, shaper in changing:
        states[at_ns, shaper.interface.node].append(shaper)
    return tuple(
        TimedCommand(
            node=node,
            run=(*_tc(states[at_ns, node]), "-batch", "-"),
            stdin=tuple(map(_change, states[at_ns, node])),
            at_ns=at_ns,
            by_ns=at_ns + CHANGE_NS,
        )
        for at_ns, node in sorted(states)
    )


def _change(shaper: Shaper) -> str:
    """Write tc's line that gives a qdisc its new state; HTB's rate is that of its class."""
    if shaper.arguments[0] == "htb":
        return shaper.inner[0].replace("class add", "class change", 1)
    words = ("qdisc change dev", shaper.interface.name, shaper.place)
    return " ".join((*words, *shaper.sizes, *shaper.arguments))


def route_changes(point: Point) -> tuple[TimedCommand, ...]:
    """List the commands that change routers' routes during the traffic, by time."""
    found = [
        TimedCommand(
            node=node,
            run=("ip", "route", "replace", goal, "via", gateway, "dev", out.name, *mtu),
            at_ns=START_NS + at_ns,
            by_ns=START_NS + at_ns + CHANGE_NS,
        )
        for node, router in point.experiment.routers.items()
        for at_ns, gates in point.graph.route_changes(
            node, router.routes, ipv6=point.experiment.has_ipv6
        )
        for goal, (out, gateway) in gates.items()
        for bytes_ in (point.mtu_of(out),)
        for mtu in (("mtu", "lock", str(bytes_)) if bytes_ else (),)
    ]
    return tuple(sorted(found, key=lambda each: each.at_ns))


def channel_recorders(shapers: Sequence[Shaper]) -> tuple[Program, ...]:
    """List the programs that record reallocations, one per DTM node."""
    nodes = dict.fromkeys(s.interface.node for s in shapers if s.is_channel)
    return tuple(
        Program(
            name=f"dtm-events-{node}",
            node=node,
            stdout=f"qdisc/{node}-reallocations.csv",
            run=(f"{GUEST_BIN}/dtm", "events"),
            ready="listening on",
        )
        for node in nodes
    )


def host_counters(point: Point) -> tuple[Copy, ...]:
    """Keep each host's counters of TCP after the traffic: what it rejected, and why."""
    return tuple(
        Copy(node=host, source="/proc/net/netstat", file=netstat_file(host))
        for host in point.graph.hosts
    )


def queue_statistics(shapers: Sequence[Shaper]) -> tuple[Save, ...]:
    """Save the kernel's counts of all queues after the traffic."""
    nodes = dict.fromkeys(s.interface.node for s in shapers)
    lines = [line for shaper in shapers for line in shaper.inner]
    show = _in_json((*_tc(shapers), "-s", "-j", "qdisc", "show"), lines)
    return tuple(Save(node=n, run=show, file=f"qdisc/{n}-after.json") for n in nodes)
