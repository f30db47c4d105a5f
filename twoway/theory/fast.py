"""Two-way FAST TCP in equilibrium, after Ge, Chan, Andrew, Li, Tan and Zukerman (2011).

A bidirectional link has the directions F and B. A flow's data pass one and its ACKs the other, so
that every flow sees the same queueing delay q, that of F and B together, and sends at

    x = alpha / (q - e)    packets/s

where e is what the flow's baseRTT is too long by: 0 if it is true (the paper's Theorem 1). Neither
direction carries more than its rate, and q is the smallest that achieves this:

    q = max over l of the root of    sum over flows of x(q) (bits per packet on l) = c_l

With e = 0 the root is sum alpha P / c_l, the two sides of the paper's (4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

# Roots are found to a double's precision in fewer halvings than this.
_HALVINGS = 200


class Way(IntEnum):
    """A direction of the link, as an index."""

    FORWARD = 0
    BACKWARD = 1

    @property
    def opposite(self) -> "Way":
        """The other one."""
        return Way(1 - self)


@dataclass(frozen=True)
class Flow:
    """One FAST flow.

    Attributes:
        way: of its data.
        alpha_packets: that it keeps queued in both directions together.
        data_bit, ack_bit: P+ and P-, the sizes on the link.
        base_excess_s: measured baseRTT less the true one.
    """

    way: Way
    alpha_packets: float
    data_bit: float
    ack_bit: float
    base_excess_s: float = 0

    def bit_on(self, way: Way) -> float:
        """Bits that each of its packets, or the ACK of it, has in a direction."""
        return self.data_bit if way is self.way else self.ack_bit


@dataclass(frozen=True)
class Equilibrium:
    """Where the flows settle.

    Attributes:
        delay_s: q, of both directions together.
        is_bottleneck: by direction; both may be.
        rates: packets/s of each flow.
        data_share: by direction, share of the link's rate taken by data, the paper's (8), (9).
        ack_share: by direction, share taken by ACKs.
    """

    delay_s: float
    is_bottleneck: tuple[bool, bool]
    rates: tuple[float, ...]
    data_share: tuple[float, float]
    ack_share: tuple[float, float]


def equilibrium(flows: Sequence[Flow], capacity_bit: tuple[float, float]) -> Equilibrium:
    """Theorem 1, and its extension to wrong base RTTs.

    Args:
        flows: at least one.
        capacity_bit: bit/s of FORWARD and BACKWARD.

    Raises: ValueError if there is no flow, or a direction has no capacity.
    """
    if not flows:
        raise ValueError("FAST has no equilibrium without flows")
    if min(capacity_bit) <= 0:
        raise ValueError(f"each direction must have capacity, got {capacity_bit} bit/s")
    delays = [_delay(flows, way, capacity_bit[way]) for way in Way]
    delay = max(delays)
    rates = [flow.alpha_packets / (delay - flow.base_excess_s) for flow in flows]

    def share(way: Way, of: Way) -> float:
        """Of a direction's rate, what flows whose data go one way take."""
        pairs = zip(flows, rates, strict=True)
        return sum(x * flow.bit_on(way) for flow, x in pairs if flow.way is of) / capacity_bit[way]

    return Equilibrium(
        delay_s=delay,
        is_bottleneck=(_is_same(delays[0], delay), _is_same(delays[1], delay)),
        rates=tuple(rates),
        data_share=(share(Way.FORWARD, Way.FORWARD), share(Way.BACKWARD, Way.BACKWARD)),
        ack_share=(share(Way.FORWARD, Way.BACKWARD), share(Way.BACKWARD, Way.FORWARD)),
    )


