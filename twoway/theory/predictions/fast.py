"""Ge et al.'s equilibrium of an experiment's FAST flows."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from twoway.contract.network import ETHERNET_BYTES, Connection
from twoway.theory.fast import (
    Direction,
    Equilibrium,
    Flow,
    correct_for_bunches,
    equilibrium,
    persistent_congestion,
)
from twoway.theory.network import Bottleneck, Setup


class Crossing(NamedTuple):
    """A constant rate that shares the link with FAST.

    Attributes:
        direction: the queue that its data pass.
        bit: its rate on the link, bit/s.
        has_acks: false if it is UDP.
    """

    direction: str
    bit: float
    has_acks: bool


def predict(setup: Setup) -> dict[str, float]:
    """Predict each flow's throughput, and each direction's use.

    With `modules.tcp_fast.base_rtt_us` every flow has the same base RTT and Theorem 1 holds;
    without it, flows that start later measure the queue of earlier ones, which are assumed to have
    settled. Unpaced windows travel in bunches, which matters if the queues hold less than the path.
    Connections and UDP flows at a constant rate reduce the links' capacity.

    `queued_mean` is predicted only with a given base RTT, because only then a packet's own
    transmission is known to be part of the delay; and only if the delay is known to be in one
    direction, or to be half in each by symmetry.

    Raises: ValueError if the flows do not share one link, or are neither FAST nor of constant rate.
    """
    flows, crossing = _separate_flows(setup)
    names = _directions(setup)
    links = [setup.links[name] for name in names]
    free = _free(crossing, names, links)
    base_us = int(setup.modules.get("tcp_fast", {}).get("base_rtt_us", 0))
    model = [_flow(c, names, links) for c in flows]
    if base_us:
        settled = equilibrium(model, free)
    else:
        starts = groupby(zip(flows, model, strict=True), key=lambda pair: pair[0].start_s)
        settled = persistent_congestion([[flow for _, flow in pairs] for _, pairs in starts], free)
    if not (setup.pacing or crossing) and _knows_base(flows, base_us, links):
        settled = correct_for_bunches(settled, model, free, _propagation_s(links))
    predicted = {}
    for direction, name in zip(Direction, names, strict=True):
        idle = 1 - settled.data_share[direction] - settled.ack_share[direction]
        predicted[f"utilisation.{name}"] = 1 - idle * free[direction] / links[direction].rate_bit
        if settled.is_bottleneck[direction] != settled.is_bottleneck[direction.opposite]:
            predicted[f"bottleneck_time.{name}"] = float(settled.is_bottleneck[direction])
        data_bit = settled.data_share[direction] * free[direction] + _crossing_bit(crossing, name)
        predicted[f"utilisation_data.{name}"] = data_bit / links[direction].rate_bit
    for connection, x in zip(flows, settled.rates, strict=True):
        link = setup.links[connection.direction]
        share = x * link.data_s
        predicted[f"efficiency.{connection.name}"] = share
        predicted[f"throughput.{connection.name}"] = share * link.rate_bit / 1e6
        predicted[f"goodput.{connection.name}"] = share * link.payload_share * link.rate_bit / 1e6
    if not crossing:
        squares = sum(x**2 for x in settled.rates)
        predicted["jain_index"] = sum(settled.rates) ** 2 / (len(flows) * squares)
    if base_us and not crossing:
        predicted |= _queued(setup, flows, settled, base_us / 1e6)
    return predicted


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the paper's Theorem 1 and its (8) and (9), with all base RTTs true.

    Raises: ValueError as `predict`.
    """
    flows, crossing = _separate_flows(setup)
    names = _directions(setup)
    links = [setup.links[name] for name in names]
    settled = equilibrium([_flow(c, names, links) for c in flows], _free(crossing, names, links))
    forms = {
        f"throughput.{connection.name}": x
        * setup.links[connection.direction].data_s
        * setup.links[connection.direction].rate_bit
        / 1e6
        for connection, x in zip(flows, settled.rates, strict=True)
    }
    if not crossing:
        pairs = zip(names, settled.data_share, strict=True)
        forms |= {f"utilisation_data.{name}": share for name, share in pairs}
    return forms


def _knows_base(flows: list[Connection], base_us: int, links: list[Bottleneck]) -> bool:
    """Tell whether base RTTs are propagation alone, without queueing."""
    if base_us:
        return base_us == round(1e6 * _propagation_s(links))
    return len({each.start_s for each in flows}) == 1


