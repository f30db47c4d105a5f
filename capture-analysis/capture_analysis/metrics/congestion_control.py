"""Congestion control: whose rules the sender's window follows.

The flight is the window, if data always waits. Its largest value in each shortest round trip gives

    window_losses   = losses that are repaired, those within two round trips as one
    window_decrease = median over them of the flight after the repair, over that before the loss
    window_gain     = median over the times between losses of the segments that it gains in a
                      round trip, in the middle third of each
    congestion_control = the first row of the table that all of this fits

| number | control | decrease | growth, segments a round trip | |
|--:|---|---|---|---|
| 1 | reno | 0.49 to 0.59 | 0.92 to 1.06, steady | |
| 2 | cubic | 0.66 to 0.755 | 0.44 to 0.7, or first fast, then slow, then fast | |
| 3 | bbr | 0.75 or more, or no loss | | the flight dips to 5 segments or less, without a loss |
| 4 | vegas | no loss | the flight stays, below the window | 1 to 5.5 segments wait in a queue |
| 5 | bic | 0.745 to 0.91 | 0.3 to 0.46, and no slower at the end | |
| 6 | htcp | 0.48 to 0.82 | above 1.3, at the end 2.5 times that at the begin | |
| 7 | hybla | 0.48 to 0.6 | above 1.12, steady | |

Numbers follow the kernel's sources, with delayed ACKs: Reno gains a segment in a round trip, and
halves its window; CUBIC (RFC 9438) keeps 0.7, and gains half a segment where it is friendly to
Reno; BBR sends four segments for 0.2 s every ten seconds, to measure the round trip; Vegas keeps 2
to 4 segments in the queue. "reno" says whose rules are followed, and not whose code: LP and CDG do
between cuts, Vegas and YeAH do where losses are random or the queue is short, HighSpeed below 38
segments, H-TCP within a second of a loss, and Hybla with round trips below 25 ms.

No control is named without its evidence: three losses, or for Vegas and BBR none and a hundred
round trips. Rules for HighSpeed, Illinois, NV, Scalable, Veno, Westwood, YeAH, CDG and LP are left
out: in captures of the testbed they named others, too. docs/how-true.md has the confusions.

Vantage: near the data's sender. Only the first 4096 shortest round trips count, each at least 1 ms.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from typing_extensions import override

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block, View
from capture_analysis.facts.facts import NEAR, Facts, FloatArray
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.transfer_limits import NOT_NEAR
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.tracking import Kind

# Slots of a direction that are kept; the shortest.
_SLOTS, _LEAST_NS = 1 << 12, 1_000_000
_MOST = 1 << 40
# A repair ends two round trips after its last segment, and the flight is the window for two more.
_REPAIR_TRIPS, _AFTER_TRIPS = 2, 2
# Times between losses that are shorter, in round trips, have no growth.
_LEAST_TRIPS = 6
_LEAST_LOSSES, _LEAST_SLOTS = 3, 100
# Decreases whose middle half is wider than this are of no one rule.
_ALIKE = 0.12
# Segments that a window must have room for beyond a flight which it does not limit.
_ROOM = 4
# Segments of the flight while BBR probes.
_DIP = 5
NO_SLOTS = "fewer than 100 round trips: a longer transfer would tell"
TOO_FEW = "fewer than three losses whose repair ended, and no steady flight: more losses would tell"
VARIED = "the window decreases now more, now less, as no rule says that is known here"
NO_RULE = "the window follows no rule of a control that is known here"

CONGESTION_CONTROL = Definition(
    "congestion_control", "1", "number of the congestion control whose rules the window follows"
)
WINDOW_LOSSES = Definition("window_losses", "1", "losses that are repaired, by round trips")
WINDOW_DECREASE = Definition(
    "window_decrease", "1", "median flight after a repair, over that before the loss", "RFC 5681"
)
WINDOW_GROWTH = Definition(
    "window_gain", "1", "median gain of segments in a round trip between losses", "RFC 5681"
)


@dataclass(frozen=True)
class Shape:
    """The window's shape.

    Attributes:
        losses: number of losses.
        decreases: shape (n,), the flight after each of them but the first, over that before.
        growth: shape (m, 3), segments gained in a round trip, in thirds of each time between.
        flight: shape (k,), the largest of each slot, segments, without the begin and the end.
        least: shape (k,), the least of each slot after a segment.
        room: segments that the receiver's window has beyond the flight, in the median; below 0 if
            the window's scale is unknown.
        trip: the median round trip, in shortest ones.
    """

    losses: int
    decreases: FloatArray
    growth: FloatArray
    flight: FloatArray
    least: FloatArray
    room: float
    trip: float

    @cached_property
    def decrease(self) -> float:
        """The median decrease; NaN without losses."""
        return float(np.median(self.decreases)) if len(self.decreases) else np.nan

    @cached_property
    def thirds(self) -> FloatArray:
        """The median growth in each third, shape (3,); NaN without growth."""
        return np.median(self.growth, axis=0) if len(self.growth) else np.full(3, np.nan)

    @property
    def steady(self) -> bool:
        """True if the window grows alike in each third."""
        first, middle, last = self.thirds
        return bool(max(abs(first - middle), abs(last - middle)) < 0.2 * middle)

    @property
    def dips(self) -> bool:
        """True if the flight is rarely, but for a whole slot, that of a probing BBR."""
        low, middle = np.quantile(self.flight, (0.01, 0.5))
        return bool(1 <= low <= _DIP and middle > 2 * _DIP)

    @property
    def queued(self) -> float:
        """Segments of a flight that hardly changes which wait in a queue; NaN if it changes."""
        low, middle, high = np.quantile(self.flight, (0.05, 0.5, 0.95))
        # An application that sends now and then empties the flight.
        flat = high - low <= max(2, 0.06 * middle) and np.median(self.least) > 0.75 * middle
        return float(middle * (1 - 1 / self.trip)) if flat else np.nan


def _cubic(shape: Shape) -> bool:
    first, middle, last = shape.thirds
    curved = first > 1.25 * middle and last > 1.25 * middle > 0
    return 0.66 <= shape.decrease <= 0.755 and (0.44 <= middle <= 0.7 or curved)


def _bic(shape: Shape) -> bool:
    _, middle, last = shape.thirds
    return 0.745 <= shape.decrease <= 0.91 and 0.3 <= middle <= 0.46 and last > 0.8 * middle


# In the order of their numbers, from 1, and of the docstring's table.
CONTROLS: dict[str, Callable[[Shape], bool]] = {
    "reno": lambda s: 0.49 <= s.decrease <= 0.59 and 0.92 <= s.thirds[1] <= 1.06 and s.steady,
    "cubic": _cubic,
    "bbr": lambda s: s.dips and not s.decrease < 0.75,
    "vegas": lambda s: not s.losses and 1 <= s.queued <= 5.5 and s.room > _ROOM,
    "bic": _bic,
    "htcp": lambda s: (
        0.48 <= s.decrease <= 0.82 and s.thirds[1] > 1.3 and s.thirds[2] > 2.5 * s.thirds[0]
    ),
    "hybla": lambda s: 0.48 <= s.decrease <= 0.6 and s.thirds[1] > 1.12 and s.steady,
}


def name_control(shape: Shape) -> Value:
    """Return the number of the control that fits a shape, or the reason why none does."""
    fits = [name for name, rule in CONTROLS.items() if rule(shape)]
    low, high = np.quantile(shape.decreases, (0.25, 0.75)) if len(shape.decreases) else (0, 0)
    if high - low > _ALIKE:
        fits = [name for name in fits if name == "bbr"]
    if shape.losses and len(shape.decreases) < _LEAST_LOSSES:
        fits = [name for name in fits if name == "bbr"]
    if fits:
        return 1 + list(CONTROLS).index(fits[0])
    if len(shape.decreases) < _LEAST_LOSSES:
        return TOO_FEW
    return VARIED if high - low > _ALIKE else NO_RULE


class Slots:
    """The flight, the repairs and the round trips of each direction, by slots of time."""

    def __init__(self) -> None:
        self._begin_ns = LaneArray(np.maximum, -1)
        # Direction * _SLOTS + slot, largest flight, least flight, least announced window, segments
        # sent again, round trips, their sum; (7, n).
        self._parts: list[IntArray] = []
        self._whole: IntArray | None = None

    def add(self, block: Block) -> None:
        """Take the next packets."""
        near = block.facts.tap_at <= NEAR
        near &= ~np.isnan(block.facts.round_trip_ns)
        data, acks = block.data, block.acks
        new = self._begin_ns.values_of(data.directions) < 0
        begin_ns = data["time_ns"][data.starts]
        self._begin_ns.add(data.directions[new], begin_ns[new])
        flight = data["in_flight_bytes"]
        again = (data["kind"] == Kind.RETRANSMISSION).astype(np.int64)
        self._take(block, data, data.spread(near), {1: flight, 2: flight, 4: again})
        rtt_ns, shift = acks["rtt_ns"], acks.spread(block.facts.window_shift)
        window = np.where(shift >= 0, acks["window"] << np.maximum(shift, 0), 0)
        known = acks.spread(near) & (rtt_ns >= 0)
        self._take(block, acks, known, {3: window, 5: np.ones_like(rtt_ns), 6: rtt_ns})

    def _take(
        self, block: Block, view: View, wanted: BoolArray, columns: Mapping[int, IntArray]
    ) -> None:
        rows = np.flatnonzero(wanted)
        if not len(rows):
            return
        direction = view.direction[rows].astype(np.int64)
        long_ns = np.fmax(block.facts.round_trip_ns[direction], _LEAST_NS).astype(np.int64)
        slot = (view["time_ns"][rows] - self._begin_ns.values_of(direction)) // long_ns
        kept = (slot >= 0) & (slot < _SLOTS) & (self._begin_ns.values_of(direction) >= 0)
        rows, key = rows[kept], (direction * _SLOTS + slot)[kept]
        if not len(rows):
            return
        found = np.zeros((7, len(rows)), dtype=np.int64)
        found[2:4] = _MOST
        found[0] = key
        for number, column in columns.items():
            found[number] = column[rows]
        self._parts.append(_merge_columns(found))
        self._whole = None

    def merge(self, other: Self) -> None:
        """Add the slots of other directions."""
        self._parts += other._parts
        self._whole = None

    def direction_slots(self, direction: int) -> IntArray:
        """Return the slots of a direction, shape (7, n), numbered from its first data."""
        if self._whole is None:
            whole = np.concatenate([np.zeros((7, 0), dtype=np.int64), *self._parts], axis=1)
            self._whole = _merge_columns(whole[:, np.argsort(whole[0], kind="stable")])
            self._parts = [self._whole]
        ends = [direction * _SLOTS, (direction + 1) * _SLOTS]
        first, last = np.searchsorted(self._whole[0], ends)
        found = self._whole[:, first:last].copy()
        found[0] -= direction * _SLOTS
        return found


def _merge_columns(rows: IntArray) -> IntArray:
    """Combine neighbouring columns of one key."""
    if not rows.shape[1]:
        return rows
    starts = np.flatnonzero(np.diff(rows[0], prepend=-1))
    parts = ((np.maximum, rows[1:2]), (np.minimum, rows[2:4]), (np.add, rows[4:]))
    combined = [ufunc.reduceat(part, starts, axis=1) for ufunc, part in parts]
    return np.concatenate((rows[:1, starts], *combined))


def shape_of(slots: IntArray, segment_bytes: int, trip_ns: float) -> Shape | None:
    """Find the shape of a window; None with fewer than _LEAST_SLOTS slots.

    Args:
        slots: see Slots.of.
        segment_bytes: payload of a full segment.
        trip_ns: length of a slot.
    """
    sent = slots[1] > 0
    known = np.flatnonzero(slots[5])
    if sent.sum() < _LEAST_SLOTS or not len(known):
        return None
    trips = slots[6, known] / slots[5, known] / trip_ns
    trip = np.maximum(np.interp(slots[0], slots[0, known], trips), 1)[sent]
    slot, flight, again = slots[0, sent], slots[1, sent] / segment_bytes, slots[4, sent]
    # The number of round trips that have passed.
    passed = np.cumsum(np.diff(slot, prepend=slot[0]) / trip)
    losses = list(_losses(passed, np.flatnonzero(again)))
    begin, end = len(flight) // 10, -3
    return Shape(
        sum(bool(last >= begin) for _, last in losses),
        np.array(list(_decreases(passed, flight, again, losses))),
        np.array(list(_growths(passed, flight, losses))).reshape(-1, 3),
        flight[begin:end],
        slots[2, sent][begin:end] / segment_bytes,
        float(np.median(slots[3, known] - slots[1, known]) / segment_bytes),
        float(np.median(trip)),
    )


def _losses(passed: FloatArray, again: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row of each repair."""
    if len(again):
        ends = np.flatnonzero(np.diff(passed[again]) > _REPAIR_TRIPS)
        yield from zip(again[np.r_[0, ends + 1]], again[np.r_[ends, -1]], strict=True)


