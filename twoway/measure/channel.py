"""A DTM channel's slots over time, and the paper's allocator.

A channel has n slots of 512 kbit/s: a byte takes 15625 ns of one slot, or more of a smaller one. n
changes while packets are in transmission, so transmission times follow from the integral of n, in
slot-nanoseconds, which are whole numbers. Every run compares the kernel's allocations with the
paper's (decision 0016).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.errors import AnalysisError

from twoway.contract.network import Queue
from twoway.links.dtm import Channel
from twoway.measure.queues import Passage
from twoway.measure.run_folder import Run
from twoway.theory.dtm import CYCLE_NS, Allocator, decision_ns

SLOT_BYTES = 8
# Longer than any run's set-up, so that the first step of `Slots` lies before all packets.
_BEFORE_NS = 3600 * 10**9


@dataclass(frozen=True)
class Slots:
    """A channel's slots as a step function, set-up included.

    Attributes:
        time_ns: shape (k,), times of changes; the first is before all packets.
        slots: shape (k,), the number of slots after each.
        start_ns: start of the allocator, with the traffic.
        options: the field `dtm` of the channel's profile.
        estimate_bit: shape (k,), the estimate that the kernel reported with each change, bit/s;
            None if unknown.
        decided: the slots that the allocator wanted over time, if the channel may get others
            because it shares a pool.
    """

    time_ns: IntArray
    slots: IntArray
    start_ns: int
    options: Channel
    estimate_bit: IntArray | None = None
    decided: "Slots | None" = None

    @property
    def wanted(self) -> "Slots":
        """The slots that the allocator wanted over time."""
        return self.decided or self

    def count_at(self, time_ns: Any) -> Any:
        """Look up the number of slots at given times."""
        return self.slots[np.searchsorted(self.time_ns, time_ns, side="right") - 1]

    def estimate_at(self, row: int) -> int | None:
        """Return the estimate that the kernel reported with a change, bit/s."""
        return None if self.estimate_bit is None else int(self.estimate_bit[row])

    def integral(self, time_ns: IntArray) -> IntArray:
        """Integrate the slots from the first time to each time, in slot-ns."""
        row = np.searchsorted(self.time_ns, time_ns, side="right") - 1
        return self._integrals()[row] + (time_ns - self.time_ns[row]) * self.slots[row]

    def times_of(self, integral: IntArray) -> IntArray:
        """Compute the times at which the integral reaches given values, rounded up to whole ns."""
        row = np.maximum(np.searchsorted(self._integrals(), integral, side="left") - 1, 0)
        rest = integral - self._integrals()[row]
        return self.time_ns[row] - (-rest // self.slots[row])

    def changes(self, start_ns: int, stop_ns: int) -> IntArray:
        """List the times of changes in a window, without the allocator's start."""
        inside = (self.time_ns > max(start_ns, self.start_ns)) & (self.time_ns < stop_ns)
        return self.time_ns[inside]

    def mean(self, start_ns: int, stop_ns: int) -> float:
        """Compute the time average of the slots in a window."""
        ends = self.integral(np.array([start_ns, stop_ns]))
        return float((ends[1] - ends[0]) / (stop_ns - start_ns))

    def counts_within(self, start_ns: int, stop_ns: int) -> IntArray:
        """List the different numbers of slots in a window."""
        first = int(self.count_at(start_ns))
        return np.concatenate(([first], self.count_at(self.changes(start_ns, stop_ns))))

    def _integrals(self) -> IntArray:
        steps = np.diff(self.time_ns) * self.slots[:-1]
        return np.concatenate(([0], np.cumsum(steps)))


def read_slots(run: Run, queue: Queue) -> Slots:
    """Read a channel's slots from the events that its qdisc reported.

    Raises: AnalysisError if the recording lacks the allocator's start.
    """
    assert queue.reallocations is not None
    columns = ("time_ns", "interface", "cause", "from", "to", "wanted", "estimate_bit")
    words = {"interface": [queue.interface], "cause": ["start", "allocator", "denied"]}
    table = run.numbers(queue.reallocations, *columns, words=words)
    rows = np.flatnonzero(table["interface"] == 0)
    cause = table["cause"][rows]
    starts = rows[cause == 0]
    if not len(starts):
        raise AnalysisError(f"{run.folder / queue.reallocations}: no start of {queue.interface}")
    told_ns = run.clock(queue.interface).of_stamps(table["time_ns"])
    start_ns = int(told_ns[starts[-1]])
    if not run.start_ns - _BEFORE_NS <= start_ns <= run.stop_ns:
        raise AnalysisError(
            f"{run.folder / queue.reallocations}: {queue.interface} started outside of the run"
        )
    options = run.element(queue, Channel)
    if options is None:
        raise AnalysisError(f"{run.folder / queue.reallocations}: {queue.interface} is no channel")

    def over_time(first: int, of: IntArray, column: str, decided: Slots | None) -> Slots:
        return Slots(
            np.append(run.start_ns - _BEFORE_NS, told_ns[of]),
            np.append(first, table[column][of]),
            start_ns,
            options,
            np.append(0, table["estimate_bit"][of]),
            decided,
        )

    decisions = rows[(rows > starts[-1]) & (cause > 0)]
    decided = over_time(int(table["wanted"][starts[-1]]), decisions, "wanted", None)
    changes = rows[table["from"][rows] != table["to"][rows]]
    return over_time(int(table["from"][rows[0]]), changes, "to", decided)


