"""Rules of where a profile may take effect in a topology.

Published testbeds broke each of these rules and measured wrongly; a topology that breaks one is
refused with the reason.
"""

import math

from twoway.contract.network import ETHERNET_BYTES
from twoway.spec.experiment import Experiment, Profile
from twoway.spec.half_duplex import one_way_links
from twoway.spec.topology import Graph

# The least common multiple of tc's microsecond and the kernel's 64 ns tick (docs/decisions/0008).
_DELAY_STEP_US = 8


def setting_problems(profile: Profile, experiment: Experiment) -> list[str]:
    """List what an experiment's stack or kernel does not let a profile have."""
    frame_bytes = experiment.stack.mtu_bytes + ETHERNET_BYTES
    problems = [
        f"directions.{name}.policer.burst_bytes: a full frame has {frame_bytes}, "
        f"got {direction.policer.burst_bytes}"
        for name, direction in profile.directions.items()
        if direction.policer and direction.policer.burst_bytes < frame_bytes
    ]
    if experiment.kernel in (None, "guest"):
        problems += [
            f"directions.{name}.aqm: dualpi2 came with Linux 6.17: an experiment with "
            f"`kernel: newest` may have it, got kernel {experiment.kernel or 'guest'}"
            for name, direction in profile.directions.items()
            if direction.aqm == "dualpi2"
        ]
    return problems


def placement_problems(profile: Profile, graph: Graph) -> list[str]:
    """List the rules that a profile breaks in a topology."""
    problems = []
    if set(profile.directions) != set(graph.queues):
        problems.append(
            f"directions: the topology has {', '.join(sorted(graph.queues))}; "
            f"got {', '.join(sorted(profile.directions))}"
        )
    queues = [i for placed in graph.queues.values() for i in placed]
    delays = [i for placed in graph.delays.values() for i in placed]
    both = {i.name for i in queues} & {i.name for i in delays}
    problems += [
        f"{name}: rate and delay on one interface: netem's limit counts packets in flight, "
        "so the buffer would be wrong; put the delay on another hop"
        for name in sorted(both)
    ]
    problems += [
        f"{i.name}: shaping on {i.node}, a sending host: TCP small queues would keep the queue "
        "from building; the bottleneck must be a router's"
        for i in [*queues, *delays]
        if i.node in graph.hosts
    ]
    problems += [
        f"directions.{name}.delay{'' if direction.delay else '_ms'}: the topology has no place for "
        f"it, got {direction.delay_ns / 1e6:g}"
        for name, direction in profile.directions.items()
        if direction.delay_ns and name not in graph.delays
    ]
    problems += _shared_delays(profile, graph)
    problems += one_way_links(graph) if profile.half_duplex else []
    problems += [
        f"directions.{name}.aqm: {direction.aqm} is a shaper of its own, without cells or slots"
        for name, direction in profile.directions.items()
        if direction.aqm != "drop-tail" and (direction.dtm or direction.cell_bytes)
    ]
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


def _shared_delays(profile: Profile, graph: Graph) -> list[str]:
    """List delays that serve several queues and must not.

    That of separate ACK queues adds the transmission time, which it can do for one queue only. One
    that changes keeps packets in order, which can be told of one queue only.
    """
    fed = [i.name for placed in graph.delays.values() for i in placed]
    problems = []
    for name, direction in profile.directions.items():
        places = [fed.count(i.name) for i in graph.delays.get(name, ())]
        if len(graph.queues.get(name, ())) == 1 and set(places) == {1}:
            continue
        problems += [
            f"directions.{name}.{field}: takes a direction with one queue, and with delays "
            f"that no other direction has"
            for field, given in (("ack_queue", direction.has_ack_queue), ("delay", direction.delay))
            if given
        ]
    return problems
