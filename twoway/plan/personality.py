"""The TCP stack's settings, which decide when a host sends.

The guest reads every setting back before any traffic; a mismatch fails the run.
"""

from collections.abc import Iterable, Mapping, Sequence

from twoway.contract.network import IpVersion
from twoway.contract.plan import Readback
from twoway.description.addresses import address_in, network_in_ipv6
from twoway.description.experiment import Experiment
from twoway.description.graph import Graph
from twoway.description.mininet_commands import DEFAULT, Route
from twoway.description.stack import ECN_MODES, Stack
from twoway.links.interface import Interface
from twoway.links.tc_words import TcWords

# The settings of IPv6 of each interface, in this order: no requests for an address or a router, no
# addresses but those of the plan, and then IPv6 on.
_IPV6_IN_SILENCE = {
    "accept_dad": 0,
    "accept_ra": 0,
    "router_solicitations": 0,
    "addr_gen_mode": 1,
    "disable_ipv6": 0,
}
# The sysctls that fields of a stack set, with the fields.
FIELDS_OF = {
    "net.ipv4.tcp_timestamps": "timestamps",
    "net.ipv4.tcp_sack": "sack",
    "net.ipv4.tcp_dsack": "sack",
    "net.ipv4.tcp_early_retrans": "tail_loss_probe",
    "net.ipv4.tcp_recovery": "rack",
    "net.ipv4.tcp_frto": "spurious_timeout_detection",
    "net.ipv4.tcp_ecn": "ecn",
    "net.ipv4.tcp_pacing_ca_ratio": "pacing",
    "net.ipv4.tcp_pacing_ss_ratio": "pacing",
}
# One ACK for each segment needs these at 0, quickack on the route, and no GRO.
EACH_SEGMENT = {"net.ipv4.tcp_backlog_ack_defer": 0, "net.ipv4.tcp_comp_sack_nr": 0}
_PACING = ("net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_pacing_ss_ratio")
# Offloads that merge, split or defer packets; off on every interface, unless the file has them on.
_OFFLOADS = ("tso", "gso", "gro", "tx", "rx", "sg")


def root_sysctls(most_bytes: int | None) -> dict[str, int | str]:
    """List the sysctls that exist once per kernel: limits of memory.

    Args:
        most_bytes: the limit of each buffer; None: the kernel's.
    """
    limits = ("net.core.rmem_max", "net.core.wmem_max") if most_bytes else ()
    return {
        **dict.fromkeys(limits, most_bytes or 0),
        # No memory pressure, which would shrink windows: the guest has memory for all buffers.
        "net.ipv4.tcp_mem": "4194304 4194304 4194304",
    }


def ipv6_sysctls(interfaces: Sequence[Interface], *, router: bool) -> dict[str, int | str]:
    """List the sysctls that give a node IPv6 without packets of its own."""
    names = ("all", "default", "lo", *(interface.name for interface in interfaces))
    return {
        **{
            f"net.ipv6.conf.{name}.{setting}": value
            for setting, value in _IPV6_IN_SILENCE.items()
            for name in names
        },
        "net.ipv6.conf.all.forwarding": int(router),
    }


def no_ipv6_sysctls() -> dict[str, int | str]:
    """List the sysctls that switch off a node's IPv6, which would send packets by itself."""
    return {f"net.ipv6.conf.{which}.disable_ipv6": 1 for which in ("all", "default")}


