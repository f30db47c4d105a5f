"""Multi-host runs: cutting a plan into a share for each host.

A host plays one or more nodes of the topology and has real links to other hosts. Its share is a
plan with the steps of its nodes only, which it carries out in namespaces of its own kernel
(backends/native.py). The artifacts of all hosts are merged into one run's folder
(multihost_run.py).
"""

from collections.abc import Iterable, Mapping

from twoway.contract.model import Model
from twoway.contract.plan import Command, Daemon, MakeNetwork, Observe, Plan, Share, Step
from twoway.description.graph import Graph
from twoway.description.point import Point
from twoway.errors import UsageError
from twoway.plan.plan import build_plan

_WHERE = "set twoway_nodes and twoway_links in the inventory; docs/lab.md shows how"


class Place(Model):
    """A host's part of the inventory.

    Attributes:
        nodes: the topology's nodes that the host plays.
        links: the host's interfaces to other hosts, by their names in the plan.
    """

    nodes: list[str]
    links: dict[str, str]


def shares(point: Point, places: Mapping[str, Place]) -> dict[str, Plan]:
    """Cut an experiment's plan into a share for each host.

    Returns: plans by the names of hosts.
    Raises: UsageError with all problems: nodes without a host, links without an interface, and
        features that need the guest of user-mode Linux, such as a kernel by name.
    """
    problems = [*_misplaced_nodes(point.graph, places), *_misplaced_links(point.graph, places)]
    plan = build_plan(point)
    problems += [
        f"{what}: not possible on the hosts of a lab; uml has it" for what in plan.guest_only
    ]
    if kernel := point.experiment.kernel:
        problems.append(f"kernel: each host of a lab has its own, got {kernel}")
    if problems:
        raise UsageError("\n".join(f"{point.id}: {problem}" for problem in problems), _WHERE)
    return {name: _share(plan, place) for name, place in places.items()}


def _misplaced_nodes(graph: Graph, places: Mapping[str, Place]) -> Iterable[str]:
    players: dict[str, list[str]] = {node: [] for node in graph.nodes}
    for machine, place in places.items():
        for node in place.nodes:
            if node not in players:
                has = ", ".join(graph.nodes)
                yield f"{machine} plays {node}, which the topology does not have; it has {has}"
            players.setdefault(node, []).append(machine)
    for node, machines in players.items():
        if not machines:
            yield f"no machine plays {node}; the topology has {', '.join(graph.nodes)}"
        if len(machines) > 1:
            yield f"{' and '.join(machines)} both play {node}"


def _misplaced_links(graph: Graph, places: Mapping[str, Place]) -> Iterable[str]:
    for machine, place in places.items():
        outward = {
            i.name: i.peer_name
            for i in graph.interfaces
            if i.node in place.nodes and i.peer_node not in place.nodes
        }
        for name in sorted(set(outward) - set(place.links)):
            yield f"{machine}: it has no interface {name}, the link to {outward[name]}"
        for name in sorted(set(place.links) - set(outward)):
            yield f"{machine}: {name} is not a link to another machine"
        for interface in sorted(set(place.links.values())):
            names = [name for name, its in place.links.items() if its == interface]
            if len(names) > 1:
                yield f"{machine}: {interface} is {' and '.join(names)}"


def _share(plan: Plan, place: Place) -> Plan:
    """Select the steps of a plan that one host carries out."""
    nodes = tuple(place.nodes)
    parts = {name: part for name, part in plan if isinstance(part, tuple)}
    return plan.model_copy(
        update={
            "share": Share(nodes=nodes, links=place.links),
            **{name: tuple(_ours(part, nodes)) for name, part in parts.items()},
        }
    )


def _ours(steps: Iterable[Step | Daemon], nodes: tuple[str, ...]) -> Iterable[Step | Daemon]:
    for step in steps:
        if isinstance(step, Observe):
            yield step.select_nodes(nodes)
        elif isinstance(step, MakeNetwork):
            yield from _network(step, nodes)
        elif step.node in (None, *nodes):
            yield step


def _network(step: MakeNetwork, nodes: tuple[str, ...]) -> Iterable[Step]:
    """Select the links between a host's nodes, and address the interfaces to other hosts.

    The nodes are made with the interfaces that the host lends them (host_interfaces.py).
    """
    inside = tuple(ends for ends in step.links if {end.node for end in ends} <= {*nodes})
    yield step.model_copy(update={"nodes": (), "links": inside})
    for ends in step.links:
        for end in ends:
            if ends not in inside and end.node in nodes:
                words = f"ip link set dev {end.interface} address {end.mac}"
                yield Command(node=end.node, run=tuple(words.split()))
