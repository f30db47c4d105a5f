"""A Mininet topology as a plain graph, without Mininet's types.

The file `topologies/<name>.py` defines a `Topo` with the attributes `queues` and `delays`. For each
direction of a profile, these list (node, towards) pairs: the interfaces with the rate and queue,
and those with the delay. The file is untrusted Python, and runs in the sandbox.
"""

import contextlib
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache as memoised
from importlib.metadata import version
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from twoway.confined_process import run_confined
from twoway.confinement import confined_command, refusal
from twoway.contract.model import demand, text
from twoway.contract.routing import ITSELF, Routes
from twoway.contract.writing import write_json
from twoway.description.graph import Graph
from twoway.description.mininet_commands import (
    DEFAULT,
    Address,
    NodeCommand,
    Route,
    Up,
    read_commands,
)
from twoway.description.switching import Segments, joining_problems
from twoway.errors import SpecError
from twoway.links.interface import Interface
from twoway.messages import suggest
from twoway.paths import cache, shown_path

# The program that loads a topology: its path outside of the sandbox, and inside.
DESCRIBE, _DESCRIBE = Path(__file__).with_name("describe_topology.py"), "/mnt/describe.py"
# Loading may take some seconds of an emulated processor, and write 4 MiB. Together the processes
# may have 6 x (512 + 64 x 4) MiB = 4.5 GiB: address space, which includes shared memory, and files
# in memory. OpenBLAS, which numpy loads, starts a thread for each processor unless a variable
# forbids it.
_LIMITS = ("prlimit", "--cpu=10", f"--fsize={1 << 22}", f"--as={1 << 29}", "--nofile=64")
_SETTINGS = ("env", "OPENBLAS_NUM_THREADS=1")
_PROCESSES = 8  # two of them are the sandbox's own
_LONGEST_S = 60
_MOST_NODES = 1000
_MOST_COMMANDS = 50_000
# An interface is called NODE-eth0 and has at most 15 characters.
NodeName = Annotated[
    str, text(r"^[A-Za-z][A-Za-z0-9]{0,8}$", "at most 9 letters and digits, a letter first")
]
Direction = Annotated[
    str, text(r"^[a-z][a-z0-9_-]{0,31}$", "at most 32 of a-z, digits, _ and -, a letter first")
]
Text = Annotated[str, Field(max_length=1000)]
Places = dict[Direction, tuple[tuple[NodeName, NodeName], ...]]


def node_routes(
    path: object,
    commands: Mapping[str, Iterable[NodeCommand]],
    hosts: Collection[str],
    routers: Collection[str],
    interfaces: Sequence[Interface],
) -> dict[str, Routes]:
    """List the routes of all nodes.

    The plan sets a host's default route: through the first link (twoway/plan/personality.py),
    unless that leads to a switch. A switch has a route to each address, and one to its router.

    Args:
        path: the topology's file, for errors.
        commands: the commands of each node.
        hosts: the nodes that forward nothing.
        routers: the nodes that forward packets. All others are switches.
        interfaces: both ends of all links.

    Raises: SpecError naming routes that lead to no neighbour.
    """
    switches = commands.keys() - {*hosts, *routers}
    segments = Segments(interfaces, switches)
    ends: dict[str, list[Interface]] = {node: [] for node in commands}
    for interface in interfaces:
        ends[interface.node].append(interface)
    found, problems = {}, []
    for node, mine in ends.items():
        reached = [(each, i.name) for i in mine for each in segments.reachable(i)]
        neighbours = {each.ip: name for each, name in reached}
        goals = {i.address.network: i.name for i in mine if i.address}
        goals |= {IPv4Network(i.address.ip): ITSELF for i in mine if i.address}
        if node in switches:
            goals = {IPv4Network(address): name for address, name in neighbours.items()}
            gates = [name for each, name in reached if each.node in routers]
            goals |= dict.fromkeys((DEFAULT,), gates[0]) if gates else {}
        for route in commands[node]:
            if isinstance(route, Route):
                try:
                    goals[route.network] = _leaves(route.gateway, neighbours)
                except ValueError as error:
                    problems.append(f"{path}: {node}: {route.line(4)}: {error}")
        if node in hosts and mine[0].peer_node not in switches:
            goals[DEFAULT] = mine[0].name
        found[node] = Routes({str(network): name for network, name in goals.items()})
    if problems:
        raise SpecError(problems)
    return found


def _leaves(gateway: IPv4Address, neighbours: Mapping[IPv4Address, str]) -> str:
    """Find the interface that leads to a gateway.

    Raises: ValueError if none does.
    """
    if gateway not in neighbours:
        known = ", ".join(map(str, neighbours))
        raise ValueError(f"no neighbour has {gateway}; they have {known}")
    return neighbours[gateway]


