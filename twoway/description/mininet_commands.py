"""Read and check the commands by which Mininet makes a topology's network.

The sandbox records these commands (describe_topology.py) and may write anything. Only the forms
listed here are accepted, and only numbers, addresses and known names are taken from them: no text
from the sandbox becomes part of a command.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from twoway.contract.network import IpVersion
from twoway.description.addresses import address_in, network_in_ipv6
from twoway.errors import SpecError

LOOPBACK = "lo"
DEFAULT = IPv4Network("0.0.0.0/0")
_ROUTE_FORM = "a route is `ip route add NETWORK via GATEWAY`; IPv6 gets the same"
_FORMS = (
    "no command of a network here: a node runs `ip link set INTERFACE up`, `ip address add "
    "ADDRESS/LENGTH dev INTERFACE` and `ip route add NETWORK via GATEWAY`, a switch what Mininet's "
    "LinuxBridge does"
)
_NO_LINK = "each link must be made once, in the order of the topology"
_VETH = re.compile(
    r"ip link add name (?P<one>\S+)(?: address \S+)? "
    r"type veth peer name (?P<other>\S+)(?: address \S+)? netns (?P<node>\S+)"
)
# State of a namespace that was just made, and settings that the plan makes by the node's class.
_WITHOUT_EFFECT = re.compile(
    r"ip route del default|sysctl (-w )?net\.ipv4\.ip_forward=[01]"
    r"|ifconfig \S+ down|brctl delbr \S+"
)


@dataclass(frozen=True)
class Up:
    """Switches an interface on."""

    interface: str

    def line(self, ip: IpVersion) -> str:
        """Build the line of `ip -batch`; one serves both versions of IP."""
        return f"link set {self.interface} up" if ip == 4 else ""


@dataclass(frozen=True)
class Address:
    """Gives an interface an address."""

    interface: str
    address: IPv4Interface

    def line(self, ip: IpVersion) -> str:
        """Build the line of `ip -batch`."""
        length = self.address.network.prefixlen
        if ip == 4:
            return f"address add {self.address.ip}/{length} brd + dev {self.interface}"
        return f"address add {address_in(self.address.ip, ip)}/{96 + length} dev {self.interface}"


@dataclass(frozen=True)
class Route:
    """Gives a node a route."""

    network: IPv4Network
    gateway: IPv4Address

    def line(self, ip: IpVersion) -> str:
        """Build the line of `ip -batch`."""
        network = self.network if ip == 4 else network_in_ipv6(self.network)
        to = network if network.prefixlen else "default"
        return f"route replace {to} via {address_in(self.gateway, ip)}"


@dataclass(frozen=True)
class Bridge:
    """Makes a switch's bridge, which has the switch's name."""

    interface: str

    def line(self, ip: IpVersion) -> str:
        """Build the line of `ip -batch`; the plan sets the table of addresses."""
        made = f"link add {self.interface} type bridge stp_state 0 mcast_snooping 0"
        return made if ip == 4 else ""


@dataclass(frozen=True)
class Port:
    """Makes an interface of a switch a port of its bridge."""

    bridge: str
    interface: str

    def line(self, ip: IpVersion) -> str:
        """Build the line of `ip -batch`."""
        return f"link set {self.interface} master {self.bridge}" if ip == 4 else ""


NodeCommand = Up | Address | Route | Bridge | Port


def _network(text: str) -> IPv4Network:
    return DEFAULT if text == "default" else IPv4Network(text)


_READERS: tuple[tuple[str, Callable[[re.Match[str]], NodeCommand]], ...] = (
    (r"ifconfig (\S+) up", lambda m: Up(m[1])),
    (r"ip link set (?:dev )?(\S+) up", lambda m: Up(m[1])),
    (r"brctl addbr (\S+)", lambda m: Bridge(m[1])),
    (r"brctl addif (\S+) (\S+)", lambda m: Port(m[1], m[2])),
    (r"ifconfig (\S+) (\S+/\d+) up", lambda m: Address(m[1], IPv4Interface(m[2]))),
    (
        r"ip (?:-4 )?addr(?:ess)? add (\S+/\d+) (?:brd \+ )?dev (\S+)",
        lambda m: Address(m[2], IPv4Interface(m[1])),
    ),
    (
        r"ip (?:-4 )?route (?:add|replace) (\S+) via (\S+)(?: dev \S+)?",
        lambda m: Route(_network(m[1]), IPv4Address(m[2])),
    ),
)


def read_commands(
    path: object,
    recorded: Iterable[tuple[str, str]],
    interfaces: Mapping[str, Sequence[str]],
    links: Sequence[tuple[str, str]],
) -> dict[str, tuple[NodeCommand, ...]]:
    """Read the commands of each node from the record of a topology.

    Args:
        path: the topology's file, for errors.
        recorded: nodes and their commands, in order.
        interfaces: names of interfaces by node.
        links: names of both ends of each link, in order.

    Returns: commands by node, each once.
    Raises: SpecError naming commands that do not make a network.
    """
    found: dict[str, dict[NodeCommand, None]] = {node: {} for node in interfaces}
    made, problems = list[tuple[str, str]](), list[str]()
    for node, command in recorded:
        try:
            if veth := _VETH.fullmatch(command):
                made.append(_link(node, veth, interfaces))
            elif not _WITHOUT_EFFECT.fullmatch(command):
                found[node][_read(node, command, interfaces[node])] = None
        except ValueError as error:
            problems.append(f"{path}: {node}: {command:.80}: {error}")
    if not problems and made != list(links):
        problems.append(f"{path}: {_NO_LINK}")
    if problems:
        raise SpecError(problems)
    return {node: tuple(commands) for node, commands in found.items()}


def _link(
    node: str, veth: re.Match[str], interfaces: Mapping[str, Sequence[str]]
) -> tuple[str, str]:
    """Read the command that makes a link; return its ends.

    Raises: ValueError if an end is not an interface of its node.
    """
    ends = ((node, veth["one"]), (veth["node"], veth["other"]))
    if any(interface not in interfaces.get(its, ()) for its, interface in ends):
        raise ValueError(_NO_LINK)
    return veth["one"], veth["other"]


def _read(node: str, command: str, interfaces: Sequence[str]) -> NodeCommand:
    """Read one command of a node.

    Raises: ValueError with the reason for refusing it.
    """
    for form, reader in _READERS:
        if words := re.fullmatch(form, command):
            read = reader(words)
            if not isinstance(read, Route) and read.interface not in (*interfaces, LOOPBACK):
                raise ValueError(f"no interface {read.interface}; it has {', '.join(interfaces)}")
            if isinstance(read, Port) and read.bridge != node:
                raise ValueError(f"a switch's bridge has its name, {node}")
            return read
    raise ValueError(_ROUTE_FORM if "route" in command.split()[:3] else _FORMS)
