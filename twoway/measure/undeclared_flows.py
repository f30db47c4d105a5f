"""Flows that an experiment does not declare, found in the captures of the hosts at both ends.

A program makes its own connections, from unpredictable ports. Their packets are counted here. For a
TCP connection, there are also its round trips and the measures of capture-analysis from two
captures.
"""

from itertools import combinations

import numpy as np
from capture_analysis import match
from capture_analysis.columns import IntArray, Packets
from capture_analysis.flow_table import TCP, UDP
from capture_analysis.metrics.round_trip_time import RTT_SPREAD

from twoway.contract.metrics import FoundFlow, Metric, Way
from twoway.manifest import Interface
from twoway.measure.queues import lost_between
from twoway.measure.round_trips import round_trips, spread_ms
from twoway.measure.run_folder import Run

_ICMP = 1
_NAMES = {TCP: "tcp", UDP: "udp", _ICMP: "icmp"}
# The most flows that are described: those with the most packets.
_MOST_FLOWS = 200
# A direction of a flow, and its name in documents.
_WAYS = ((0, "forward"), (1, "backward"))

Measures = dict[tuple[str, str], dict[str, Metric]]


def found_flows(run: Run, unfinished: Packets) -> tuple[FoundFlow, ...]:
    """Describe the flows between two hosts that the experiment does not declare, by time.

    Args:
        run: the run.
        unfinished: packets that were in queues or on links as the captures ended: they are not
            lost.
    """
    declared = {
        flow
        for connection in run.connections
        for flow, _ in run.flows.find(
            (connection.source, connection.source_port), (connection.destination, connection.port)
        )
    }
    declared |= {
        flow
        for each in run.datagrams
        for flow, _ in run.flows.find(
            (each.source, each.source_port), (each.destination, each.port), UDP
        )
    }
    taps = {
        address: i
        for i in run.manifest.interfaces
        if i.node in run.manifest.nodes.hosts
        for address in (i.address, i.address6)
        if address
    }
    ends = {
        flow: (run.flows.source(flow)[0], run.flows.destination(flow)[0])
        for flow in range(len(run.flows))
        if flow not in declared
    }
    between = {flow: pair for flow, pair in ends.items() if set(pair) <= taps.keys()}
    measures: Measures = {}
    for a, b in combinations(taps, 2):
        both = (taps[a].name, taps[b].name)
        if any({a, b} == {*pair} and _is_seen(run, flow, both) for flow, pair in between.items()):
            measures |= _measure_connections(run, *both)
    described = [
        _describe_flow(run, flow, (taps[first], taps[second]), measures, unfinished)
        for flow, (first, second) in between.items()
    ]
    described.sort(key=lambda each: -(each.forward.packets + each.backward.packets))
    return tuple(sorted(described[:_MOST_FLOWS], key=lambda each: each.start_s))


def _is_seen(run: Run, flow: int, at: tuple[str, str]) -> bool:
    """Tell whether a TCP connection has packets in both captures, not only SYNs that were lost."""
    is_tcp = run.flows.rows["protocol"][flow] == TCP
    return bool(is_tcp) and all(len(run.of_directions(a, 2 * flow, 2 * flow + 1)) for a in at)


def _measure_connections(run: Run, a: str, b: str) -> Measures:
    """Measure all TCP connections between two interfaces, by name and direction."""
    document = match(
        run.capture_file(a), run.capture_file(b), same_clock=True, flows=len(run.flows)
    )
    return {
        (each["name"], direction): {
            name: Metric(value=metric["value"], unit=metric["unit"])
            for name, metric in each[direction].items()
            if isinstance(metric, dict)
        }
        for each in document["flows"]
        for _, direction in _WAYS
        if each[direction]
    }


def _describe_flow(
    run: Run, flow: int, taps: tuple[Interface, Interface], measures: Measures, unfinished: Packets
) -> FoundFlow:
    """Describe a flow.

    Args:
        run: the run.
        flow: its number.
        taps: the interfaces of its ends.
        measures: the measures of TCP connections.
        unfinished: packets that are not lost.
    """
    on_path = unfinished.where(unfinished.flow == flow)
    name, protocol = run.flows.name(flow), int(run.flows.rows["protocol"][flow])
    mine = [run.of_directions(tap.name, 2 * flow, 2 * flow + 1) for tap in taps]
    seen_ns = np.concatenate([packets.time_ns for packets in mine])
    ways = {
        direction: _way(
            protocol, end, (mine[end], mine[1 - end]), measures.get((name, direction), {}), on_path
        )
        for end, direction in _WAYS
    }
    return FoundFlow(
        name=name,
        protocol=_NAMES.get(protocol, str(protocol)),
        hosts=(taps[0].node, taps[1].node),
        start_s=run.seconds(int(seen_ns.min())),
        end_s=run.seconds(int(seen_ns.max())),
        **ways,
    )


def _way(
    protocol: int,
    end: int,
    at_ends: tuple[Packets, Packets],
    measures: dict[str, Metric],
    on_path: Packets,
) -> Way:
    """Describe the packets that one end sent.

    Args:
        protocol: the protocol's number in IP.
        end: 0 for the first, 1 for the second.
        at_ends: the flow's packets there, and at the other end.
        measures: the measures of TCP for this direction.
        on_path: the flow's packets that were on their path as the captures ended.
    """
    (sent, back), (heard, answers) = (
        [packets.where((packets.half == end) == own) for own in (True, False)]
        for packets in at_ends
    )
    rtt_ns = np.zeros(0, dtype=np.int64)
    if protocol == TCP:
        rtt_ns = round_trips(sent.data(), back).rtt_ns
    elif protocol == _ICMP and end == 0:
        rtt_ns = _echoes_ns(sent, heard, answers, back)
    found = zip(RTT_SPREAD, spread_ms(rtt_ns), strict=True)
    return Way(
        packets=len(sent),
        payload_bytes=int(sent.payload_bytes.sum()),
        lost=_lost(sent, heard, on_path),
        metrics={
            **(measures if protocol == TCP else {}),
            **({d.name: Metric(value=ms, unit=d.unit) for d, ms in found} if len(rtt_ns) else {}),
        },
    )


def _echoes_ns(sent: Packets, heard: Packets, answers: Packets, back: Packets) -> IntArray:
    """Time echoes: each request that arrives has an answer, and both directions keep their order.

    Returns: shape (n,), ns; empty if answers and requests differ in number.
    """
    asked_ns = sent.time_ns[~lost_between(sent, heard)]
    returned = ~lost_between(answers, back)
    if len(asked_ns) != len(answers) or len(back) != returned.sum():
        return asked_ns[:0]
    return back.time_ns - asked_ns[returned]


def _lost(sent: Packets, heard: Packets, on_path: Packets) -> int | None:
    """Count the packets that never arrived; None if others arrived: fragments."""
    missing = lost_between(sent, heard)
    if missing.any() and not np.isin(heard.key(), sent.key()).all():
        return None
    return int((missing & ~np.isin(sent.key(), on_path.key())).sum())
