"""Rules of where a profile may take effect in a topology.

Published testbeds broke each of these rules and measured wrongly; a topology that breaks one is
refused with the reason.
"""

import math

from twoway.description.experiment import Experiment, Profile
from twoway.description.graph import Graph
from twoway.links.element import Delay, Setting

# The least common multiple of tc's microsecond and the kernel's 64 ns tick (decision 0008).
_DELAY_STEP_US = 8


def setting_problems(profile: Profile, experiment: Experiment) -> list[str]:
    """List settings of the profile that the experiment's stack or kernel does not allow."""
    stack = experiment.stack
    setting = Setting(
        stack.mtu_bytes, experiment.kernel, experiment.duration_s, experiment.has_ipv6
    )
    return [
        f"directions.{name}.{element.FIELD}{problem}"
        for name, direction in profile.directions.items()
        for element in direction.elements
        for problem in element.setting_problems(setting)
    ]


def gso_problems(profile: Profile, experiment: Experiment) -> list[str]:
    """List links whose captures cannot follow the packets of many segments that hosts send."""
    cutting = [
        f"directions.{name}.{link.manager.FIELD}"
        for name, link in profile.directions.items()
        if link.manager and link.manager.cuts_segments
    ]
    cutting += [
        f"directions.{name}.{link.rate_shaper.FIELD}"
        for name, link in profile.directions.items()
        if link.rate_shaper
    ]
    cutting += ["half_duplex"] * (profile.half_duplex is not None)
    return [
        f"hosts.{host}.gso: {field} cuts packets of many segments, which captures cannot follow"
        for host, each in experiment.hosts.items()
        for field in cutting
        if each.gso
    ]


def own_qdisc_problems(profile: Profile, graph: Graph, experiment: Experiment) -> list[str]:
    """List routers with a qdisc of their own and no interface for it."""
    links = [(profile.directions[name], name) for name in graph.queues]
    taken = {i for _, name in links for i in graph.queues[name]}
    taken |= {i for link, name in links if link.acts_behind for i in graph.delays[name]}
    return [
        f"routers.{name}.qdisc: each interface of {name} has a link's queue or delay; "
        "`queue: {tc: WORDS}` of a direction is in the link's queue"
        for name, each in experiment.routers.items()
        if each.qdisc and taken.issuperset(graph.interfaces_of(name))
    ]


def placement_problems(profile: Profile, graph: Graph) -> list[str]:
    """List the rules that a profile breaks in a topology."""
    problems = []
    if set(profile.directions) != set(graph.queues):
        problems.append(
            f"directions: the topology has {', '.join(sorted(graph.queues))}; "
            f"got {', '.join(sorted(profile.directions))}"
        )
    queues = [*graph.queued.values()]
    delays = [i for placed in graph.delays.values() for i in placed]
    both = {i.name for i in queues} & {i.name for i in delays}
    problems += [
        f"{name}: rate and delay on one interface: netem's limit counts packets in flight, "
        "so the buffer would be wrong; put the delay on another hop"
        for name in sorted(both)
    ]
    problems += [
        f"{i.name}: shaping on {i.node}, a sending host: TCP small queues would keep the queue "
        f'from building; the bottleneck must be a router\'s, addHost("{i.node}", cls=LinuxRouter)'
        for i in [*queues, *delays]
        if i.node in graph.hosts
    ]
    problems += _without_place(profile, graph)
    problems += _shared_delays(profile, graph)
    problems += _one_way_links(graph) if profile.half_duplex else []
    for name, direction in profile.directions.items():
        delay_us = (direction.delay_ms or 0) * 1000
        if abs(delay_us / _DELAY_STEP_US - round(delay_us / _DELAY_STEP_US)) > 1e-9:
            below = math.floor(delay_us / _DELAY_STEP_US) * _DELAY_STEP_US / 1000
            problems.append(
                f"directions.{name}.delay_ms: tc sets netem's delay in whole microseconds and "
                f"ticks of 64 ns, exact for multiples of 0.008 ms only; got {delay_us / 1000:g},"
                f" nearest {below:g} and {below + _DELAY_STEP_US / 1000:g}"
            )
    return problems


def _without_place(profile: Profile, graph: Graph) -> list[str]:
    """List elements behind a queue for which the topology has no place.

    Such an element acts at the delay of its direction. A direction without queues is not built.
    """
    problems = []
    taken: dict[str, str] = {}
    for name, direction in profile.directions.items():
        places = graph.delays.get(name, ())
        changing = direction.elements.find(Delay)
        delay = changing.FIELD if changing else "delay_ms"
        given = {delay: f"{direction.delay_ns / 1e6}" if direction.delay_ns else ""}
        given |= {element.FIELD: "some" for element in direction.behind_queue}
        problems += [
            f"directions.{name}.{field}: the topology has no place for it in `delays`, got {value}"
            for field, value in given.items()
            if value and graph.queues.get(name) and not places
        ]
        if direction.acts_behind:
            problems += [
                f"directions.{name}.{delay}: {i.name} has the delay of {taken[i.name]}, and an "
                "interface has one: put a router for each path before it, with its own delay, or "
                "netem at the receiving host, as hosts.NAME.qdisc"
                for i in places
                if i.name in taken
            ]
            taken |= {i.name: name for i in places}
    return problems


def behind_problems(profile: Profile, graph: Graph, start: str, goal: str) -> list[str]:
    """List a missing or wrong delay behind a flow's last queue.

    It must be the delay of that queue's direction, because everything behind the queue is measured
    as a part of that direction.
    """
    queued = {i.name: name for name, placed in graph.queues.items() for i in placed}
    delayed = {i.name: name for name, placed in graph.delays.items() for i in placed}
    path = [i.name for i in graph.path(start, goal)]
    at = max(place for place, interface in enumerate(path) if interface in queued)
    last = queued[path[at]]
    passed = {delayed[i] for i in path[at + 1 :] if i in delayed}
    met = {name for name in passed if profile.directions[name].acts_behind}
    due = {last} if profile.directions[last].acts_behind else set()
    if met == due:
        return []
    queue = f"{start} to {goal}: its last queue is that of {last}"
    if not met:
        return [f"{queue}, and no delay is behind it: add an interface there to delays.{last}"]
    return [f"{queue}, but the delay behind it is that of {', '.join(sorted(met))}"]


def _shared_delays(profile: Profile, graph: Graph) -> list[str]:
    """List elements that need one queue and delays of their own, and do not have them."""
    fed = [i.name for placed in graph.delays.values() for i in placed]
    problems = []
    for name, direction in profile.directions.items():
        places = [fed.count(i.name) for i in graph.delays.get(name, ())]
        is_own = len(graph.queues.get(name, ())) == 1 and set(places) == {1}
        problems += [
            f"directions.{name}.{element.FIELD}: takes a direction with one queue, and with "
            f"{'one delay' if element.has_one_delay else 'delays'} that no other direction has"
            for element in direction.elements
            if (element.has_own_delay and not is_own)
            or (element.has_one_delay and not (is_own and len(places) == 1))
        ]
    return problems


def _one_way_links(graph: Graph) -> list[str]:
    """List half-duplex links that have a queue at one end only."""
    return [
        f"half_duplex: {name} has a queue, and the link's other end, {interface.peer_name}, has "
        "none: two ends share a medium"
        for name, interface in graph.queued.items()
        if interface.peer_name not in graph.queued
    ]
