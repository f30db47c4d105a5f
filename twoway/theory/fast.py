"""Two-way FAST TCP in equilibrium.

After Ge, Chan, Andrew, Li, Tan and Zukerman (2011).

A bidirectional link has the directions F and B. A flow's data passes one and its ACKs the other, so
every flow sees the same queueing delay q, the sum over F and B, and sends at

    x = alpha / (q - e)    packets/s

where e is the excess of the flow's baseRTT over the true one; with e = 0 this is the paper's
Theorem 1. The true baseRTT is propagation alone (decision 0024). Neither direction carries
more than its rate, and q is the smallest delay that satisfies this:

    q = max over l of the root of    sum over flows of x(q) (bits per packet on l) = c_l

With e = 0 the root is sum alpha P / c_l, the two terms of the paper's (4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

# Bisection finds roots to a double's precision in fewer steps than this.
_HALVINGS = 200


class Direction(IntEnum):
    """A direction of the link, as an index."""

    FORWARD = 0
    BACKWARD = 1

    @property
    def opposite(self) -> "Direction":
        """The opposite direction."""
        return Direction(1 - self)


@dataclass(frozen=True)
class Flow:
    """One FAST flow.

    Attributes:
        direction: direction of its data.
        alpha_packets: packets that the flow keeps queued in both directions together.
        data_bit, ack_bit: P+ and P-, the sizes of a data packet and an ACK on the link.
        base_excess_s: e, the measured baseRTT minus the true one.
    """

    direction: Direction
    alpha_packets: float
    data_bit: float
    ack_bit: float
    base_excess_s: float = 0

    def bit_on(self, direction: Direction) -> float:
        """Return the bits of a data packet, or of its ACK, in a direction."""
        return self.data_bit if direction is self.direction else self.ack_bit


@dataclass(frozen=True)
class Equilibrium:
    """The state in which all flows have settled.

    Attributes:
        queueing_s: q, queueing delay of both directions together.
        is_bottleneck: by direction; both may be bottlenecks.
        rates: packets/s of each flow.
        data_share: by direction, share of the link's rate taken by data, the paper's (8), (9).
        ack_share: by direction, share taken by ACKs.
    """

    queueing_s: float
    is_bottleneck: tuple[bool, bool]
    rates: tuple[float, ...]
    data_share: tuple[float, float]
    ack_share: tuple[float, float]


def equilibrium(flows: Sequence[Flow], capacity_bit: tuple[float, float]) -> Equilibrium:
    """Solve Theorem 1, extended to wrong base RTTs.

    Args:
        flows: at least one.
        capacity_bit: bit/s of FORWARD and BACKWARD.

    Raises: ValueError if there is no flow, or a direction has no capacity.
    """
    if not flows:
        raise ValueError("FAST has no equilibrium without flows")
    if min(capacity_bit) <= 0:
        raise ValueError(f"each direction must have capacity, got {capacity_bit} bit/s")
    delays = [_delay(flows, direction, capacity_bit[direction]) for direction in Direction]
    delay = max(delays)
    rates = [flow.alpha_packets / (delay - flow.base_excess_s) for flow in flows]

    def share(direction: Direction, of: Direction) -> float:
        """Compute the share of `direction` used by flows whose data goes in `of`."""
        pairs = zip(flows, rates, strict=True)
        return (
            sum(x * flow.bit_on(direction) for flow, x in pairs if flow.direction is of)
            / capacity_bit[direction]
        )

    return Equilibrium(
        queueing_s=delay,
        is_bottleneck=(_is_same(delays[0], delay), _is_same(delays[1], delay)),
        rates=tuple(rates),
        data_share=(
            share(Direction.FORWARD, Direction.FORWARD),
            share(Direction.BACKWARD, Direction.BACKWARD),
        ),
        ack_share=(
            share(Direction.FORWARD, Direction.BACKWARD),
            share(Direction.BACKWARD, Direction.FORWARD),
        ),
    )


def persistent_congestion(
    groups: Sequence[Sequence[Flow]], capacity_bit: tuple[float, float]
) -> Equilibrium:
    """Find the equilibrium of groups of flows that start in turn.

    Each group starts when the groups before it have settled.

    A late flow's baseRTT includes the queueing delay of the earlier flows, so it queues alpha
    packets in addition to theirs. Two equal flows in one direction then share it 38.2 to 61.8 % and
    queue 2.618 alpha, the square of the golden ratio, instead of 2 alpha.

    Args:
        groups: flows that start together, in order of their starts.
        capacity_bit: bit/s of FORWARD and BACKWARD.

    Returns: the equilibrium, with flows in the order of the groups.
    """
    settled: list[Flow] = []
    standing = 0.0
    for group in groups:
        settled += [replace(flow, base_excess_s=standing) for flow in group]
        standing = equilibrium(settled, capacity_bit).queueing_s
    return equilibrium(settled, capacity_bit)


def correct_for_bunches(
    settled: Equilibrium,
    flows: Sequence[Flow],
    capacity_bit: tuple[float, float],
    propagation_s: float,
) -> Equilibrium:
    """Correct an equilibrium for windows that travel in bunches, as they do without pacing.

    Two opposite bunches delay each other's ACKs. A round trip T then takes half of the propagation,
    half of an ACK in each direction and half of the transmission of both windows (Kalampoukas et
    al. 1998, Theorem 1, with ACK time). FAST's windows are alpha T / (T - d), so

        T = (d + a_F + a_B)/2 + (D_F + D_B)/2 T / (T - d)

    with D the transmission time of alpha data packets of each flow of one direction, and a that of
    an ACK. If T is longer than the d + q of Theorem 1, no direction is full (decision 0025).

    Args:
        settled: equilibrium of Theorem 1, with true base RTTs.
        flows: the flows of `settled`.
        capacity_bit: bit/s of FORWARD and BACKWARD.
        propagation_s: d, propagation of both directions together.

    Returns: `settled` itself if all data flow in one direction, or if the queues keep a direction
        full.
    """
    if len({flow.direction for flow in flows}) == 1:
        return settled
    data_s = sum(f.alpha_packets * f.data_bit / capacity_bit[f.direction] for f in flows)
    ack_s = sum(
        max(f.ack_bit for f in flows if f.direction is direction) / capacity_bit[direction.opposite]
        for direction in Direction
    )
    fixed_s = (propagation_s + ack_s) / 2
    linear = fixed_s + propagation_s + data_s / 2
    round_trip_s = (linear + math.sqrt(linear**2 - 4 * fixed_s * propagation_s)) / 2
    queueing_s = round_trip_s - propagation_s
    if queueing_s <= settled.queueing_s:
        return settled
    less = settled.queueing_s / queueing_s
    return Equilibrium(
        queueing_s,
        is_bottleneck=(False, False),
        rates=tuple(rate * less for rate in settled.rates),
        data_share=(settled.data_share[0] * less, settled.data_share[1] * less),
        ack_share=(settled.ack_share[0] * less, settled.ack_share[1] * less),
    )


def slope(capacity_bit: tuple[float, float], ack_share: float) -> float:
    """Compute the flows of F per flow of B at which both directions are full (17).

    With at least as many, F is the bottleneck. All flows are equal; ack_share is P- over P+, below
    the smaller rate over the larger.
    """
    forward, backward = capacity_bit
    if not 0 <= ack_share < min(capacity_bit) / max(capacity_bit):
        raise ValueError(
            f"an ACK of {ack_share} of a packet always makes one direction the bottleneck"
        )
    return (forward - ack_share * backward) / (backward - ack_share * forward)


def _delay(flows: Sequence[Flow], direction: Direction, capacity_bit: float) -> float:
    """Find the queueing delay at which a direction is just full, s.

    The delay is found by bisection. The load falls as the delay rises, from infinity at the largest
    excess of a base RTT. The largest excess plus the transmission time of all alphas is an upper
    bound.
    """
    low = max(flow.base_excess_s for flow in flows)
    high = low + sum(f.alpha_packets * f.bit_on(direction) for f in flows) / capacity_bit
    if all(flow.base_excess_s == low for flow in flows):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        load = sum(
            f.alpha_packets * f.bit_on(direction) / (middle - f.base_excess_s) for f in flows
        )
        low, high = (middle, high) if load > capacity_bit else (low, middle)
    return high


def _is_same(delay: float, largest: float) -> bool:
    """Tell whether two delays differ only by rounding."""
    return abs(largest - delay) <= 1e-12 * largest
