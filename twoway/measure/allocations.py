"""Checking a DTM channel's decisions on a clock that runs while the host works.

The kernel counts a packet a little later than the capture shows it, so a packet near the end of a
sample may count in the next one. Each sample's rate is therefore an interval. Estimate and wanted
slots grow with the rate, so they are intervals as well: each decision seen must be possible, and
each certain decision must have been seen. Samples end on time: the kernel decides as of the
sample's end, however late its timer is (kernel-modules/dtm/dtm_core.h).
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from capture_analysis.columns import BoolArray, IntArray

from twoway.contract.network import Queue
from twoway.measure.channel import Slots, decisions_ns
from twoway.measure.queues import Passage
from twoway.theory.dtm import (
    CYCLE_NS,
    counted_bit,
    decision_ns,
    half_corridor_bit,
    move_estimate,
    slots_for,
)

# A decision's time is exact apart from conversions between clocks.
DECISION_ERROR_NS = 1000


@dataclass(frozen=True)
class Agreement:
    """The kernel's decisions compared with the paper's algorithm.

    Attributes:
        off: number of impossible decisions and of missing certain ones.
        width_bit: shape (k,), uncertainty of the estimate at each sample's end, bit/s.
    """

    off: int
    width_bit: IntArray


class Interval(NamedTuple):
    """Whole numbers between two inclusive bounds."""

    low: int
    high: int


class Held(NamedTuple):
    """The effect of a drop on the allocator, as far as captures show."""

    surely: bool
    maybe: bool


class _Seen(NamedTuple):
    """A decision of the kernel: the slots, and the estimate if it reported one."""

    slots: int
    estimate: int | None


def agreement(
    queue: Queue,
    slots: Slots,
    passed: Passage,
    stop_ns: int,
    *,
    late_ns: int,
    drift_ppb: float = 0.0,
) -> Agreement:
    """Compare a channel's decisions with the paper's algorithm fed with captures.

    Args:
        queue: the channel.
        slots: its slots and those that its allocator wanted, with the estimates that the kernel
            reported.
        passed: the packets that arrived, with those that were dropped.
        stop_ns: end of the traffic.
        late_ns: the longest time from a packet's capture to its arrival at the channel.
        drift_ppb: drift of the host's clock against the plan's.
    """
    rate, signalling_ns = slots.options.rate, round(slots.options.signalling_ms * 1e6)
    assert rate
    sample_ns = round(rate.sample_ms * 1e6)
    host_ns = np.arange(0, stop_ns - signalling_ns - slots.start_ns, sample_ns)
    edges = slots.start_ns + np.rint(host_ns / (1 + drift_ppb * 1e-9)).astype(np.int64)
    first_ns, last_ns = passed.packets.time_ns, latest_ns(queue, slots, passed, late_ns)
    accepted = rate.count == "accepted"
    counted = ~passed.dropped if accepted else np.full(len(passed.left_ns), True)
    size = queue.link_bytes(passed.frame_bytes)[counted]
    low, high = _rates(size, first_ns[counted], last_ns[counted], edges, sample_ns)
    held = _held(first_ns[passed.dropped], last_ns[passed.dropped], edges[1:], slots)
    seen, astray = _decisions(slots.wanted, edges, stop_ns, signalling_ns)
    model = Followed(slots.wanted)
    off, width_bit = astray, []
    for number in range(1, len(edges)):
        model.sample(
            Interval(int(low[number - 1]), int(high[number - 1])),
            Held(bool(held[0][number - 1]), bool(held[1][number - 1])),
        )
        width_bit.append(model.estimate.high - model.estimate.low)
        off += not model.decide(int(host_ns[number]), seen.get(number))
    return Agreement(off, np.array(width_bit, dtype=np.int64))


def latest_ns(queue: Queue, slots: Slots, passed: Passage, late_ns: int) -> IntArray:
    """Compute the latest time at which each packet can have reached a channel.

    A packet arrives at most `late_ns` after its capture, and before its own and all later
    transmissions begin.

    Returns: shape (n,), ns.
    """
    rows = passed.departures
    size = queue.link_bytes(passed.frame_bytes[rows])
    work = slots.options.byte_work * size
    begun = passed.left_ns[rows] - work // int(slots.slots.max())
    latest = passed.packets.time_ns + late_ns
    before = np.minimum.accumulate(begun[::-1])[::-1]
    latest[rows] = np.minimum(latest[rows], before)
    return np.asarray(np.maximum(latest, passed.packets.time_ns), dtype=np.int64)


def _rates(
    size: IntArray, first_ns: IntArray, last_ns: IntArray, edges: IntArray, sample_ns: int
) -> tuple[IntArray, IntArray]:
    """Bound each sample's rate, bit/s, if packets of a size came between two times."""
    least, most = (_bytes_before(at_ns, size, edges) for at_ns in (last_ns, first_ns))
    low = np.maximum(least[1:] - most[:-1], 0)
    high = most[1:] - least[:-1]
    return low * 8_000_000_000 // sample_ns, high * 8_000_000_000 // sample_ns


