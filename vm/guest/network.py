"""Building a plan's topology with Mininet, in as few processes as that takes.

Mininet runs a shell in each node and a command for each setting. Under user-mode Linux that takes
0.2 s a node. Nodes here have no shell: what Mininet, or a topology's own node, would run is
collected, and goes first in the node's first `ip -batch` of the plan. Only the mode "shell" has
Mininet's shells.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import shlex
import subprocess
import sys
import types
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fork_server import ForkServer

# Mininet compares Open vSwitch's version with distutils. Python 3.12 has no distutils, and that of
# setuptools takes 0.2 s to load. A stand-in is enough, because there are no switches here.
sys.modules["distutils"] = sys.modules["distutils.version"] = types.ModuleType("distutils.version")
sys.modules["distutils.version"].StrictVersion = str  # type: ignore[attr-defined]

from mininet import util  # noqa: E402 - after the stand-in above
from mininet.link import Intf  # noqa: E402
from mininet.log import setLogLevel  # noqa: E402
from mininet.net import Mininet  # noqa: E402
from mininet.node import Node  # noqa: E402

del sys.modules["distutils"], sys.modules["distutils.version"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PROJECT = Path("/mnt/twoway")
NETNS = Path("/run/netns")
# mnexec closes every possible descriptor, a system call each (docs/decisions/0005).
MOST_DESCRIPTORS = 1024
SPARE_DESCRIPTORS = 100
IPV6_SETTINGS = Path("/proc/sys/net/ipv6/conf")
# Of each interface, in this order: nobody is asked for an address or a router, there is no address
# but those that are given, and then IPv6 is there.
IPV6_IN_SILENCE = {
    "accept_dad": 0,
    "accept_ra": 0,
    "router_solicitations": 0,
    "addr_gen_mode": 1,
    "disable_ipv6": 0,
}
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000

libc = ctypes.CDLL(None, use_errno=True)
# Lines that wait for a node's first batch of ip.
waiting: dict[str, list[str]] = {}


class GuestError(Exception):
    """A failure, with a sentence for the host to show."""


@contextmanager
def namespace(node: str | None) -> Iterator[None]:
    """Enter a node's network namespace for a `with`; for None, none."""
    if node is None:
        yield
        return
    _call("setns", _namespace_of(node), CLONE_NEWNET)
    try:
        yield
    finally:
        _call("setns", _namespace_of("init"), CLONE_NEWNET)


@cache
def _namespace_of(node: str) -> int:
    """Open a node's namespace once, for as long as this program runs."""
    return os.open(NETNS / node, os.O_RDONLY)


