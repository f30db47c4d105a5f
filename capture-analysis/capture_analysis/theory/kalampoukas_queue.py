"""The queues of two opposite window-limited connections: Lemma 2 from the sides' starts.

Lemma 2 leaves open which two queues alternate: the phase of the two busy periods decides, and
that is what the starts and the first busy periods made it. Here the recursion is in times, as in
`kalampoukas`, from each side's start with its whole window.
"""

from fractions import Fraction
from math import ceil

from capture_analysis.theory.kalampoukas import Side, alternating, cycle, filled

# Busy periods after which the phase has settled: it is clipped at most once, and then alternates.
_SETTLED = 40


def queue_peaks(one: Side, two: Side, later: Fraction) -> tuple[int, int] | None:
    """Most data segments in each node's queue, the one in transmission included.

    Args:
        one: the first node.
        two: the second.
        later: how much later than the first it starts, s; within its first busy period.

    Returns: None where no queue outlasts a round trip.
    """
    period = cycle(one, two)
    if period == alternating(one, two):
        return _alternating_peaks(one, two, later)
    if period == filled(one, two):
        return _filled_peak(one, two), two.window
    if period == filled(two, one):
        return one.window, _filled_peak(two, one)
    return None


def _filled_peak(one: Side, two: Side) -> int:
    """All of a window but what is under way (Lemma 5, the first case)."""
    return min(one.window, ceil(one.window - (one.delay + two.delay) / one.data))


def _alternating_peaks(one: Side, two: Side, later: Fraction) -> tuple[int, int]:
    starts = Fraction(0), later
    before = peaks = (0, 0)
    for _ in range(_SETTLED):
        first = _busy_period(one, two, *starts)
        second = _busy_period(two, one, *reversed(starts))
        starts = first[0], second[0]
        before, peaks = peaks, (first[1], second[1])
    return max(before[0], peaks[0]), max(before[1], peaks[1])


def _busy_period(one: Side, two: Side, own: Fraction, other: Fraction) -> tuple[Fraction, int]:
    """When a node's next busy period begins, and the queue that it begins with.

    ACKs take no time here: they shift both nodes' busy periods, not one against the other.

    Args:
        one: the node.
        two: the other, whose data holds up its ACKs.
        own: when the node's current busy period began, s.
        other: when the other's did.
    """
    arrived = own + one.data + one.delay
    end = other + two.burst
    held = other < arrived < end
    acked = (end if held else arrived) + two.delay
    done = own + one.burst
    # ACKs of what arrives until then come back in a bunch, one more while its first data is sent.
    bunch = ceil((end - one.delay - own) / one.data) if held else 1
    left = max(ceil((done - acked) / one.data), 0)
    return max(acked, done), min(bunch + left, one.window)