def _bytes_before(time_ns: IntArray, size: IntArray, edges: IntArray) -> IntArray:
    order = np.argsort(time_ns, kind="stable")
    total = np.concatenate(([0], np.cumsum(size[order])))
    return np.asarray(total[np.searchsorted(time_ns[order], edges, side="left")])


def _held(
    first_ns: IntArray, last_ns: IntArray, ticks: IntArray, slots: Slots
) -> tuple[BoolArray, BoolArray]:
    """Mark the ticks at which a drop certainly holds the allocator, and those at which it may."""
    rate = slots.options.rate
    assert rate
    hold_ns = round(rate.hold_on_loss_ms * 1e6)
    until = ticks if rate.hold == "estimate" else decisions_ns(ticks, slots)
    never = np.iinfo(np.int64).min // 2
    first_ns, last_ns = np.sort(first_ns), np.sort(last_ns)
    surely, maybe = (np.searchsorted(at, ticks, side="left") for at in (last_ns, first_ns))
    return (
        until - np.concatenate(([never], first_ns))[surely] < hold_ns,
        until - np.concatenate(([never], last_ns))[maybe] < hold_ns,
    )


def _decisions(
    slots: Slots, edges: IntArray, stop_ns: int, signalling_ns: int
) -> tuple[dict[int, _Seen], int]:
    """List the kernel's decisions by the number of their sample.

    Returns: the decisions; the number of decisions that came at no sample's end, or second at one.
    """
    seen: dict[int, _Seen] = {}
    astray = 0
    for row in np.flatnonzero((slots.time_ns > slots.start_ns) & (slots.time_ns < stop_ns)):
        at_ns = int(slots.time_ns[row]) - signalling_ns
        number = int(np.abs(edges - at_ns).argmin())
        # With signalling the kernel reports the estimate of a later sample.
        told = None if signalling_ns else slots.estimate_at(int(row))
        is_late = abs(int(edges[number]) - at_ns) > DECISION_ERROR_NS
        astray += is_late or not number or number in seen
        seen[number] = _Seen(int(slots.slots[row]), told)
    return seen, astray