def node_sysctls(stack: Stack, most_bytes: int | None, *, router: bool) -> dict[str, int | str]:
    """List the sysctls of TCP and of IPv4 of one node's network namespace.

    Those of Linux's own stack are the sysctls of fields that override it, besides forwarding.

    Args:
        stack: the node's stack.
        most_bytes: the limit of each buffer; None: the kernel's.
        router: True if the node is a router.
    """
    if stack.is_linux:
        own = field_sysctls(Stack(preset="linux"))
        others = {n: value for n, value in field_sysctls(stack).items() if own.get(n) != value}
        acks = EACH_SEGMENT if stack.acks == "every-segment" else {}
        return {**({"net.ipv4.ip_forward": 1} if router else {}), **others, **acks}
    fields = field_sysctls(stack)
    pacing = {name: fields.pop(name) for name in _PACING if name in fields}
    return {
        "net.ipv4.ip_forward": int(router),
        "net.ipv4.conf.all.rp_filter": 0,
        "net.ipv4.conf.default.rp_filter": 0,
        "net.ipv4.conf.all.send_redirects": 0,
        **fields,
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_autocorking": 0,
        "net.ipv4.tcp_slow_start_after_idle": 0,
        **EACH_SEGMENT,
        "net.ipv4.tcp_mtu_probing": 0,
        "net.ipv4.tcp_rmem": f"4096 131072 {most_bytes}",
        "net.ipv4.tcp_wmem": f"4096 16384 {most_bytes}",
        **pacing,
    }


def field_sysctls(stack: Stack) -> dict[str, int | str]:
    """List the sysctls that fields of a stack set."""
    values = {
        "timestamps": int(stack.timestamps),
        "sack": int(stack.sack),
        "tail_loss_probe": 3 if stack.tail_loss_probe else 0,
        "rack": int(stack.rack),
        "spurious_timeout_detection": 2 if stack.spurious_timeout_detection else 0,
        "ecn": None if stack.ecn is None else ECN_MODES[stack.ecn],
        # A window over exactly one round trip: Linux's default paces it over 83 % of a round trip,
        # or 50 % in slow start.
        "pacing": 100 if stack.pacing else None,
    }
    found = {name: values[field] for name, field in FIELDS_OF.items()}
    return {name: value for name, value in found.items() if value is not None}


def own_qdisc(
    given: TcWords | None, stack: Stack, interface: Interface
) -> tuple[list[str], list[Readback]]:
    """List the tc batch lines of a node's own qdisc, and what to read back.

    Args:
        given: the file's; None: the host's default.
        stack: the host's stack.
        interface: the interface.
    """
    # The kernel's default of an interface with one queue is pfifo_fast.
    usual = TcWords(tc="pfifo_fast" if stack.is_linux else "pfifo limit 10000")
    qdisc, dev = given or usual, interface.name
    expected = [Readback(path=(dev, "kind"), value=qdisc.kind)]
    if not (given or stack.is_linux):
        expected.append(Readback(path=(dev, "options", "limit"), value=10000))
    return [f"qdisc replace dev {dev} root handle 1: {qdisc.first}", *qdisc.tree(dev)], expected


def link_command(stack: Stack, interface: Interface, mtu_bytes: int, txqueuelen: int | None) -> str:
    """Build an interface's ip(8) batch line: MTU, GSO.

    gso_max_segs 1: no packet of several segments (decision 0023).
    """
    size = f"mtu {mtu_bytes} gso_max_segs {stack.gso_max_segs}"
    if txqueuelen is not None:
        size += f" txqueuelen {txqueuelen}"
    return f"link set dev {interface.name} {size}"


def offloads_off(experiment: Experiment, node: str, *, host: bool) -> tuple[str, ...]:
    """List the offloads of a node's interfaces that are off.

    GRO of veth is one of receiving alone; all others belong to packets of many segments.
    """
    own = experiment.settings_of(node)
    gso = own.gso if host else experiment.has_gso
    return tuple(each for each in _OFFLOADS if not (own.gro if each == "gro" else gso))


def neighbour_commands(graph: Graph, interface: Interface, ip: IpVersion) -> list[str]:
    """Build the ip(8) batch lines that replace ARP, or neighbour discovery, at one interface."""
    return [
        f"neigh replace {address_in(each.ip, ip)} lladdr {each.mac} dev {interface.name} "
        "nud permanent"
        for each in graph.neighbours(interface)
    ]