def _decreases(
    passed: FloatArray, flight: FloatArray, again: IntArray, losses: Sequence[tuple[int, int]]
) -> Iterator[float]:
    """Yield the flight after each repair but the first, over that before its loss."""
    for (_, before), (first, last), (following, _) in zip(
        losses, losses[1:], [*losses[2:], (len(flight), 0)], strict=False
    ):
        earlier = np.arange(before + 1, first)
        earlier = earlier[(passed[earlier] >= passed[first] - _AFTER_TRIPS) & (again[earlier] == 0)]
        later = np.arange(last + 1, following)
        since = passed[later] - passed[last] - _REPAIR_TRIPS + 0.4
        later = later[(since > 0) & (since <= _AFTER_TRIPS)]
        if len(earlier) and len(later):
            yield float(np.median(flight[later]) / flight[earlier].max())


def _growths(
    passed: FloatArray, flight: FloatArray, losses: Sequence[tuple[int, int]]
) -> Iterator[FloatArray]:
    """Yield the segments gained in a round trip, in thirds of each time between two losses."""
    for (_, last), (following, _) in pairwise(losses):
        first = int(np.searchsorted(passed, passed[last] + _REPAIR_TRIPS, side="right"))
        rows = slice(first, following)
        if following - first <= _LEAST_TRIPS:
            continue
        spent = passed[rows] - passed[first]
        if spent[-1] >= _LEAST_TRIPS:
            at = np.interp(spent[-1] * np.arange(4) / 3, spent, flight[rows])
            yield 3 * np.diff(at) / spent[-1]