def write_file(path: Path | str, text: str) -> None:
    """Write a file in three system calls; Path.write_text, with its buffers, makes eleven."""
    content = text.encode()
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        if os.write(opened, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(opened)


def _call(name: str, *arguments: Any) -> None:
    if getattr(libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def run_program(node: str | None, argv: list[str], lines: Iterable[str] = ()) -> str:
    """Run a program that must end with status 0, and return its output.

    The lines that wait for a node go first in its first `ip -batch`.
    """
    if node and argv[0] == "ip" and "-batch" in argv:
        lines = [*waiting.pop(node, []), *lines]
    batch = [*lines]
    text = "".join(line + "\n" for line in batch)
    if argv[-2:] == ["-batch", "-"]:
        code, out, err = _fork_server(*argv).run(NETNS / (node or "init"), text)
    else:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    if code != 0:
        said = " ".join((err or out).split())
        raise GuestError(f"{node or 'guest'}: {_complaint(argv, batch, code, said)}")
    return out


def _complaint(argv: list[str], batch: list[str], code: int, said: str) -> str:
    """Build a sentence of a command that failed, in the program's own words.

    Of a batch the line that failed is the command: ip and tc end with "Command failed -:LINE".
    """
    words, mark, number = said.rpartition("Command failed -:")
    if not (mark and number.isdigit() and 0 < int(number) <= len(batch)):
        return f"{' '.join(argv)}: {said or f'exit status {code}'}"
    line = batch[int(number) - 1]
    return f"{' '.join(argv)}: line {number}, {line!r}: {words.strip() or 'refused without a word'}"


@cache
def _fork_server(*argv: str) -> ForkServer:
    return ForkServer(argv)


class Network(Mininet):  # type: ignore[misc]
    """A Mininet that reports progress: building a node may take 0.2 s."""

    report: Callable[[], None]

    def addHost(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - Mininet's name
        """Add a host, as Mininet does."""
        self.report()
        return super().addHost(*args, **kwargs)

    def addLink(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - Mininet's name
        """Add a link, as Mininet does."""
        self.report()
        return super().addLink(*args, **kwargs)


class Share(Network):
    """The nodes that this host plays.

    Their namespaces and interfaces exist already.
    """

    def addHost(self, name: str, **params: Any) -> Any:  # noqa: N802 - Mininet's name
        """Add a node if this host plays it."""
        if (NETNS / name).exists():
            with namespace(name):
                super().addHost(name, inNamespace=False, **params)

    def addLink(self, *nodes: Any, **params: Any) -> None:  # noqa: N802 - Mininet's name
        """Configure those ends of a link whose nodes this host plays."""
        ends = dict(zip(("node1", "node2"), nodes, strict=False)) | params
        for end in "12":
            node, port = ends[f"node{end}"], ends[f"port{end}"]
            if node in self:
                settings = ends.get(f"params{end}") or {}
                Intf(f"{node}-eth{port}", node=self[node], port=port, **settings)


class Batches:
    """What nodes without a shell are to run, collected while Mininet builds them."""

    def __init__(self) -> None:
        self.links: list[str] = []

    def add_node(self, node: Any) -> None:
        """Make a node's namespace, in place of its shell."""
        (NETNS / node.name).touch()
        _call("unshare", CLONE_NEWNET)
        target = str(NETNS / node.name).encode()
        _call("mount", b"/proc/self/ns/net", target, b"none", MS_BIND, None)
        with (NETNS / "init").open() as home:
            _call("setns", home.fileno(), CLONE_NEWNET)
        node.pid = node.name  # as ip takes it: "netns NAME"
        waiting[node.name] = []

    def add_command(self, node: str, text: str) -> str:
        """Collect a node's commands, or run what is not for ip; what they say is not known."""
        for command in text.split(";"):
            self._collect(node, shlex.split(command))
        return ""

    def _collect(self, node: str, words: list[str]) -> None:
        lines = waiting[node]
        match words:
            case ["ip", "link", "add", "name", name, *rest]:
                self.links.append(f"link add name {name} netns {node} {' '.join(rest)}")
            case ["ip", "route", "del", "default"]:  # of a namespace that has just been made
                pass
            case ["ip", *rest]:
                lines.append(" ".join(rest))
            case ["ifconfig", name, "up"]:
                lines.append(f"link set {name} up")
            case ["ifconfig", name, address, "up"]:
                lines += [f"address add {address} brd + dev {name}", f"link set {name} up"]
            case ["sysctl", setting] if "=" in setting:
                name, _, value = setting.partition("=")
                with namespace(node):
                    write_file(Path("/proc/sys", name.replace(".", "/")), value)
            case _:
                self.make_links()
                for each in waiting:
                    configure(each)
                with namespace(node):
                    run_program(node, words)

    def make_links(self) -> None:
        """Make the links that have been collected."""
        if self.links:
            run_program(None, ["ip", "-batch", "-"], self.links)
            self.links = []


def configure(node: str) -> None:
    """Run the lines that wait for a node's batch."""
    if waiting.get(node):
        with namespace(node):
            run_program(node, ["ip", "-batch", "-"])
        waiting[node] = []


def build_network(plan: dict[str, Any], report: Callable[[], None]) -> Mininet:
    """Build the plan's topology with Mininet; name its namespaces.

    The namespaces get names in /run/netns, as from `ip netns`.

    Args:
        plan: the plan.
        report: reports progress to the host.
    """
    topology = plan["topology"]
    path = PROJECT / "topologies" / f"{topology['name']}.py"
    module = types.ModuleType(topology["name"])
    code = compile(
        topology["source"] or path.read_text("utf-8"), path.name, "exec", dont_inherit=True
    )
    exec(code, vars(module))  # noqa: S102 - a topology is a program, here in its sandbox
    topo = module.topos[topology["name"]](**topology["parameters"])
    setLogLevel("output")
    # An instrument in the kernel is a descriptor, and so is a node's namespace.
    kinds = ("recorders", "captures", "sinks", "sources", "timed_sources")
    instruments = sum(len(plan[kind]) for kind in kinds)
    nodes = len(topo.nodes())
    descriptors = max(MOST_DESCRIPTORS, instruments + nodes + SPARE_DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    Mininet.inited = True  # otherwise Mininet raises that limit and overwrites the plan's sysctls
    util.numCores.ncores = 1  # otherwise Mininet asks grep
    (NETNS / "init").symlink_to("/proc/1/ns/net")
    Network.report = staticmethod(report)
    if plan["share"]:
        net = Share(topo=topo, controller=None, switch=None)
    elif plan["mode"] == "shell":
        net = Network(topo=topo, controller=None, switch=None)
        for node in net.hosts:
            (NETNS / node.name).symlink_to(f"/proc/{node.pid}/ns/net")
    else:
        net = _build_without_shells(topo)
    for node in net.hosts:
        if plan["ipv6"]:
            configure(node.name)
        with namespace(node.name):
            if plan["ipv6"]:
                _add_ipv6(node.name)
            else:
                _disable_ipv6()
    return net


def _build_without_shells(topo: Any) -> Mininet:
    batches = Batches()
    Node.isSetup = True  # otherwise Mininet asks two shells for programs that it does not run here

    def start_shell(node: Any, _options: Any = None) -> None:
        batches.add_node(node)

    def command(node: Any, *words: Any, **_settings: Any) -> str:
        return batches.add_command(node.name, " ".join(map(str, words)))

    Node.startShell, Node.cmd = start_shell, command
    net = Network(topo=topo, controller=None, switch=None)
    batches.make_links()
    return net


def _disable_ipv6() -> None:
    """Switch IPv6 off here, as our own kernels begin: it sends packets by itself."""
    for which in ("all", "default"):
        path = IPV6_SETTINGS / which / "disable_ipv6"
        if path.exists():
            write_file(path, "1")


def _add_ipv6(node: str) -> None:
    """Give a node, here, an IPv6 address and route for each of IPv4's.

    An address is fd00:: and IPv4's 32 bits, a prefix 96 bits longer.
    """
    show = ["ip", "-4", "-json"]
    addresses = json.loads(run_program(node, [*show, "address", "show", "scope", "global"]))
    routes = json.loads(run_program(node, [*show, "route", "show"]))
    _disable_ipv6()
    for name, value in IPV6_IN_SILENCE.items():
        for path in IPV6_SETTINGS.glob(f"*/{name}"):
            write_file(path, str(value))
    lines = [
        f"address add {in_ipv6(each['local'])}/{each['prefixlen'] + 96} dev {interface['ifname']}"
        for interface in addresses
        for each in interface["addr_info"]
    ]
    lines += [
        f"route add {in_ipv6(route['dst'])} via {in_ipv6(route['gateway'])}"
        for route in routes
        if "gateway" in route
    ]
    run_program(node, ["ip", "-6", "-batch", "-"], lines)


def in_ipv6(destination: str) -> str:
    """Return the IPv6 address, or prefix, of one of IPv4, as twoway/spec/topology.py has it."""
    address, _, length = destination.partition("/")
    return (
        destination
        if address == "default"
        else f"fd00::{address}" + (f"/{int(length) + 96}" if length else "")
    )
