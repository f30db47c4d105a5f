"""Congestion control: whose rules the sender's window follows.

The flight is the window, if data always waits. Its largest value in each shortest round trip gives

    window_losses   = losses that are repaired, those within two round trips as one
    window_decrease = median over them of the flight after the repair, over that before the loss
    window_gain     = median over the times between losses of the segments that it gains in a
                      round trip, in the middle third of each
    congestion_control = the control whose law predicts these, or the reason why none is named

Each law (window_laws.py) predicts what the window gains between two losses, in thirds, and what a
loss leaves of it, from the window, the round trips and the time since the loss. A law's distance is
the share by which gains differ, beyond a segment, and twice the share of the window by which its
remains differ. The control of the least distance is named if that is at most 0.12, and others with
up to 0.06 more are named beside it: a capture cannot tell whose code moves windows alike. Three
controls show in other ways:

- BBR sends four segments for 0.2 s every ten seconds, to measure the round trip;
- Vegas without losses keeps 1 to 5.5 segments in the queue, and its flight stays;
- CDG cuts its window by 20 to 40 % without a loss, five times and more, and grows as Reno does.

| number | control | a loss leaves | gain in a round trip, segments |
|--:|---|---|---|
| 1 | reno | 0.5 | 1 |
| 2 | cubic | 0.7 | by RFC 9438, and at least 0.53 |
| 3 | bbr | | |
| 4 | vegas | 0.5 | 1 up to 2 segments in queues, -1 from 4 on |
| 5 | bic | 0.8 | a quarter of its loss, at most 16, at least 0.2; for each ACK |
| 6 | htcp | 0.5 to 0.8 | 1 for a second, then ten more each second |
| 7 | hybla | 0.5 | the square of the round trip over 25 ms, half of it with delayed ACKs |
| 8 | highspeed | 0.5 up to 38 segments, 0.56 up to 118 | 1, 2 ...; half of it with delayed ACKs |
| 9 | illinois | 0.875 to 0.5, less with longer queues | 10 to 0.3, less with longer queues |
| 10 | nv | 0.8 | 1, after 20 ACKs |
| 11 | scalable | 0.875 | 1 up to 100 segments |
| 12 | veno | 0.8 up to 3 segments in queues, then 0.5 | 1 up to 3 segments in queues, then 0.5 |
| 13 | westwood | what the path without queues takes | 1 |
| 14 | yeah | Scalable's with short queues, Reno's with long ones | the same |
| 15 | cdg | 0.5 | 1 |

LP moves its window as Reno does, and DCTCP does without marks, so that Reno never stands alone.
docs/how-true.md has the confusions.

Vantage: near the data's sender. Only the first 4096 shortest round trips count, each at least 1 ms.
"""

from collections.abc import Mapping
from typing import Self

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block, View
from capture_analysis.facts.facts import NEAR, Facts, FloatArray
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.transfer_limits import NOT_NEAR
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.tracking import Kind
from capture_analysis.window_laws import (
    LAWS,
    LEAST_NS,
    REPAIR_TRIPS,
    Window,
    window_of,
)