def service_error_ns(queue: Queue, slots: Slots, passed: Passage) -> IntArray:
    """Compute the lateness of each departure from a channel.

    A transmission ends when the integral of slots reaches the packet's tag: the larger of the tag
    before it and the integral at its arrival, plus the packet's work. With framing a packet takes
    whole slots, and departs at the end of a cycle; cycles are aligned with the first departure.

    Returns: shape (m,), ns, one per departure, positive if late (as queues.service_error_ns).
    """
    rows = passed.departures
    left, arrived = passed.left_ns[rows], passed.packets.time_ns[rows]
    size = queue.link_bytes(passed.frame_bytes[rows])
    if slots.options.framed:
        size = -(-size // SLOT_BYTES) * SLOT_BYTES
    work = slots.options.byte_work * size
    total = np.cumsum(work)
    idle = np.maximum.accumulate(slots.integral(arrived) - (total - work))
    ends = slots.times_of(idle + total)
    if slots.options.framed and len(left):
        ends += (left[0] - ends) % CYCLE_NS
    return np.asarray(left - ends, dtype=np.int64)


def decisions_ns(ticks: IntArray, slots: Slots) -> IntArray:
    """Compute when the decisions at the ends of samples apply; shape (k,), as `ticks`."""
    since_start = [decision_ns(int(tick) - slots.start_ns, slots.options) for tick in ticks]
    return slots.start_ns + np.array(since_start, dtype=np.int64)


@dataclass(frozen=True)
class Estimates:
    """The allocator of Abrahamsson et al. (2002), fed with captures.

    Attributes:
        time_ns: shape (k,), end of each sample.
        measured_bit: shape (k,), rate in the sample, bit/s.
        estimate_bit: shape (k,), estimate after the sample, bit/s.
        change_ns: shape (m,), times at which the number of slots changed.
        slots: shape (m,), the number of slots after each change.
    """

    time_ns: IntArray
    measured_bit: IntArray
    estimate_bit: IntArray
    change_ns: IntArray
    slots: IntArray


def estimates(queue: Queue, slots: Slots, passed: Passage, stop_ns: int) -> Estimates:
    """Feed the paper's rate allocator with the packets that came to a channel.

    Args:
        queue: the channel.
        slots: its slots; only the allocator's start and options are used.
        passed: the packets that came, with those that were dropped.
        stop_ns: end of the computation.
    """
    rate, channel = slots.options.rate, slots.options
    assert rate
    sample_ns = round(rate.sample_ms * 1e6)
    ticks = np.arange(slots.start_ns + sample_ns, stop_ns + 1, sample_ns)
    edges = np.concatenate(([slots.start_ns], ticks))
    counted = ~passed.dropped if rate.count == "accepted" else np.full(len(passed.left_ns), True)
    size = queue.link_bytes(passed.frame_bytes)[counted]
    before = np.concatenate(([0], np.cumsum(size)))
    arrived = np.searchsorted(passed.packets.time_ns[counted], edges, side="left")
    measured = np.diff(before[arrived]) * 8_000_000_000 // sample_ns
    drops = passed.packets.time_ns[passed.dropped]
    last_drop = np.concatenate(([np.iinfo(np.int64).min // 2], drops))[
        np.searchsorted(drops, ticks, side="left")
    ]
    held_at = ticks if rate.hold == "estimate" else decisions_ns(ticks, slots)
    held = held_at - last_drop < round(rate.hold_on_loss_ms * 1e6)
    allocator = Allocator(slots.start_ns, int(slots.count_at(slots.start_ns)), channel)
    estimate = [
        allocator.sample(int(at), int(new), hold=bool(hold))
        for at, new, hold in zip(ticks, measured, held, strict=True)
    ]
    changes = np.array(allocator.changes, dtype=np.int64).reshape(-1, 2)
    return Estimates(
        ticks, measured, np.array(estimate, dtype=np.int64), changes[:, 0], changes[:, 1]
    )
