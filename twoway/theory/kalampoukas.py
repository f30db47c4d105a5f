"""Two opposite connections with fixed windows.

After Kalampoukas, Varma and Ramakrishnan (1998).

Two nodes i and j each have one queue that the data of its own connection and the ACKs of the other
share. In the paper ACKs take no time, and a delay is from the start of a segment's transmission to
its arrival. In the formulas derived here ACKs take time, and a delay is propagation alone
(decision 0010). Busy period k of i starts at s_k, that of j at u_k:

    s_{k+1} = max(u_k + Wj dj + Dji + a, s_k + Wi di + Wj ai, s_k + di + aj + Dij + Dji)

and u_{k+1} with i and j exchanged. a = max(ai, aj), because the last data that arrives before the
first of the compressed ACKs must be acknowledged before them. The cycle is the largest mean weight
of a loop in that recursion: one of the three regions of Theorem 2, or a round trip without a queue.
"""

from fractions import Fraction

from twoway.theory.packet_model import Sender

# Number of steps of Lemma 2 after which the queue alternates: it does so from the start, or once
# the window has limited it.
_CLIPPED_ONCE = 4


def compresses(one: Sender, two: Sender) -> bool:
    """Tell whether ACKs without length are compressed (2.1, 4.1)."""
    return one.burst + two.burst > one.delay + two.delay


def printed_efficiency(one: Sender, two: Sender) -> Fraction:
    """Compute the first connection's efficiency, without ACK time.

    Theorem 2; with equal rates Theorem 1.

    Raises: ValueError below the compression condition.
    """
    if not compresses(one, two):
        raise ValueError("the windows' transmission times do not exceed the round trip (4.1)")
    trip = one.delay + two.delay
    return one.burst / max((one.burst + two.burst + trip) / 2, one.burst, two.burst)


def printed_queue_bound(one: Sender, two: Sender) -> Fraction:
    """Bound the data in the first queue (Lemma 5; equal rates: 4)."""
    trip = one.delay + two.delay
    if one.burst > two.burst + trip:
        return one.window - trip / one.data
    if two.burst > one.burst + trip:
        return Fraction(one.window)
    return (one.burst + two.burst - trip) / one.data


def next_queue(one: Sender, two: Sender, queue: Fraction) -> Fraction:
    """Compute the first queue's data at the next busy period (Lemma 2).

    The busy period is the second node's. The paper prints it for equal rates.
    """
    trip = one.delay + two.delay
    return min((one.burst + two.burst - trip) / one.data - queue, Fraction(one.window))


def printed_queues(one: Sender, two: Sender) -> tuple[Fraction, Fraction]:
    """Compute the first queue's data at two successive busy periods (Lemma 2).

    The queue is the one that the first segment of each of the second node's busy periods meets. The
    first such segment meets the rest of the first node's window.

    Returns: the larger, then the smaller.
    """
    sent = max(two.start + two.delay - one.start, Fraction(0)) / one.data
    queue = min(max(one.window - sent, Fraction(0)), Fraction(one.window))
    for _ in range(_CLIPPED_ONCE):
        queue = max(next_queue(one, two, queue), Fraction(0))
    following = max(next_queue(one, two, queue), Fraction(0))
    return max(queue, following), min(queue, following)


def printed_one_way_efficiency(window: int, delay_segments: Fraction) -> Fraction:
    """Compute the printed efficiency of one connection, min(W/2L, 1).

    Section 3.
    """
    if window >= 2 * delay_segments:
        return Fraction(1)
    return window / (2 * delay_segments)


def one_way_cycle(one: Sender, two: Sender) -> Fraction:
    """Compute the time in which the first connection alone sends a window, s.

    Links store and forward.
    """
    return max(one.burst, _round_trip(one, two))


def cycle(one: Sender, two: Sender) -> Fraction:
    """Compute the mean cycle of busy periods, s, with ACK time.

    The cycle is the same at both nodes.
    """
    return max(
        _alternating(one, two),
        _filled(one, two),
        _filled(two, one),
        _round_trip(one, two),
        _round_trip(two, one),
    )


def _alternating(one: Sender, two: Sender) -> Fraction:
    """Compute the cycle where busy periods alternate (Lemma 3), s.

    Each node's busy period waits for the other node's.
    """
    return (one.burst + two.burst + one.delay + two.delay) / 2 + max(one.ack, two.ack)


def _filled(one: Sender, two: Sender) -> Fraction:
    """Compute the cycle where the first node's link never idles (Lemma 1)."""
    return one.burst + two.window * one.ack


def efficiency(one: Sender, two: Sender) -> Fraction:
    """Compute the first connection's efficiency, with ACK time."""
    return one.burst / cycle(one, two)


def utilisation(one: Sender, two: Sender) -> Fraction:
    """Compute the share of time in which the first link transmits.

    Data and ACKs count.
    """
    return (one.burst + two.window * one.ack) / cycle(one, two)


def _round_trip(one: Sender, two: Sender) -> Fraction:
    return one.data + one.delay + two.ack + two.delay