def neighbour_readback(graph: Graph, interface: Interface, ip: IpVersion) -> list[Readback]:
    """List what `ip -j neigh show` must print for an interface's neighbours."""
    found = {str(address_in(each.ip, ip)): each.mac for each in graph.neighbours(interface)}
    return [
        expected
        for address, mac in found.items()
        for expected in (
            Readback(path=(address, "lladdr"), value=mac),
            Readback(path=(address, "state"), value=["PERMANENT"]),
        )
    ]


def route_commands(
    stack: Stack, routes: Mapping[str, str], ip: IpVersion, control: str | None
) -> list[str]:
    """Build the ip(8) batch lines of a host's routes, with TCP's metrics.

    Args:
        stack: the experiment's stack.
        routes: where each destination is.
        ip: the version of IP.
        control: the congestion control of connections that the host accepts; None: the kernel's.
    """
    metrics = "".join(f" {name} {value}" for name, value in _route_metrics(stack, ip).items())
    accepts = f" congctl {control}" if control else ""
    return [f"route replace {goal} {where}{metrics}{accepts}" for goal, where in routes.items()]


def _route_metrics(stack: Stack, ip: IpVersion) -> dict[str, str]:
    """List TCP's metrics of a route, in ip's words; under `linux` only what overrides it."""
    found = {"initcwnd": f"{stack.initial_window_packets}"}
    if stack.acks == "every-segment":
        found["quickack"] = "1"
    found["rto_min"] = f"{stack.rto_min_ms}ms"
    if stack.receive_window_packets:
        found["window"] = f"{stack.receive_window_bytes(ip)}"
    own = _route_metrics(Stack(acks="delayed"), ip) if stack.is_linux else {}
    return {name: value for name, value in found.items() if own.get(name) != value}


def host_routes(graph: Graph, interface: Interface, ip: IpVersion) -> dict[str, str]:
    """List a host's routes by destination: the default, and over a switch the interface's network.

    Over a switch the gateway of the default route is the topology's, if there is one.
    """
    device = f"dev {interface.name}"
    if interface.peer_node not in graph.switches:
        return {"default": f"via {address_in(graph.peer(interface).ip, ip)} {device}"}
    assert interface.address is not None
    network = interface.address.network
    found = (
        {str(network): f"{device} proto kernel scope link src {interface.ip}"}
        if ip == 4
        else {str(network_in_ipv6(network)): f"{device} proto kernel metric 256"}
    )
    for route in graph.commands[interface.node]:
        if isinstance(route, Route) and route.network == DEFAULT:
            found["default"] = f"via {address_in(route.gateway, ip)}"
    return found


def link_readback(
    stack: Stack, interface: Interface, mtu_bytes: int, txqueuelen: int | None
) -> list[Readback]:
    """List what `ip -j -d link show` must print for one interface."""
    length = [Readback(path=(interface.name, "txqlen"), value=txqueuelen)]
    return [
        *(length if txqueuelen is not None else ()),
        Readback(path=(interface.name, "mtu"), value=mtu_bytes),
        Readback(path=(interface.name, "address"), value=interface.mac),
        Readback(path=(interface.name, "gso_max_segs"), value=stack.gso_max_segs),
    ]


def route_readback(
    stack: Stack, goals: Iterable[str], ip: IpVersion, control: str | None
) -> list[Readback]:
    """List what `ip -j route show` must print on a host; arguments as of route_commands()."""
    found = _route_metrics(stack, ip)
    metrics: dict[str, int | str] = {
        name: int(found[name].removesuffix("ms"))
        for name in ("initcwnd", "rto_min", "quickack", "window")
        if name in found
    }
    if control:
        metrics["congestion"] = control
    return [
        Readback(path=(goal, "metrics", "0", name), value=value)
        for goal in goals
        for name, value in metrics.items()
    ]
