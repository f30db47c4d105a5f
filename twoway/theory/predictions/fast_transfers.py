"""The bottleneck while FAST transfers come and go at given times.

One realisation of the process of Ge et al. (2011), section 6. Between an arrival and a departure
every flow sends at C(n, m), the common rate at which the slower direction is just full. The chain
of `fast_markov` averages over all arrivals and sizes; this module computes one series of them, for
an exact comparison with a run of the same series.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from twoway.theory.fast import Direction
from twoway.theory.network import Setup


@dataclass(frozen=True)
class Transfer:
    """One transfer.

    Attributes:
        direction: direction of its data.
        start_s: its start.
        size_bit: size of its data on the link.
    """

    direction: Direction
    start_s: float
    size_bit: float


@dataclass(frozen=True)
class Stretch:
    """An interval without arrivals and departures, and the flows in it by direction."""

    start_s: float
    stop_s: float
    flows: tuple[int, int]


def stretches(
    transfers: Sequence[Transfer], capacity_bit: tuple[float, float], ack_share: float
) -> Iterator[Stretch]:
    """List the stretches between arrivals and departures.

    All transfers have equal alphas.

    Args:
        transfers: transfers in any order.
        capacity_bit: bit/s of FORWARD and BACKWARD.
        ack_share: size of an ACK over that of a data packet.
    """
    waiting = deque(sorted(transfers, key=lambda each: each.start_s))
    # All flows have the same rate, so a flow ends when an always active flow would have sent a
    # certain number of bits. `active` holds that number of each flow, the smallest first.
    active: list[tuple[float, Direction]] = []
    now_s = sent_bit = 0.0
    while waiting or active:
        flows = _count(active)
        rate_bit = 1 / max(delays(flows, capacity_bit, ack_share)) if active else 0.0
        start_s = waiting[0].start_s if waiting else math.inf
        end_s = now_s + (active[0][0] - sent_bit) / rate_bit if active else math.inf
        until_s = min(start_s, end_s)
        yield Stretch(now_s, until_s, flows)
        sent_bit += rate_bit * (until_s - now_s)
        now_s = until_s
        if end_s <= start_s:
            sent_bit, _ = heappop(active)
        else:
            come = waiting.popleft()
            heappush(active, (sent_bit + come.size_bit, come.direction))


def delays(
    flows: tuple[int, int], capacity_bit: tuple[float, float], ack_share: float
) -> tuple[float, float]:
    """Compute the time that one bit of every flow takes in each direction.

    The times include ACKs. The longer one is 1/C(n, m), s/bit.
    """
    forward, backward = flows
    return (
        (forward + ack_share * backward) / capacity_bit[Direction.FORWARD],
        (ack_share * forward + backward) / capacity_bit[Direction.BACKWARD],
    )


def _count(active: Sequence[tuple[float, Direction]]) -> tuple[int, int]:
    forward = sum(direction is Direction.FORWARD for _, direction in active)
    return forward, len(active) - forward


def predict(setup: Setup) -> dict[str, float]:
    """Predict the share of time of each direction as the bottleneck.

    Times are shares of the steady window.

    Raises: ValueError unless all connections are FAST transfers with one alpha, over one link.
    """
    first = setup.connections[0]
    names = (first.direction, first.ack_direction)
    links = [setup.links[name] for name in names]
    transfers = []
    for each in setup.connections:
        if each.transfer_bytes is None or each.alpha_packets != first.alpha_packets:
            raise ValueError(f"is about FAST transfers with one alpha; {each.name} is not")
        if {*each.directions, *each.ack_directions} != set(names):
            raise ValueError(
                f"is about one link with both directions; {each.name} does not pass it alone"
            )
        direction = Direction(names.index(each.direction))
        size_bit = each.transfer_bytes * 8 / links[direction].payload_share
        transfers.append(Transfer(direction, each.start_s, size_bit))
    capacity_bit = (links[0].rate_bit, links[1].rate_bit)
    ack_share = links[0].ack_s / links[0].data_s
    held_s = [0.0, 0.0]
    for stretch in stretches(transfers, capacity_bit, ack_share):
        forward, backward = delays(stretch.flows, capacity_bit, ack_share)
        if forward != backward:
            held_s[backward > forward] += _part_in_window(stretch, setup)
    window_s = setup.duration_s - setup.warm_up_s
    return {
        f"bottleneck_time.{name}": held / window_s for name, held in zip(names, held_s, strict=True)
    }


def _part_in_window(stretch: Stretch, setup: Setup) -> float:
    """Compute the part of a stretch that lies in the steady window, s."""
    start_s, stop_s = max(stretch.start_s, setup.warm_up_s), min(stretch.stop_s, setup.duration_s)
    return max(stop_s - start_s, 0.0)
