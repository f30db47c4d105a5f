"""Congestion windows as captured; laws of their growth, and of the share that a loss leaves.

Numbers are those of the kernel's sources (Linux 6.12, net/ipv4). HighSpeed and Hybla count ACKs,
the others segments, so that delayed ACKs halve what the two gain. LP is Reno but for a cut of its
own, which never came in a transfer of the testbed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.facts import FloatArray

# HighSpeed's windows (RFC 3649), and the shares that a loss takes of those up to each.
_HIGHSPEED = np.array([38, 118, 221, 347, 495, 663, 851, 1058])
_HIGHSPEED_TAKES = (0.5, 0.44, 0.41, 0.38, 0.37, 0.35, 0.34, 0.33, 0.32)
# Illinois' largest and least growth, and the window below which it is Reno.
_ILLINOIS_MOST, _ILLINOIS_LEAST, _ILLINOIS_BEGIN = 10.0, 0.3, 15
_BIC_BEGIN, _BIC_STEP = 14, 16
# YeAH is Scalable while the round trip is longer by less than an eighth, and Reno after 16 others.
_YEAH_STRETCH, _YEAH_QUEUE, _YEAH_TRIPS = 1.125, 80, 16
_VENO_QUEUE = 3
_HYBLA_TRIP_S = 0.025
# Westwood's estimate of a rate, over the rate: its filter lags, and rounds down.
_WESTWOOD_RATE = 0.93
# The shortest round trip whose windows can be told apart, and slots of them that a window needs.
LEAST_NS, LEAST_SLOTS = 1_000_000, 100
# A repair ends two round trips after its last segment.
REPAIR_TRIPS = 2
# The least flight of a window, as a share of the largest, in a round trip in which data waits.
_LEAST_FLIGHT = 0.5
# Segments of the flight while BBR probes, for a share of the slots.
_DIP, _DIP_SHARE = 5, 0.005


@dataclass(frozen=True)
class Moments:
    """Moments of a window between a loss and the next.

    Attributes:
        window: shape (n,), segments.
        stretch: shape (n,), the least round trip then, in shortest ones.
        delay_s: shape (n,), the mean delay by queues.
        trips: shape (n,), round trips since the last segment was sent again.
        since_s: shape (n,), time since its ACK.
        before: the window before the loss; the top to which a law returns.
        kept: the share of it that the loss left.
        longest_s: the longest delay by queues so far.
        stretched: round trips since YeAH's queue was last short.
        shortest_s: the shortest round trip.
        per_ack: segments that an ACK acknowledges.
    """

    window: FloatArray
    stretch: FloatArray
    delay_s: FloatArray
    trips: FloatArray
    since_s: FloatArray
    before: float
    kept: float
    longest_s: float
    stretched: float
    shortest_s: float
    per_ack: float

    @property
    def queued(self) -> FloatArray:
        """The segments that wait in queues."""
        queued: FloatArray = self.window * (1 - 1 / self.stretch)
        return queued

    def toward(self, share: float) -> "Moments":
        """Return them with a top that is a share of the window before the loss."""
        return replace(self, before=share * self.before)


@dataclass(frozen=True)
class Window:
    """A window, by slots of a shortest round trip in which data was sent.

    Attributes:
        time_s: shape (n,), the slots' times.
        flight, least: shape (n,), its largest value, and its least after a segment; segments.
        again: shape (n,), True if segments were sent again.
        passed: shape (n,), the round trips that have passed.
        mean, stretch: shape (n,), the mean and the least round trip, in shortest ones.
        shortest_s: the shortest round trip of data.
        per_ack: segments that an ACK acknowledges.
        room: segments that the receiver's window has beyond the flight, in the median; below 0 if
            the window's scale is unknown.
    """

    time_s: FloatArray
    flight: FloatArray
    least: FloatArray
    again: BoolArray
    passed: FloatArray
    mean: FloatArray
    stretch: FloatArray
    shortest_s: float
    per_ack: float
    room: float

    @cached_property
    def losses(self) -> list[tuple[int, int]]:
        """The first and the last slot of each repair."""
        again = np.flatnonzero(self.again)
        ends = np.flatnonzero(np.diff(self.passed[again]) > REPAIR_TRIPS)
        if not len(again):
            return []
        return list(zip(again[np.r_[0, ends + 1]], again[np.r_[ends, -1]], strict=True))

    @cached_property
    def falls(self) -> list[tuple[int, int]]:
        """The slots before and after each fall by 15 % in two round trips without a loss."""
        calm = np.ones(len(self.flight), dtype=bool)
        for first, last in self.losses:
            near = (self.passed >= self.passed[first] - 2.5) & (
                self.passed <= self.passed[last] + 4.5
            )
            calm &= ~near
        found, at = [], 0
        ends = np.searchsorted(self.passed, self.passed + 2.2)
        while at < len(calm) - 1:
            rows = slice(at, ends[at] + 1)
            low = at + int(np.argmin(self.flight[rows]))
            fall = self.flight[at] - self.flight[low]
            if calm[rows].all() and fall > max(0.15 * self.flight[at], 2):
                found.append((at, low))
                at = low
            at += 1
        return found

    @property
    def steady_part(self) -> slice:
        """The slots without the begin and the end."""
        return slice(len(self.flight) // 10, -3)

    @property
    def idle(self) -> bool:
        """True if the flight falls far below its largest value in most slots."""
        return bool(np.median(self.least / self.flight) < _LEAST_FLIGHT)

    @property
    def dips(self) -> bool:
        """True if the flight is rarely, but for a whole slot, that of a probing BBR."""
        low, middle = np.quantile(self.flight[self.steady_part], (_DIP_SHARE, 0.5))
        return bool(low <= _DIP and middle > 2 * _DIP)

    @property
    def queued(self) -> float:
        """Segments of a flight that hardly changes which wait in a queue; NaN if it changes."""
        low, middle, high = np.quantile(self.flight[self.steady_part], (0.05, 0.5, 0.95))
        least = np.median(self.least[self.steady_part])
        # An application that sends now and then empties the flight.
        flat = high - low <= max(2, 0.06 * middle) and least > 0.75 * middle
        return float(middle * (1 - 1 / np.median(self.mean))) if flat else np.nan

    def moments(self, rows: IntArray, last: int, before: float, kept: float) -> Moments:
        """Return some slots after a loss whose last segment was sent again in a slot."""
        delays_s = (self.mean - 1) * self.shortest_s
        short = np.flatnonzero(self.stretch[: last + 1] <= _YEAH_STRETCH)
        return Moments(
            self.flight[rows],
            self.stretch[rows],
            delays_s[rows],
            self.passed[rows] - self.passed[last],
            self.time_s[rows] - self.time_s[last] - self.stretch[last] * self.shortest_s,
            before,
            kept,
            float(delays_s[: last + 1].max()),
            float(self.passed[last] - self.passed[short[-1] if len(short) else 0]),
            self.shortest_s,
            self.per_ack,
        )


def window_of(slots: IntArray, segment_bytes: int, trip_ns: float) -> Window | None:
    """Find a window; None with fewer than LEAST_SLOTS slots.

    Args:
        slots: see Slots.direction_slots in metrics/congestion_control.py.
        segment_bytes: payload of a full segment.
        trip_ns: length of a slot.
    """
    sent = slots[1] > 0
    known = np.flatnonzero(slots[6])
    if sent.sum() < LEAST_SLOTS or not len(known):
        return None
    least, trips, acks = (
        np.interp(slots[0], slots[0, known], each[known])[sent]
        for each in (slots[4], slots[7] / np.maximum(slots[6], 1), slots[6])
    )
    shortest_ns = max(int(slots[4, known].min()), LEAST_NS)
    slot, flight, again = slots[0, sent], slots[1, sent] / segment_bytes, slots[5, sent] > 0
    trips = np.maximum(trips, trip_ns)
    calm = ~again if not again.all() else again
    per_ack = np.median((flight * trip_ns / trips)[calm]) / max(np.median(acks[calm]), 0.1)
    whole = round(per_ack)
    return Window(
        slot * trip_ns / 1e9,
        flight,
        slots[2, sent] / segment_bytes,
        again,
        np.cumsum(np.diff(slot, prepend=slot[0]) * trip_ns / trips),
        trips / shortest_ns,
        np.maximum(least / shortest_ns, 1),
        shortest_ns / 1e9,
        float(np.clip(whole if abs(per_ack - whole) < 0.3 else per_ack, 1, 4)),
        float(np.median(slots[3, known] - slots[1, known]) / segment_bytes),
    )


Growth = Callable[[Moments], FloatArray]


@dataclass(frozen=True)
class Law:
    """A congestion control's window.

    Attributes:
        growth: segments that it gains in a round trip.
        keeps: shares of it that a loss may leave, for moments whose last is the one before.
        tops: shares of the window before the loss to which it may return.
    """

    growth: Growth
    keeps: Callable[[Moments], tuple[float, ...]]
    tops: tuple[float, ...] = (1,)


def _halved(_: Moments) -> tuple[float, ...]:
    return (0.5,)


def _reno(m: Moments) -> FloatArray:
    return np.ones(len(m.window))


def _cubic(m: Moments) -> FloatArray:
    since_s = m.since_s - m.since_s[0]
    back_s = np.cbrt(max(m.before - m.window[0], 0) / 0.4)
    top = max(m.before, m.window[0])
    now, then = (
        0.4 * (at - back_s) ** 3 + top for at in (since_s, since_s + m.stretch * m.shortest_s)
    )
    friendly = m.window[0] + 0.53 * (m.trips - m.trips[0]) > then
    growth: FloatArray = np.where(friendly, 0.53, then - now)
    return growth


def _bic(m: Moments) -> FloatArray:
    below = np.floor((m.before - m.window) / 4)
    search = np.where(below <= 1, 0.2, np.minimum(below, _BIC_STEP))
    above = np.where(m.window < m.before + 4, 0.2, np.minimum((m.window - m.before) / 3, _BIC_STEP))
    growth = m.per_ack * np.where(m.window < m.before, search, above)
    return np.where(m.window <= _BIC_BEGIN, 1, growth)


def _htcp(m: Moments) -> FloatArray:
    late_s = np.maximum(m.since_s - 1, 0)
    factor = np.floor(1 + 10 * late_s + (late_s / 2) ** 2)
    scaled = np.maximum(np.floor(factor / np.clip(0.1 / m.shortest_s, 0.5, 10)), 1)
    kept = 0.5 if m.kept < 0.58 else min(m.kept, 0.8)
    acks: FloatArray = m.window / m.per_ack
    # The window gains one, and the next ACK does not count.
    growth: FloatArray = acks / (np.ceil(acks / (2 * scaled * (1 - kept))) + 1)
    return growth


def _hybla(m: Moments) -> FloatArray:
    eighths = max(np.floor(8 * m.shortest_s / _HYBLA_TRIP_S), 8)
    gained = np.floor(2 * eighths**2 / m.window) / 128
    growth: FloatArray = np.where(gained > 0, gained * m.window, 1) / m.per_ack
    return growth


def _illinois(m: Moments) -> FloatArray:
    most = max(m.longest_s, 1e-9)
    fast, over = 0.01 * most, np.maximum(m.delay_s - 0.01 * most, 0)
    steps = _ILLINOIS_MOST / _ILLINOIS_LEAST - 1
    growth = _ILLINOIS_MOST * (most - fast) / (most - fast + over * steps)
    return np.where(m.window < _ILLINOIS_BEGIN, 1, growth)


def _illinois_keeps(m: Moments) -> tuple[float, ...]:
    if m.window[-1] < _ILLINOIS_BEGIN:
        return (0.5,)
    share = float(m.delay_s[-1] / max(m.longest_s, 1e-9))
    return (float(np.interp(share, (0.1, 0.8), (0.875, 0.5))),)


def _nv(m: Moments) -> FloatArray:
    # It decides after 20 ACKs.
    waits = 1 + np.maximum(2, 20 * m.per_ack / m.window)
    return np.where(m.trips < waits, 0.0, 1.0)


def _yeah(m: Moments) -> FloatArray:
    fast = (m.stretch < _YEAH_STRETCH) & (m.queued < _YEAH_QUEUE)
    return np.where(fast, np.maximum(m.window / 100, 1), 1)


def _yeah_keeps(m: Moments) -> tuple[float, ...]:
    if m.stretched >= _YEAH_TRIPS:
        return (0.5,)
    return (1 - float(np.clip(m.queued[-1] / m.window[-1], 0.125, 0.5)),)


# In the order of the metric's numbers, from 1. BBR and Vegas without losses have rules of their
# own.
LAWS: dict[str, Law] = {
    "reno": Law(_reno, _halved),
    # Both return to less than the last window if that was less than the one before.
    "cubic": Law(_cubic, lambda _: (0.7,), (0.85, 1)),
    "vegas": Law(lambda m: np.where(m.queued < 2, 1.0, np.where(m.queued > 4, -1, 0)), _halved),
    # It grows by up to 16 segments between a loss and its repair.
    "bic": Law(
        _bic,
        lambda m: (0.8, 0.9) if m.window[-1] > _BIC_BEGIN else (0.5,),
        (0.86, 0.88, 0.9, 0.92, 0.98, 1, 1.02),
    ),
    "htcp": Law(_htcp, lambda m: (0.5, float(np.clip(1 / m.stretch[-1], 0.5, 0.8)))),
    "hybla": Law(_hybla, _halved),
    "highspeed": Law(
        lambda m: (np.searchsorted(_HIGHSPEED, m.window) + 1) / m.per_ack,
        lambda m: (1 - _HIGHSPEED_TAKES[int(np.searchsorted(_HIGHSPEED, m.window[-1]))],),
    ),
    "illinois": Law(_illinois, _illinois_keeps),
    "nv": Law(_nv, lambda _: (0.8,)),
    "scalable": Law(lambda m: np.maximum(m.window / 100, 1), lambda _: (0.875,)),
    "veno": Law(
        lambda m: np.where(m.queued < _VENO_QUEUE, 1, 0.5),
        lambda m: (0.8 if m.queued[-1] < _VENO_QUEUE else 0.5,),
    ),
    "westwood": Law(_reno, lambda m: (_WESTWOOD_RATE / float(m.stretch[-1]),)),
    "yeah": Law(_yeah, _yeah_keeps),
    "cdg": Law(_reno, _halved),
}