def _propagation_s(links: Iterable[Bottleneck]) -> float:
    return sum(link.delay_ns for link in links) / 1e9


def _separate_flows(setup: Setup) -> tuple[list[Connection], list[Crossing]]:
    """Separate FAST flows, by start, from constant rates."""
    steady = {
        c.name: Crossing(c.direction, c.rate_mbit * 1e6, has_acks=True)
        for c in setup.connections
        if c.rate_mbit
    }
    flows = [c for c in setup.connections if c.congestion == "fast" and c.name not in steady]
    crossing = [*steady.values(), *_udp(setup)]
    others = [c.name for c in setup.connections if c not in flows and c.name not in steady]
    if others:
        raise ValueError(f"is about FAST flows and constant rates, not {', '.join(others)}")
    if not flows:
        raise ValueError("is about FAST flows, and there are none")
    return sorted(flows, key=lambda c: c.start_s), crossing


def _udp(setup: Setup) -> Iterable[Crossing]:
    for flow in setup.datagrams:
        if len(flow.directions) != 1:
            raise ValueError(f"is about one link; {flow.name} passes several queues")
        (name,) = flow.directions
        size = setup.links[name].link.link_bytes(flow.packet_bytes + ETHERNET_BYTES)
        yield Crossing(name, flow.rate_mbit * 1e6 * size / flow.packet_bytes, has_acks=False)


def _directions(setup: Setup) -> tuple[str, str]:
    """Find the link's directions, that of the first data first."""
    first = setup.connections[0]
    names = (first.direction, first.ack_direction)
    for each in setup.connections:
        if (each.directions, each.ack_directions) not in {
            ((names[0],), (names[1],)),
            ((names[1],), (names[0],)),
        }:
            raise ValueError(
                f"is about one link with both directions; {each.name} does not pass it alone"
            )
    return names


def _flow(connection: Connection, names: tuple[str, str], links: list[Bottleneck]) -> Flow:
    direction = Direction(names.index(connection.direction))
    data, acks = links[direction], links[direction.opposite]
    assert connection.alpha_packets is not None
    return Flow(
        direction,
        connection.alpha_packets,
        data_bit=data.data_s * data.rate_bit,
        ack_bit=acks.ack_s * acks.rate_bit,
    )


def _crossing_bit(crossing: list[Crossing], direction: str) -> float:
    """Add up the constant rates with data in a direction, bit/s."""
    return sum(each.bit for each in crossing if each.direction == direction)


def _free(
    crossing: list[Crossing], names: tuple[str, str], links: list[Bottleneck]
) -> tuple[float, float]:
    """Compute the capacity that constant rates leave, bit/s.

    The ACKs of connections are subtracted as well.

    Returns: capacity by direction.
    """
    free = [link.rate_bit for link in links]
    for each in crossing:
        direction = Direction(names.index(each.direction))
        data, acks = links[direction], links[direction.opposite]
        free[direction] -= each.bit
        if each.has_acks:
            acks_bit = each.bit * acks.ack_s * acks.rate_bit / (data.data_s * data.rate_bit)
            free[direction.opposite] -= acks_bit
    return free[0], free[1]


def _queued(
    setup: Setup, flows: list[Connection], settled: Equilibrium, base_s: float
) -> dict[str, float]:
    """Predict the data in the bottleneck, that in service included.

    Queueing and transmission in both directions together take the round trip minus the propagation.
    If all data flows in one direction, ACKs do not queue, because data arrives no faster than ACKs
    leave.
    """
    forward = setup.links[flows[0].direction]
    backward = setup.links[flows[0].ack_direction]
    in_queues = base_s + settled.queueing_s - _propagation_s((forward, backward))
    one_way = len({c.direction for c in flows}) == 1 and settled.is_bottleneck == (True, False)
    mirrored = forward == backward and all(settled.is_bottleneck)
    if one_way:
        in_data = in_queues - backward.ack_s
    elif mirrored:
        in_data = (in_queues + forward.data_s - backward.ack_s) / 2
    else:
        return {}
    pairs = zip(flows, settled.rates, strict=True)
    return {f"queued_mean.{connection.name}": x * in_data for connection, x in pairs}