class _End(BaseModel):
    """A link's end, as the sandbox describes it."""

    node: NodeName
    interface: Text
    address: IPv4Interface | None


class _Described(BaseModel):
    """A topology, as the sandbox describes it."""

    hosts: tuple[NodeName, ...] = Field(max_length=_MOST_NODES)
    routers: tuple[NodeName, ...] = Field(max_length=_MOST_NODES)
    switches: tuple[NodeName, ...] = Field(max_length=_MOST_NODES)
    kinds: tuple[Text, ...]
    unused: tuple[Text, ...]
    links: tuple[tuple[_End, _End], ...] = Field(max_length=_MOST_NODES)
    queues: Places
    delays: Places
    commands: tuple[tuple[NodeName, Text], ...] = Field(max_length=_MOST_COMMANDS)


def load_topology(path: Path, parameters: Mapping[str, int]) -> Graph:
    """Load a topology file, in the sandbox, and read its graph.

    Args:
        path: the file; its stem is the topology's key in the file's `topos`.
        parameters: passed to the topology's build().

    Raises: SpecError if the file is missing, fails or does not end, or lacks `queues`, `delays` or
        addresses.
    """
    if not path.is_file():
        known = sorted(p.stem for p in path.parent.glob("*.py"))
        raise SpecError(
            [f"{shown_path(path)}: no such topology{suggest(path.stem, known)}"],
            f"existing topologies: {', '.join(known)}",
        )
    return _load(path, path.read_bytes(), json.dumps(dict(parameters)))


@memoised
def _load(path: Path, content: bytes, parameters: str) -> Graph:
    """Load a topology, once for the same content and parameters."""
    decisive = (
        path.stem,
        content,
        parameters,
        DESCRIBE.read_bytes(),
        sys.version,
        version("mininet"),
    )
    known = cache() / "topologies" / f"{hashlib.sha256(repr(decisive).encode()).hexdigest()}.json"
    try:
        described = _Described.model_validate_json(known.read_bytes())
    except (OSError, ValueError):
        described = _describe_in_sandbox(path, parameters)
        with contextlib.suppress(OSError):  # without a cache of ours, loading runs again
            known.parent.mkdir(parents=True, exist_ok=True)
            write_json(known, described.model_dump(mode="json"))
    interfaces = _interfaces(path, described)
    commands = _node_commands(path, described, interfaces)
    queues = _placement(path, described.queues, "queues", interfaces)
    delays = _placement(path, described.delays, "delays", interfaces)
    which = (
        f"no such direction in `queues`, which has {', '.join(queues)}; a delay needs a queue of "
        "its direction before it: put a router beside the host, with both"
    )
    if stray := [f"{path}: delays.{each}: {which}" for each in delays if each not in queues]:
        raise SpecError(stray)
    return Graph(
        hosts=described.hosts,
        routers=described.routers,
        switches=described.switches,
        interfaces=interfaces,
        commands=commands,
        routes=node_routes(path, commands, described.hosts, described.routers, interfaces),
        queues=queues,
        delays=delays,
    )


def _describe_in_sandbox(path: Path, parameters: str) -> _Described:
    """Let the sandbox describe a topology.

    Raises: SpecError if the sandbox writes no description.
    """
    document = _answer(path, parameters)
    try:
        return _Described.model_validate(document)
    except ValidationError as error:
        where = [(".".join(map(str, each["loc"])), each) for each in error.errors()]
        raise SpecError(
            [f"{path}: {field}: {demand(each)}, got {each['input']!r:.80}" for field, each in where]
        ) from error


def _answer(path: Path, parameters: str) -> Any:
    """Run a topology's file in the sandbox and read the document that it writes."""
    seen = str(path.resolve()) if refusal() else "/mnt/topology.py"
    readable = {"/mnt/venv": Path(sys.prefix), seen: path, _DESCRIBE: DESCRIBE}
    box = confined_command(readable, shm_mib=1, processes=_PROCESSES)
    words = [*box, *_LIMITS, *_SETTINGS, "/mnt/venv/bin/python", "-I", _DESCRIBE]
    try:
        done = run_confined([*words, seen, path.stem, parameters], longest_s=_LONGEST_S)
    except TimeoutError as error:
        raise SpecError([f"{path}: has not ended after {_LONGEST_S} s"]) from error
    try:
        document = json.loads(done.answer)
    except (ValueError, RecursionError) as error:
        said = done.words.decode(errors="replace").strip()
        how = f"{said[-200:]!r}" if said else f"exit status {done.status}"
        raise SpecError([f"{path}: did not load in the sandbox: {how}"]) from error
    if isinstance(document, dict) and "error" in document:
        raise SpecError([f"{path}: {document['error']!s:.400}"])
    return document