def persistent_congestion(
    groups: Sequence[Sequence[Flow]], capacity_bit: tuple[float, float]
) -> Equilibrium:
    """The last of several equilibria, when each group starts after those before have settled.

    A late flow's baseRTT then includes the delay that the earlier flows keep up, so that it aims
    at alpha packets on top of theirs. Two equal flows one way share 38.2 to 61.8 % and queue 2.618
    alpha instead of 2, the square of the golden ratio.

    Args:
        groups: flows that start together, in order of their starts.
        capacity_bit: bit/s of FORWARD and BACKWARD.

    Returns: with flows in the order of the groups.
    """
    settled: list[Flow] = []
    standing = 0.0
    for group in groups:
        settled += [replace(flow, base_excess_s=standing) for flow in group]
        standing = equilibrium(settled, capacity_bit).delay_s
    return equilibrium(settled, capacity_bit)


def bunched(
    settled: Equilibrium,
    flows: Sequence[Flow],
    capacity_bit: tuple[float, float],
    propagation_s: float,
) -> Equilibrium:
    """What Theorem 1 becomes where windows travel in bunches, as they do unless they are paced.

    Two opposite bunches hold up each other's ACKs. A round trip then takes half of the propagation,
    half of an ACK each way and half of the transmission of both windows (Kalampoukas et al. 1998,
    Theorem 1, with ACK time). FAST's windows are alpha T / (T - d), so that

        T = (d + a_F + a_B)/2 + (D_F + D_B)/2 T / (T - d)

    with D the transmission time of alpha packets of data of all flows one way, and a that of an
    ACK. Where this is longer than the d + q of Theorem 1, no direction is full.

    Args:
        settled: by Theorem 1, with true base RTTs.
        flows: that it is of.
        capacity_bit: bit/s of FORWARD and BACKWARD.
        propagation_s: d, of both directions together.

    Returns: the same if flows all go one way, or if the queues keep a direction full.
    """
    if len({flow.way for flow in flows}) == 1:
        return settled
    data_s = sum(f.alpha_packets * f.data_bit / capacity_bit[f.way] for f in flows)
    ack_s = sum(
        max(f.ack_bit for f in flows if f.way is way) / capacity_bit[way.opposite] for way in Way
    )
    fixed_s = (propagation_s + ack_s) / 2
    linear = fixed_s + propagation_s + data_s / 2
    round_trip_s = (linear + math.sqrt(linear**2 - 4 * fixed_s * propagation_s)) / 2
    delay_s = round_trip_s - propagation_s
    if delay_s <= settled.delay_s:
        return settled
    less = settled.delay_s / delay_s
    return Equilibrium(
        delay_s,
        is_bottleneck=(False, False),
        rates=tuple(rate * less for rate in settled.rates),
        data_share=(settled.data_share[0] * less, settled.data_share[1] * less),
        ack_share=(settled.ack_share[0] * less, settled.ack_share[1] * less),
    )


def slope(capacity_bit: tuple[float, float], ack_share: float) -> float:
    """The paper's (17): F is the bottleneck if it has at least so many flows per flow of B.

    For flows that are alike; ack_share is P- over P+, below the smaller rate over the larger.
    """
    forward, backward = capacity_bit
    if not 0 <= ack_share < min(capacity_bit) / max(capacity_bit):
        raise ValueError(
            f"an ACK of {ack_share} of a packet makes one direction the bottleneck always"
        )
    return (forward - ack_share * backward) / (backward - ack_share * forward)


def _delay(flows: Sequence[Flow], way: Way, capacity_bit: float) -> float:
    """The queueing delay at which a direction is just full, s; halved intervals.

    The load falls as the delay rises, from infinity at the largest excess. A delay of all alphas'
    time on top of that is enough for any excess.
    """
    low = max(flow.base_excess_s for flow in flows)
    high = low + sum(f.alpha_packets * f.bit_on(way) for f in flows) / capacity_bit
    if all(flow.base_excess_s == low for flow in flows):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        load = sum(f.alpha_packets * f.bit_on(way) / (middle - f.base_excess_s) for f in flows)
        low, high = (middle, high) if load > capacity_bit else (low, middle)
    return high


def _is_same(delay: float, largest: float) -> bool:
    """Whether two delays differ by no more than rounding."""
    return abs(largest - delay) <= 1e-12 * largest