class CongestionControl(FromOne):
    """The congestion control of each direction's sender."""

    title = "Congestion control"
    picture = "in-flight"
    vantage = "near the data's sender"
    per_direction = (CONGESTION_CONTROL, WINDOW_LOSSES, WINDOW_DECREASE, WINDOW_GROWTH)

    def __init__(self) -> None:
        self._slots = Slots()

    @override
    def add(self, block: Block) -> None:
        self._slots.add(block)

    @override
    def merge(self, other: Self) -> None:
        self._slots.merge(other._slots)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        slots = self._slots.direction_slots(direction)
        trip_ns = float(np.fmax(facts.round_trip_ns[direction], _LEAST_NS))
        near = facts.tap_at[direction] <= NEAR
        shape = shape_of(slots, max(int(facts.full_bytes[direction]), 1), trip_ns) if near else None
        if shape is None:
            return dict.fromkeys(self.per_direction, NO_SLOTS if near else NOT_NEAR)
        growth = float(shape.thirds[1])
        return {
            CONGESTION_CONTROL: name_control(shape),
            WINDOW_LOSSES: shape.losses,
            WINDOW_DECREASE: TOO_FEW if np.isnan(shape.decrease) else shape.decrease,
            WINDOW_GROWTH: TOO_FEW if np.isnan(growth) else growth,
        }