def _interfaces(path: Path, described: _Described) -> tuple[Interface, ...]:
    """List both ends of each link.

    Raises: SpecError with everything in the topology that a network here cannot have.
    """
    problems = [*_without_effect(described), *_misnamed(described)]
    interfaces: list[Interface] = []
    for ends in described.links:
        for end, peer in (ends, ends[::-1]):
            if end.address is None and end.node not in described.switches:
                problems.append(_needs_address(described, end, peer))
                continue
            mac = f"02:00:00:00:{len(interfaces) // 256:02x}:{len(interfaces) % 256:02x}"
            interfaces.append(
                Interface(end.node, end.interface, end.address, mac, peer.node, peer.interface)
            )
    if "init" in (*described.hosts, *described.routers):
        problems.append('a node "init": that is the name of the guest\'s own namespace')
    if not problems:
        problems = [*_addressing(described, interfaces)]
    if problems:
        raise SpecError([f"{path}: {problem}" for problem in problems])
    return tuple(interfaces)


def _node_commands(
    path: Path, described: _Described, interfaces: Sequence[Interface]
) -> dict[str, tuple[NodeCommand, ...]]:
    """Read the commands of each node.

    Raises: SpecError if an interface does not get its address, or is not switched on.
    """
    nodes = (*described.hosts, *described.routers, *described.switches)
    names = {node: [i.name for i in interfaces if i.node == node] for node in nodes}
    for switch in described.switches:
        names[switch].append(switch)
    links = [(one.interface, other.interface) for one, other in described.links]
    commands = read_commands(path, described.commands, names, links)
    lacking = [
        f"{path}: {each.node}: no command gives {each.name} {what}"
        for each in interfaces
        for command, what in (
            *_address_needed(each),
            (Up(each.name), "a start: `ip link set INTERFACE up`"),
        )
        if command not in commands[each.node]
    ]
    if lacking:
        raise SpecError(lacking, "a node's own `config` begins with `super().config(...)`")
    return commands


def _address_needed(each: Interface) -> Iterator[tuple[NodeCommand, str]]:
    if each.address:
        yield Address(each.name, each.address), f"its address, {each.address}"


def _without_effect(described: _Described) -> Iterator[str]:
    """List settings of a topology that have no effect here."""
    for each in described.unused:
        why = "has no effect: a link profile sets rates, delays and losses, the plan the rest"
        yield f"{each} {why}"


def _misnamed(described: _Described) -> Iterator[str]:
    """List interfaces not named NODE-ethN, and names used twice."""
    ends = [end for link in described.links for end in link]
    for name, times in Counter(end.interface for end in ends).items():
        if times > 1:
            yield f"{name:.40}: {times} links have an interface of this name"
    for end in ends:
        if not re.fullmatch(rf"{end.node}-eth[0-9]{{1,3}}", end.interface):
            yield f"{end.node}: its interface must be {end.node}-ethN, got {end.interface!r:.40}"


def _needs_address(described: _Described, end: _End, peer: _End) -> str:
    """Return the line that would give a link's end its missing address."""
    if end.node in described.hosts:
        how = f'addHost("{end.node}", ip="10.0.1.2/24"); Mininet\'s numbers are not used'
    else:
        how = 'addLink(..., params1={"ip": "10.0.1.1/24"}), or params2'
    return f'link {end.node} - {peer.node}: {end.node} needs an "ip", as in {how}'


def _addressing(described: _Described, interfaces: Sequence[Interface]) -> Iterator[str]:
    """List nodes without a link, and addresses that two ends share."""
    linked = {i.node for i in interfaces}
    nodes = {*described.hosts, *described.routers, *described.switches}
    yield from (f"{node} has no link" for node in sorted(nodes - linked))
    yield from (f"{node}: no such node" for node in sorted(linked - nodes))
    seen: dict[IPv4Address, str] = {}
    for each in interfaces:
        first = seen.setdefault(each.address.ip, each.name) if each.address else each.name
        if first != each.name:
            yield f"{first} and {each.name} have the address {each.ip}: each needs its own"
    yield from joining_problems(interfaces, described.switches, described.routers)


def _placement(
    path: Path, pairs_by_direction: Places, attribute: str, interfaces: tuple[Interface, ...]
) -> dict[str, tuple[Interface, ...]]:
    if not pairs_by_direction:
        raise SpecError([f"{path}: must define {attribute}: {{direction: [(node, towards)]}}"])
    placed = {}
    for direction, pairs in pairs_by_direction.items():
        found = [
            next((i for i in interfaces if (i.node, i.peer_node) == pair), None) for pair in pairs
        ]
        missing = [pair for pair, interface in zip(pairs, found, strict=True) if interface is None]
        if missing:
            raise SpecError(
                [f"{path}: {attribute}.{direction}: no link {a} - {b}" for a, b in missing]
            )
        placed[direction] = tuple(interface for interface in found if interface is not None)
    return placed