# Slots of a direction that are kept; the shortest.
_SLOTS = 1 << 12
_MOST = 1 << 40
# A single round of repairs lasts that long, and what the loss left is the flight soon after it.
_ROUND_TRIPS, _LEFT_TRIPS = 1.3, (2.4, 4)
# Round trips before a loss in which the flight is the window.
_BEFORE_TRIPS = 1.6
# Times between losses that are shorter, in round trips, have no growth, or no thirds.
_LEAST_TRIPS, _THIRDS_TRIPS = 2.5, 12
_LEAST_EVIDENCE = 2
# The largest distance of a law that is named, and how much farther the others must be.
_NEAR, _BESIDE = 0.12, 0.06
# Segments that a window must have room for beyond a flight which it does not limit.
_ROOM = 4
# CDG's cuts: the share that is left, their least number, and that for each loss.
_CDG_LEAVES, _CDG_CUTS, _CDG_SHARE = (0.6, 0.8), 5, 0.3
# Without a cut CDG has no queue: most round trips are hardly longer than the shortest.
_CDG_STRETCH = 1.2
NO_SLOTS = "fewer than 100 round trips: a longer transfer would tell"
SHORT_TRIPS = "the round trip is below a millisecond: its windows cannot be told apart"
IDLE = (
    "its flight falls below half of the window in most round trips: its application wrote no more"
)
TOO_FEW = "fewer than two losses whose repair ended, and no steady flight: more losses would tell"
VARIED = "the window falls without losses, as no rule says that is known here"
NO_RULE = "the window follows no rule of a control that is known here"
# Begin of the reason why several are named.
ALIKE = "the window follows the rules of"

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


# In the order of their numbers, from 1.
CONTROLS = (*list(LAWS)[:2], "bbr", *list(LAWS)[2:])


class Slots:
    """The flight, the repairs and the round trips of each direction, by slots of time."""

    def __init__(self) -> None:
        self._begin_ns = LaneArray(np.maximum, -1)
        # Direction * _SLOTS + slot, largest flight, least flight, least announced window, least
        # round trip, segments sent again, round trips, their sum; (8, n).
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
        self._take(block, data, data.spread(near), {1: flight, 2: flight, 5: again})
        rtt_ns, shift = acks["rtt_ns"], acks.spread(block.facts.window_shift)
        least_ns = np.where(rtt_ns >= 0, rtt_ns, _MOST)
        window = np.where(shift >= 0, acks["window"] << np.maximum(shift, 0), 0)
        known = acks.spread(near) & (rtt_ns >= 0)
        self._take(block, acks, known, {3: window, 4: least_ns, 6: np.ones_like(rtt_ns), 7: rtt_ns})

    def _take(
        self, block: Block, view: View, wanted: BoolArray, columns: Mapping[int, IntArray]
    ) -> None:
        rows = np.flatnonzero(wanted)
        if not len(rows):
            return
        direction = view.direction[rows].astype(np.int64)
        long_ns = np.fmax(block.facts.round_trip_ns[direction], LEAST_NS).astype(np.int64)
        slot = (view["time_ns"][rows] - self._begin_ns.values_of(direction)) // long_ns
        kept = (slot >= 0) & (slot < _SLOTS) & (self._begin_ns.values_of(direction) >= 0)
        rows, key = rows[kept], (direction * _SLOTS + slot)[kept]
        if not len(rows):
            return
        found = np.zeros((8, len(rows)), dtype=np.int64)
        found[2:5] = _MOST
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
        """Return the slots of a direction, shape (8, n), numbered from its first data."""
        if self._whole is None:
            whole = np.concatenate([np.zeros((8, 0), dtype=np.int64), *self._parts], axis=1)
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
    parts = ((np.maximum, rows[1:2]), (np.minimum, rows[2:5]), (np.add, rows[5:]))
    combined = [ufunc.reduceat(part, starts, axis=1) for ufunc, part in parts]
    return np.concatenate((rows[:1, starts], *combined))