@dataclass
class Followed:
    """The paper's allocator, with its state as far as captures show it.

    Attributes:
        channel: a channel's slots; only those at the start and the options are used.
        estimate: the estimate, bit/s.
        lower: the corridor's lower edge, bit/s.
        upper: the corridor's upper edge, bit/s.
    """

    channel: Slots
    estimate: Interval = field(init=False)
    lower: Interval = field(init=False)
    upper: Interval = field(init=False)

    def __post_init__(self) -> None:
        self._options = self.channel.options
        assert self._options.rate
        self._rate = self._options.rate
        start = round(self._rate.estimate_mbit * 1e6)
        self.estimate = self.lower = self.upper = Interval(start, start)
        self._slots = int(self.channel.count_at(self.channel.start_ns))
        self._held = Held(surely=False, maybe=False)
        self._holds_slots = self._rate.hold == "slots"
        self._half = half_corridor_bit(self._options)
        self._sample_ns = round(self._rate.sample_ms * 1e6)
        self._signalling_ns = round(self._options.signalling_ms * 1e6)
        self._interval_ns = max(round(self._options.change_s * 1e9), CYCLE_NS)
        self._may_decide_ns = self._interval_ns

    def sample(self, rate: Interval, held: Held) -> None:
        """Take a sample's rate, bit/s, and whether a drop holds the estimate or the slots."""
        self._held = held
        low, high = (
            move_estimate(now, new, self._rate)
            for now, new in zip(self.estimate, rate, strict=True)
        )
        if held.surely and not self._holds_slots:
            low = max(low, self.estimate.low)
        if held.maybe and not self._holds_slots:
            high = max(high, self.estimate.high)
        self.estimate = Interval(low, high)

    def decide(self, at_ns: int, seen: _Seen | None) -> bool:
        """Take the kernel's decision at a sample's end, if any.

        Args:
            at_ns: the sample's end, after the traffic's start.
            seen: the kernel's decision.

        Returns: True if the paper's algorithm allows the decision.
        """
        earliest_ns = max(self._may_decide_ns, at_ns - self._sample_ns + 1)
        may_decide = earliest_ns <= decision_ns(at_ns, self._options)
        may_decide = may_decide and not (self._holds_slots and self._held.surely)
        if seen is None:
            return not may_decide or self._stay()
        good = self._narrow(seen) and may_decide and self._maybe_outside
        self._slots = seen.slots
        self._may_decide_ns = at_ns + max(self._interval_ns, self._signalling_ns)
        self._centre()
        return good

    @property
    def _maybe_outside(self) -> bool:
        low, high = self._counted(self.estimate)
        return high > self.upper.low or low < self.lower.high

    @property
    def _surely_outside(self) -> bool:
        low, high = self._counted(self.estimate)
        is_outside = low > self.upper.high or high < self.lower.low
        return is_outside and not (self._holds_slots and self._held.maybe)

    def _counted(self, estimate: Interval) -> Interval:
        low, high = (counted_bit(each, self._rate) for each in estimate)
        return Interval(low, high)

    def _narrow(self, seen: _Seen) -> bool:
        """Keep the estimates that lead to a decision; return False if there are none."""
        good = True
        if seen.estimate is not None:
            good = self.estimate.low <= seen.estimate <= self.estimate.high
            self.estimate = Interval(seen.estimate, seen.estimate)
        leading = self._leading_to(seen.slots)
        self.estimate = leading or self.estimate
        return good and leading is not None

    def _stay(self) -> bool:
        """Assume that the slots did not change; return False if they must have changed."""
        if not self._maybe_outside:
            return True
        leading = self._leading_to(self._slots)
        if self._surely_outside:
            self.estimate = leading or self.estimate
            self._centre()
            return leading is not None
        if leading is None:  # every decision would have been recorded, so there was none
            low, high = self.estimate
            most = self.upper.high + max(self._rate.grain_kbit * 1000 - 1, 0)
            if not (self._holds_slots and self._held.maybe):
                self.estimate = Interval(max(low, self.lower.low), min(high, most))
        else:  # a decision for the same number of slots is possible
            lower, upper = self._edges(leading)
            self.lower, self.upper = _hull(self.lower, lower), _hull(self.upper, upper)
        return True

    def _leading_to(self, slots: int) -> Interval | None:
        """Select the possible estimates that want a given number of slots."""

        def wanted(estimate: int) -> int:
            return slots_for(estimate, self._options)

        estimates = range(self.estimate.low, self.estimate.high + 1)
        first = bisect_left(estimates, slots, key=wanted)
        end = bisect_right(estimates, slots, lo=first, key=wanted)
        return Interval(estimates[first], estimates[end - 1]) if first < end else None

    def _centre(self) -> None:
        self.lower, self.upper = self._edges(self.estimate)

    def _edges(self, estimate: Interval) -> tuple[Interval, Interval]:
        """Compute the corridor around an estimate."""
        low, high = self._counted(estimate)
        half = self._half
        return (
            Interval(max(low - half, 0), max(high - half, 0)),
            Interval(low + half, high + half),
        )


def _hull(one: Interval, two: Interval) -> Interval:
    return Interval(min(one.low, two.low), max(one.high, two.high))
