"""Two-way window traffic over two rate-controlled channels, with the time that ACKs take.

Kalampoukas, Varma and Ramakrishnan (1998) give ACKs no time, and store nothing before forwarding
it. With both, what they prove stays and gets two more terms: data and ACKs of a side share one
first-in-first-out queue, each side sends its window as one busy period, and both sides repeat
with one cycle. Its length is what takes longest (`cycle_s`): the two busy periods in alternation,
either window alone, or the round trip of either side's first segment. All times are in seconds.

Their Theorem 2 and Lemma 5 are here as printed as well (`printed_efficiency`,
`printed_queue_peak`); Theorem 1, Lemmas 2 to 4 are their case of equal rates.
"""

import math
from dataclasses import dataclass

# After how many busy periods the phase of two sides has settled: it is clipped once, then swaps.
_SETTLED = 40
# Of a segment: what is due at the same time is not made one more by floating point.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Side:
    """The connections of one side that act as one, and the channel that they send into.

    Attributes:
        window: segments, over all connections of the side.
        data_s: transmission time of a segment on this side's channel.
        ack_s: that of the other side's ACKs on it.
        delay_s: its propagation.
        start_s: when the side starts, with its whole window.
    """

    window: int
    data_s: float
    ack_s: float
    delay_s: float
    start_s: float = 0.0

    @property
    def window_s(self) -> float:
        """Transmission time of the window."""
        return self.window * self.data_s


def round_trip_s(one: Side, other: Side) -> float:
    """From a segment's transmission to its ACK's arrival, with empty queues."""
    return one.data_s + one.delay_s + other.ack_s + other.delay_s


def alone_s(one: Side, other: Side) -> float:
    """The cycle of a side whose other side sends ACKs only."""
    return max(one.window_s, round_trip_s(one, other))


def cycle_s(one: Side, other: Side) -> float:
    """Mean time from one busy period to the next, the same on both sides."""
    return max(
        alternating_s(one, other),
        _filled_s(one, other),
        _filled_s(other, one),
        round_trip_s(one, other),
        round_trip_s(other, one),
    )


def alternating_s(one: Side, other: Side) -> float:
    """Half the time of two busy periods a side, where each waits for the other: Lemma 3.

    A busy period's first ACK leaves behind the other side's busy period; ACKs keep the spacing
    that the slower of the two channels gives them.
    """
    trip_s = one.delay_s + other.delay_s
    return (one.window_s + other.window_s + trip_s) / 2 + max(one.ack_s, other.ack_s)


def _filled_s(one: Side, other: Side) -> float:
    """The cycle of a channel that never idles: one window, and ACKs of the other: Lemma 1."""
    return one.window_s + other.window * one.ack_s


def queue_peaks(one: Side, other: Side) -> tuple[int, int] | None:
    """Most data segments in each side's queue, the one in transmission included.

    None where ACKs are not compressed: below the paper's condition (4.1), and up to where a
    segment's own round trip is as long as the cycle.
    """
    cycle = cycle_s(one, other)
    if cycle > max(alternating_s(one, other), _filled_s(one, other), _filled_s(other, one)):
        return None
    if cycle == alternating_s(one, other):
        return _alternating_peaks(one, other)
    first = cycle == _filled_s(one, other)
    filled = _filled_peak(one, other) if first else _filled_peak(other, one)
    return (filled, other.window) if first else (one.window, filled)


def _filled_peak(one: Side, other: Side) -> int:
    """All of a window but what is under way: Lemma 5, case 1."""
    away = (one.delay_s + other.delay_s) / one.data_s
    return min(one.window, math.ceil(one.window - away))


def _alternating_peaks(one: Side, other: Side) -> tuple[int, int]:
    """Lemma 2, busy period by busy period, from the sides' starts."""
    sides = (one, other)
    starts = [one.start_s, other.start_s]
    before = peaks = (0, 0)
    for _ in range(_SETTLED):
        steps = [
            _next_busy_period(sides[n], sides[1 - n], starts[n], starts[1 - n]) for n in (0, 1)
        ]
        starts = [start for start, _ in steps]
        before, peaks = peaks, (steps[0][1], steps[1][1])
    return max(before[0], peaks[0]), max(before[1], peaks[1])


def _next_busy_period(one: Side, other: Side, start_s: float, other_s: float) -> tuple[float, int]:
    """When a side's next busy period begins, and the queue that it begins with.

    Args:
        one: the side.
        other: the one whose data holds up its ACKs.
        start_s: when the side's current busy period began.
        other_s: when the other's did.
    """
    arrived_s = start_s + one.data_s + one.delay_s
    end_s = other_s + other.window_s
    is_held = other_s < arrived_s < end_s
    acked_s = (end_s if is_held else arrived_s) + other.delay_s
    done_s = start_s + one.window_s
    # ACKs of what arrives until then come back in a bunch, one more within its first segment.
    bunch = math.ceil((end_s - one.delay_s - start_s) / one.data_s - _ROUNDING) if is_held else 1
    left = max(math.ceil((done_s - acked_s) / one.data_s - _ROUNDING), 0)
    peak = min(bunch + left, one.window)
    return max(acked_s, done_s), peak


def printed_efficiency(one: Side, other: Side) -> float:
    """Theorem 2 (4.2) as printed, of the first side."""
    mine, theirs, trip_s = one.window_s, other.window_s, one.delay_s + other.delay_s
    if mine > theirs + trip_s:
        return 1.0
    if mine >= theirs - trip_s:
        return 2 * mine / (mine + theirs + trip_s)
    return mine / theirs


def printed_queue_peak(one: Side, other: Side) -> float:
    """Lemma 5 (4.3) as printed, of the first side: an upper bound, in segments."""
    mine, theirs, trip_s = one.window_s, other.window_s, one.delay_s + other.delay_s
    if mine > theirs + trip_s:
        return one.window - trip_s / one.data_s
    if mine >= theirs - trip_s:
        return min((mine + theirs - trip_s) / one.data_s, one.window)
    return one.window