class Fit:
    """The fit of each law to a window.

    Attributes:
        kept: of each loss: the share of the window that it left, and a segment as a share of it.
        gained: of each time between losses, or third of it: its number and the gained segments.
        expected_kept, expected_gained: what each law predicts of these.
        middle: segments gained in a round trip, in the middle of each time between losses.
    """

    def __init__(self, window: Window) -> None:
        self.kept: list[tuple[float, float]] = []
        self.gained: list[tuple[int, float]] = []
        self.expected_kept: dict[str, list[list[float]]] = {law: [] for law in LAWS}
        self.expected_gained: dict[str, list[float]] = {law: [] for law in LAWS}
        self.middle: list[float] = []
        passed = window.passed
        cuts = sorted([*window.losses, *window.falls])
        for number, (first, last) in enumerate(cuts):
            following = cuts[number + 1][0] if number + 1 < len(cuts) else len(passed)
            earliest = passed[cuts[number - 1][1]] + _ROUND_TRIPS if number else -1
            rows = np.arange(first + (not window.again[first]))
            since = np.maximum(passed[first] - _BEFORE_TRIPS, earliest)
            rows = rows[(passed[rows] >= since) & ~window.again[rows]]
            # The first loss is that of slow start.
            if not len(rows) or (not number and len(cuts) > 3):
                continue
            before = float(np.median(window.flight[rows]))
            if number and window.again[first] and passed[last] - passed[first] < _ROUND_TRIPS:
                self._take_loss(window, int(rows[-1]), last, following, before)
            self._take_gains(window, last, following, before)

    def _take_loss(
        self, window: Window, row: int, last: int, following: int, before: float
    ) -> None:
        low, high = window.passed[last] + np.array(_LEFT_TRIPS)
        rows = np.arange(last + 1, following)
        rows = rows[(window.passed[rows] > low) & (window.passed[rows] <= high)]
        if not len(rows):
            return
        kept = float(np.median(window.flight[rows])) / before
        self.kept.append((kept, 1 / before))
        at_loss = window.moments(np.array([row]), last, before, kept)
        after = window.moments(rows, last, before, kept)
        # The repair ends a little later than a round trip.
        trips = float(np.median(after.trips)) - 1.1
        for name, law in LAWS.items():
            growths = {float(np.median(law.growth(after.toward(top)))) for top in law.tops}
            self.expected_kept[name].append(
                [
                    np.floor(keep * before) / before + min(growth * trips / before, 0.2)
                    for keep in law.keeps(at_loss)
                    for growth in growths
                ]
            )

    def _take_gains(self, window: Window, last: int, following: int, before: float) -> None:
        begin = int(np.searchsorted(window.passed, window.passed[last] + REPAIR_TRIPS))
        end = following - 1 if following < len(window.flight) else following - 4
        rows = np.arange(begin, end)
        if len(rows) < 3:
            return
        passed, flight = window.passed[rows], window.flight[rows]
        took = passed[-1] - passed[0]
        if took < _LEAST_TRIPS:
            return
        parts = 3 if took > _THIRDS_TRIPS else 1
        edges = np.searchsorted(passed, np.linspace(passed[0], passed[-1], parts + 1))
        edges[-1] = len(rows) - 1
        if not np.diff(edges).all():  # a pause took a third
            parts, edges = 1, edges[[0, -1]]
        gained = np.diff(flight[edges])
        self.gained += enumerate(gained)
        middle = parts // 2
        self.middle.append(gained[middle] / np.diff(passed[edges])[middle])
        moments = window.moments(rows, last, before, flight[0] / before)
        for name, law in LAWS.items():
            expected = [
                np.add.reduceat(law.growth(moments.toward(top))[:-1] * np.diff(passed), edges[:-1])
                for top in law.tops
            ]
            nearest = min(expected, key=lambda each: float(np.abs(each - gained).sum()))
            self.expected_gained[name] += nearest.tolist()

    @property
    def decrease(self) -> float:
        """The median share that a loss leaves; NaN without losses."""
        return float(np.median([kept for kept, _ in self.kept])) if self.kept else np.nan

    def gain_distance(self, law: str) -> float:
        """Return the share by which a law's gains differ, beyond a segment and chance."""
        if not self.gained:
            return 0.0
        third, gained = np.array(self.gained).T
        expected = np.array(self.expected_gained[law])
        most = np.maximum(np.maximum(np.abs(gained), np.abs(expected)), 1)
        each = _near_part(np.maximum(np.abs(gained - expected) - 1, 0) / most)
        differs = whole = 0.0
        for number in range(3):
            rows = third == number
            if rows.any():
                by_chance = 0.1 + 0.7 / np.sqrt(rows.sum())
                differs += max(abs(_middle_part((gained - expected)[rows])) - by_chance, 0)
                whole += _middle_part(most[rows])
        return float(each + differs / max(whole, 1))

    def kept_distance(self, law: str) -> float:
        """Return how much a law's remains of the window differ, beyond a segment and chance."""
        if not self.kept:
            return 0.0
        kept, segment = np.array(self.kept).T
        differs = np.array(
            [
                min((share - each for each in expected), key=abs)
                for share, expected in zip(kept, self.expected_kept[law], strict=True)
            ]
        )
        by_chance = _middle_part(segment) * (0.25 + 0.75 / np.sqrt(len(kept)))
        each = _near_part(np.maximum(np.abs(differs) - segment, 0))
        return float(each + max(abs(_middle_part(differs)) - by_chance, 0))


