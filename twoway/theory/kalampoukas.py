"""Two opposite window-limited connections (Kalampoukas, Varma, Ramakrishnan 1998).

Two nodes i and j, each with one queue that the data of its own connection and the ACKs of the other
share. As printed ACKs take no time, and a delay is from the start of a segment's transmission to
its arrival. As derived here ACKs take time, and a delay is propagation alone. Busy period k of i
starts at s_k, of j at u_k:

    s_{k+1} = max(u_k + Wj dj + Dji + a, s_k + Wi di + Wj ai, s_k + di + aj + Dij + Dji)

and u_{k+1} with i and j exchanged, where a = max(ai, aj): the last data that arrive before the
first of the compressed ACKs must be acknowledged first. The cycle is the largest mean weight of a
loop in that recursion: one of the three regions of Theorem 2, or a round trip without a queue.
"""

from fractions import Fraction

from twoway.theory.packet_model import Side


def compresses(one: Side, two: Side) -> bool:
    """Whether ACKs are compressed, with free ACKs (equations 2.1 and 4.1)."""
    return one.burst + two.burst > one.delay + two.delay


def printed_efficiency(one: Side, two: Side) -> Fraction:
    """Of the first connection, with free ACKs (Theorem 2; with equal rates Theorem 1).

    Raises: ValueError below the compression condition.
    """
    if not compresses(one, two):
        raise ValueError("the windows' transmission times do not exceed the round trip (4.1)")
    trip = one.delay + two.delay
    return one.burst / max((one.burst + two.burst + trip) / 2, one.burst, two.burst)


def printed_queue_bound(one: Side, two: Side) -> Fraction:
    """Most data segments in the first node's queue (Lemma 5; with equal rates Lemma 4)."""
    trip = one.delay + two.delay
    if one.burst > two.burst + trip:
        return one.window - trip / one.data
    if two.burst > one.burst + trip:
        return Fraction(one.window)
    return (one.burst + two.burst - trip) / one.data


def next_queue(one: Side, two: Side, queue: Fraction) -> Fraction:
    """The first node's data queue at the next busy period of the second (Lemma 2)."""
    trip = one.delay + two.delay
    return min((one.burst + two.burst - trip) / one.data - queue, Fraction(one.window))


def printed_one_way_efficiency(window: int, delay_segments: Fraction) -> Fraction:
    """Of a connection alone, min(W/2L, 1) (section 3)."""
    return min(window / (2 * delay_segments), Fraction(1))


def one_way_cycle(one: Side, two: Side) -> Fraction:
    """Time in which the first connection alone sends a window, store and forward, s."""
    return max(one.burst, _round_trip(one, two))


def one_way_efficiency(one: Side, two: Side) -> Fraction:
    """Of the first connection alone: W/(2L+1) segments, and the ACK's time."""
    return one.burst / one_way_cycle(one, two)


def cycle(one: Side, two: Side) -> Fraction:
    """Mean time from one busy period to the next, the same at both nodes, s, with ACK time."""
    return max(
        _alternating(one, two),
        _filled(one, two),
        _filled(two, one),
        _round_trip(one, two),
        _round_trip(two, one),
    )


def _alternating(one: Side, two: Side) -> Fraction:
    """Half the time of two busy periods at each node, where each waits for the other (Lemma 3)."""
    return (one.burst + two.burst + one.delay + two.delay) / 2 + max(one.ack, two.ack)


def _filled(one: Side, two: Side) -> Fraction:
    """The cycle where the first node's link never idles: a window, and the ACKs (Lemma 1)."""
    return one.burst + two.window * one.ack


def efficiency(one: Side, two: Side) -> Fraction:
    """Of the first connection, with ACK time: its window's transmission time over the cycle."""
    return one.burst / cycle(one, two)


def utilisation(one: Side, two: Side) -> Fraction:
    """Share of time that the first link is busy with data or ACKs."""
    return (one.burst + two.window * one.ack) / cycle(one, two)


def _round_trip(one: Side, two: Side) -> Fraction:
    return one.data + one.delay + two.ack + two.delay
