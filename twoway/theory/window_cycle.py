"""A fluid model of a TCP flow's deliveries from one loss to the next.

After Lakshman and Madhow (1997), whom Barakat and Altman follow: a bottleneck of mu packets/s, a
round trip of T without queueing, and a queue that overflows when the window reaches mu T + B.

    slow start       W doubles every T                  W1 - W0 packets in T log2(W1/W0)
    avoidance, idle  W grows by 1 every T, W < mu T     (W1^2 - W0^2)/2 packets in T (W1 - W0)
    avoidance, full  W^2 grows by 2 mu t, W > mu T      mu t packets

In addition to their model, a loss is noticed after a round trip, and the packets then in flight
take another to arrive. During both round trips the link is busy if it was full, so slow start
begins from a window of 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Path:
    """The path of a flow.

    Attributes:
        rate: mu, the bottleneck's rate, packets/s.
        trip_s: T, the round trip without queueing, transmission included.
        buffer_packets: B, the packets that may wait, without the one in transmission.
    """

    rate: float
    trip_s: float
    buffer_packets: float

    @property
    def pipe(self) -> float:
        """The pipe mu T: packets that fill the path without a queue."""
        return self.rate * self.trip_s

    @property
    def largest_window(self) -> float:
        """W_max, the window at which avoidance ends, packets."""
        return self.pipe + self.buffer_packets


@dataclass(frozen=True)
class Phase:
    """A part of the cycle.

    Attributes:
        growth: delivered packets over time grow like 2^t, like t^2, or like t.
        duration_s: length of the phase.
        packets: packets delivered in the phase.
        window: W at the start of the phase.
    """

    growth: Literal["doubling", "linear", "constant"]
    duration_s: float
    packets: float
    window: float

    def packets_delivered(self, time_s: FloatArray, trip_s: float) -> FloatArray:
        """Compute the packets delivered since the phase's start.

        Returns: shape of `time_s`.
        """
        if self.growth == "doubling":
            return np.asarray(self.window * (np.exp2(time_s / trip_s) - 1))
        if self.growth == "linear":
            return np.asarray(self.window * time_s / trip_s + (time_s / trip_s) ** 2 / 2)
        return np.asarray(time_s * self.packets / self.duration_s)


@dataclass(frozen=True)
class Cycle:
    """All phases from one loss in congestion avoidance to the next."""

    path: Path
    phases: tuple[Phase, ...]

    @property
    def duration_s(self) -> float:
        """Length of the cycle, s."""
        return sum(phase.duration_s for phase in self.phases)

    @property
    def rate(self) -> float:
        """Mean throughput, packets/s, each packet counted once."""
        return sum(phase.packets for phase in self.phases) / self.duration_s

    def rates(self, edges_s: FloatArray) -> FloatArray:
        """Compute the mean rates between successive times, packets/s.

        The cycle repeats, and starts at time 0.
        """
        whole, rest = np.divmod(edges_s, self.duration_s)
        total = whole * self.rate * self.duration_s
        begun = 0.0
        for phase in self.phases:
            if phase.duration_s:
                inside = np.clip(rest - begun, 0, phase.duration_s)
                total += phase.packets_delivered(inside, self.path.trip_s)
            begun += phase.duration_s
        return np.asarray(np.diff(total) / np.diff(edges_s))


def reno_cycle(path: Path) -> Cycle:
    """Compute Reno's cycle: fast recovery, avoidance from W_max / 2."""
    return Cycle(path, (*_turn(path), *_avoidance(path, path.largest_window / 2)))


def tahoe_cycle(
    path: Path, slow_start_loss: float = math.inf, timer_s: float | None = None
) -> Cycle:
    """Compute Tahoe's cycle: slow start to W_max / 2, then avoidance.

    Losses in slow start lengthen the cycle.

    Args:
        path: bottleneck and round trip.
        slow_start_loss: W_B, the window at which slow start overflows a queue. While the threshold
            is not below W_B, another slow start follows, to half of the window at the time when
            the loss was noticed. Packets that arrived beyond a loss are not counted.
        timer_s: the retransmission timer of a Tahoe that repairs one loss at the third duplicate
            ACK and waits for the timer to repair more, as 4.3BSD's and ours do. Slow start loses
            many packets, and the threshold is then 2. None for a Tahoe that sends all again from
            the first loss on, as ns-2's does.
    """
    threshold = path.largest_window / 2
    phases = [*_turn(path)]
    while threshold >= slow_start_loss:
        phases += _slow_start(path, slow_start_loss)
        phases += [
            Phase("constant", path.trip_s, min(slow_start_loss, path.pipe), slow_start_loss),
            Phase("constant", path.trip_s + (timer_s or 0), 0, 1),
        ]
        threshold = min(2 * slow_start_loss, threshold) / 2
        if timer_s is not None:
            threshold = 2
            break
    return Cycle(path, (*phases, *_slow_start(path, threshold), *_avoidance(path, threshold)))


def _turn(path: Path) -> Sequence[Phase]:
    """Make the two round trips of noticing and repairing a loss.

    The link is busy.
    """
    trips_s = 2 * path.largest_window / path.rate
    return [Phase("constant", trips_s, trips_s * path.rate, path.largest_window)]


def _slow_start(path: Path, end: float) -> Sequence[Phase]:
    """Make the phases of slow start from 2: filling pipe, then queue."""
    start, knee = 2.0, min(end, path.pipe)
    phases = []
    if knee > start:
        doubling_s = path.trip_s * math.log2(knee / start)
        phases.append(Phase("doubling", doubling_s, knee - start, start))
    above = end - max(start, knee)
    if above > 0:
        phases.append(Phase("constant", above / path.rate, above, knee))
    return phases


def _avoidance(path: Path, start: float) -> Sequence[Phase]:
    """Make avoidance's phases up to W_max: with an idle link at times, then a full one."""
    knee = max(start, path.pipe)
    idle_s = path.trip_s * (knee - start)
    full_s = (path.largest_window**2 - knee**2) / (2 * path.rate)
    return [
        Phase("linear", idle_s, (knee**2 - start**2) / 2, start),
        Phase("constant", full_s, full_s * path.rate, knee),
    ]