def _near_part(values: FloatArray) -> float:
    """Return the mean of the least three quarters."""
    return float(np.sort(values)[: max(len(values) * 3 // 4, 1)].mean())


def _middle_part(values: FloatArray) -> float:
    """Return the mean without the least and the largest eighth."""
    out = len(values) // 8
    return float(np.sort(values)[out : len(values) - out].mean())


def name_control(window: Window, fit: Fit) -> Value:
    """Return the number of the control whose law a window follows, or why none is named."""
    losses, falls = len(window.losses), len(window.falls)
    if window.idle:
        return IDLE
    if window.dips and not (len(fit.kept) > _LEAST_EVIDENCE and fit.decrease < 0.75):
        return _number("bbr")
    if not losses and 1 <= window.queued <= 5.5 and window.room > _ROOM:
        return _number("vegas")
    if falls >= max(_CDG_CUTS, _CDG_SHARE * losses):
        left = np.median([window.flight[low] / window.flight[high] for high, low in window.falls])
        cuts = _CDG_LEAVES[0] < left < _CDG_LEAVES[1] and fit.gain_distance("reno") < _NEAR
        return _number("cdg") if cuts else VARIED
    if max(len(fit.kept), len(fit.gained)) < _LEAST_EVIDENCE:
        return TOO_FEW
    return _nearest_laws(window, fit)


def _nearest_laws(window: Window, fit: Fit) -> Value:
    """Return the number of the nearest law, or a reason that names several or none."""
    distances = {law: fit.gain_distance(law) + 2 * fit.kept_distance(law) for law in LAWS}
    if not window.falls and np.quantile(window.stretch, 0.9) > _CDG_STRETCH:
        del distances["cdg"]
    least = min(distances.values())
    if least > _NEAR:
        return NO_RULE
    names = [law for law, distance in distances.items() if distance <= least + _BESIDE]
    if "reno" in names:
        names.append("lp")
    if len(names) == 1:
        return _number(names[0])
    return f"{ALIKE} {', '.join(names[:-1])} and {names[-1]}, which move it alike here"


def _number(name: str) -> int:
    return 1 + CONTROLS.index(name)


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
        trip_ns = float(np.fmax(facts.round_trip_ns[direction], LEAST_NS))
        near = facts.tap_at[direction] <= NEAR
        if near and facts.round_trip_ns[direction] < LEAST_NS:
            return dict.fromkeys(self.per_direction, SHORT_TRIPS)
        size = max(int(facts.full_bytes[direction]), 1)
        window = window_of(slots, size, trip_ns) if near else None
        if window is None:
            return dict.fromkeys(self.per_direction, NO_SLOTS if near else NOT_NEAR)
        fit = Fit(window)
        return {
            CONGESTION_CONTROL: name_control(window, fit),
            WINDOW_LOSSES: len(window.losses),
            WINDOW_DECREASE: fit.decrease if fit.kept else TOO_FEW,
            WINDOW_GROWTH: float(np.median(fit.middle)) if fit.middle else TOO_FEW,
        }
