"""A queue reconstructed from the captures on both sides of it.

Taps on incoming interfaces see a packet before the queue, the tap on the outgoing one after it, so
the difference is exactly the queue, packet by packet.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.step_functions import Sums, queue_length, sums_over_time
from capture_analysis.two_captures.matching import partners
from numpy.typing import NDArray

from twoway.contract.network import Queue

STILL_QUEUED = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Passage:
    """Every packet offered to a queue, and its fate.

    Attributes:
        packets: shape (n,), at the time each entered.
        left_ns: shape (n,), when its transmission ended; -1 if it was dropped, STILL_QUEUED if
            the capture ended first.
        is_data: shape (n,), True if the packet carries payload.
    """

    packets: Packets
    left_ns: IntArray
    is_data: BoolArray

    @property
    def dropped(self) -> BoolArray:
        """Shape (n,): True if the queue dropped the packet."""
        return self.left_ns < 0

    @property
    def frame_bytes(self) -> IntArray:
        """Shape (n,), int64: sizes, from which transmission times are computed."""
        return self.packets.frame_bytes.astype(np.int64)

    def where(self, rows: IntArray) -> "Passage":
        """Select some packets, by their rows."""
        return Passage(self.packets.where(rows), self.left_ns[rows], self.is_data[rows])

    @cached_property
    def departures(self) -> NDArray[np.uint32]:
        """Rows of the packets that left, in order of departure."""
        rows = np.flatnonzero((self.left_ns >= 0) & (self.left_ns < STILL_QUEUED))
        return rows[np.argsort(self.left_ns[rows], kind="stable")].astype(np.uint32)


def limit_at(queue: Queue, time_ns: IntArray) -> IntArray:
    """Look up a queue's limit at some times; the first holds before its changes."""
    times_ns, limits = zip(*queue.limits or ((0, queue.limit_packets),), strict=True)
    row = np.searchsorted(np.array(times_ns), time_ns, side="right") - 1
    return np.array(limits)[np.maximum(row, 0)]


# The ends of transmissions, ns, of packets by their arrival, ns, and their size on the link.
Ends = Callable[[IntArray, IntArray], IntArray]


@dataclass(frozen=True)
class Occupancy:
    """The length of a queue over time, as a step function.

    From each time in `time_ns` on, the queue holds the `packets` of that row. The packet in
    transmission counts, as it does in the kernel's drop-tail limit.
    """

    time_ns: IntArray
    packets: IntArray

    def count_at(self, time_ns: IntArray) -> IntArray:
        """Look up the occupancy at given times; it is 0 before the first event."""
        return self.count_after(np.searchsorted(self.time_ns, time_ns, side="right"))

    def count_after(self, steps: IntArray) -> IntArray:
        """Look up the occupancy after given numbers of steps."""
        if not len(self.packets):
            return np.zeros(len(steps), dtype=np.int64)
        levels = self.packets.take(steps - 1, mode="clip")
        levels[steps == 0] = 0
        return levels

    def range(self, start_ns: IntArray, stop_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Find the lowest and highest occupancy in each of several intervals.

        The intervals include their ends.

        Args:
            start_ns: shape (k,), start of each interval; the level on entry counts.
            stop_ns: shape (k,), end of each interval.
        """
        first = np.searchsorted(self.time_ns, start_ns, side="left")
        last = np.searchsorted(self.time_ns, stop_ns, side="right")
        levels = np.concatenate(([0], self.packets, [0]))  # reduceat needs an end within the array
        spans = np.stack((first, last + 1), axis=1).ravel()
        if not len(spans):
            return spans, spans
        return np.minimum.reduceat(levels, spans)[::2], np.maximum.reduceat(levels, spans)[::2]

    def sum_beside(self, other: "Occupancy", start_ns: int, stop_ns: int) -> Sums:
        """Sum two queues' lengths over the time between two times."""
        own, others = (self.time_ns, self.packets), (other.time_ns, other.packets)
        return sums_over_time(own, others, start_ns, stop_ns)

    def cut_out(self, start_ns: int, stop_ns: int) -> "Occupancy":
        """Cut out the steps between two times."""
        rows = self.rows(start_ns, stop_ns)
        return Occupancy(self.time_ns[rows], self.packets[rows])

    def rows(self, start_ns: int, stop_ns: int) -> slice:
        """Find the rows of the steps from a start until before a stop."""
        first, stop = np.searchsorted(self.time_ns, (start_ns, stop_ns)).tolist()
        return slice(first, stop)

    def peak(self, start_ns: int, stop_ns: int) -> int:
        """Find the highest occupancy from a start until before a stop.

        The level on entry counts.
        """
        entry = int(self.count_at(np.array([start_ns]))[0])
        return int(self.cut_out(start_ns, stop_ns).packets.max(initial=entry))

    def mean(self, start_ns: int, stop_ns: int) -> float:
        """Compute the time average between two times, in packets."""
        lasts_ns, levels = self._levels(start_ns, stop_ns)
        return float((lasts_ns * levels).sum() / (stop_ns - start_ns))

    def quantile(self, share: float, start_ns: int, stop_ns: int) -> int:
        """Find the length that the queue does not exceed for a share of a time."""
        lasts_ns, levels = self._levels(start_ns, stop_ns)
        total_ns = np.bincount(levels, weights=lasts_ns).cumsum()
        return int(np.searchsorted(total_ns, share * total_ns[-1]))

    def _levels(self, start_ns: int, stop_ns: int) -> tuple[IntArray, IntArray]:
        """List the time for which each level lasts between two times, and the levels."""
        inside = self.cut_out(start_ns, stop_ns)
        edges = np.concatenate(([start_ns], inside.time_ns, [stop_ns]))
        return np.diff(edges), np.concatenate((self.count_at(np.array([start_ns])), inside.packets))


def passage(queue: Queue, entering: Packets, leaving: Packets) -> Passage:
    """Match the packets on both sides of a first-in-first-out queue.

    A packet that never left counts as dropped: see `still_queued`.

    Args:
        queue: the queue; gives a name for errors.
        entering: packets offered to the queue, in time order.
        leaving: packets that left the queue, in time order.

    Raises: AnalysisError if a packet left that never entered: the captures are incomplete.
    """
    left_ns = times_after(entering, leaving)
    found = left_ns >= 0
    unknown = len(leaving) - int(found.sum())
    if unknown:
        raise AnalysisError(
            f"{queue.interface}: {unknown} packets left the queue that no capture saw enter"
        )
    for rows in _twins(entering, ~found):
        left_ns[rows] = _latest_first(entering.time_ns[rows], left_ns[rows])
    return Passage(entering, left_ns, entering.payload_bytes > 0)


def still_queued(
    queue: Queue,
    seen: Passage,
    kernel_queued: Callable[[], int],
    refused: Callable[[], BoolArray] | None = None,
) -> Passage:
    """Tell the packets that were still queued when the captures ended from dropped ones.

    A packet that never left was dropped if one that entered the same queue after it did leave: in a
    managed queue, which may have a queue for each flow, one of the same flow. Of the others a
    drop-tail queue holds those that found a free place. A managed queue drops packets inside, too:
    the newest are those that the kernel counts. In no queue are more than the kernel counts.

    Args:
        queue: the queue; gives its limit.
        seen: its packets.
        kernel_queued: a function that reads the kernel's count of packets in it at the end.
        refused: a function that marks the packets that a policer before it drops; None without one.
    """
    find = _after_last_of_flow if queue.is_managed else partial(_with_place, queue)
    rows = find(refused, seen)
    if not len(rows):
        return seen
    left_ns = seen.left_ns.copy()
    left_ns[rows[max(len(rows) - kernel_queued(), 0) :]] = STILL_QUEUED
    return replace(seen, left_ns=left_ns)


def _after_last_of_flow(refused: Callable[[], BoolArray] | None, seen: Passage) -> IntArray:
    """List the packets that entered after the last of their flow's direction that left."""
    sender = 2 * seen.packets.flow.astype(np.int64) + seen.packets.half
    left = np.flatnonzero(seen.left_ns >= 0)
    last = np.full(sender.max(initial=0) + 1, -1)
    np.maximum.at(last, sender[left], left)
    rows = np.flatnonzero(np.arange(len(sender)) > last[sender])
    return rows[~refused()[rows]] if refused and len(rows) else rows


def _with_place(queue: Queue, refused: Callable[[], BoolArray] | None, seen: Passage) -> IntArray:
    """List the packets that a drop-tail queue took after the last one that left."""
    left = np.flatnonzero(seen.left_ns >= 0)
    first = int(left[-1]) + 1 if len(left) else 0
    entered_ns = seen.packets.time_ns[first:]
    if not len(entered_ns):
        return left[:0]
    ahead = len(left) - np.searchsorted(np.sort(seen.left_ns[left]), entered_ns, side="right")
    offered = ~refused()[first:] if refused else np.ones(len(entered_ns), dtype=np.bool_)
    rows: list[int] = []
    limit = limit_at(queue, entered_ns)
    for row in np.flatnonzero(offered).tolist():
        if ahead[row] + len(rows) < limit[row]:
            rows.append(row)
    return np.array(rows, dtype=np.int64) + first


def _twins(entering: Packets, dropped: BoolArray) -> Iterator[IntArray]:
    """List the rows of packets that look alike and had different fates: dropped and not dropped.

    A SYN-ACK that is sent again, or a reset, looks like the one before.
    """
    if not dropped.any():
        return
    key = entering.key()
    lost = key[dropped]
    found = partners(key[~dropped], lost)
    both = np.unique(lost[found[found >= 0]])
    alike = np.flatnonzero(np.isin(key, both))
    alike = alike[np.argsort(key[alike], kind="stable")]
    yield from np.split(alike, np.flatnonzero(np.diff(key[alike])) + 1)


def _latest_first(entered_ns: IntArray, left_ns: IntArray) -> IntArray:
    """Give each departure to the latest arrival before it: the earlier twins were dropped.

    Args:
        entered_ns: shape (n,), arrivals of packets that look alike.
        left_ns: shape (n,), departures of some of them; -1 for the others.
    """
    fate = np.full(len(left_ns), -1, dtype=np.int64)
    row = len(fate)
    for time_ns in sorted(left_ns[left_ns >= 0], reverse=True):
        row = min(row, int(np.searchsorted(entered_ns, time_ns, side="right"))) - 1
        fate[row] = time_ns
    return fate


def lost_between(before: Packets, after: Packets) -> BoolArray:
    """Mark the packets of one capture that a later capture does not have; shape (n,)."""
    return times_after(before, after) < 0


def mark_copies(packets: Packets) -> BoolArray:
    """Mark the packets that look like another of the same capture; shape (n,)."""
    _, kind, count = np.unique(packets.key(), return_inverse=True, return_counts=True)
    return np.asarray(count[kind] > 1)


def times_after(before: Packets, after: Packets) -> IntArray:
    """Find the times of one capture's packets in a later capture; -1 for missing packets.

    Among packets that look alike, the first in one capture is the first in the other.
    """
    place = partners(before.key(), after.key())
    time_ns = after.time_ns.take(place, mode="clip") if len(after) else place
    return np.where(place < 0, -1, time_ns)


def end_transmissions(queue: Queue, seen: Passage, ends: Ends | None = None) -> Passage:
    """Set `left_ns` to the ends of transmissions, which `ends` returns if the rate changes.

    A managed queue releases a packet, and the captures see it, when its transmission starts
    (decision 0021).
    """
    if not queue.leaves_at_start:
        return seen
    gone = (seen.left_ns >= 0) & (seen.left_ns < STILL_QUEUED)
    if ends:
        rows = np.flatnonzero(gone)[np.argsort(seen.left_ns[gone], kind="stable")]
        left_ns = seen.left_ns.copy()
        left_ns[rows] = ends(left_ns[rows], queue.link_bytes(seen.frame_bytes[rows]))
        return replace(seen, left_ns=left_ns)
    service_ns = queue.service_ns(seen.frame_bytes)
    return replace(seen, left_ns=np.where(gone, seen.left_ns + service_ns, seen.left_ns))


def leave_latest(queue: Queue, seen: Passage) -> Passage:
    """Let each packet that a managed queue dropped leave as late as possible.

    CoDel drops packets at the head of the queue, which no capture shows. The drop is at the latest
    when the next packet of the same connection leaves, which was behind the dropped one. Packets
    that a full drop-tail queue refuses never were in the queue.
    """
    if not queue.is_managed:
        return seen
    until_ns = seen.left_ns.copy()
    sender = 2 * seen.packets.flow + seen.packets.half
    for each in np.unique(sender[seen.dropped]):
        rows = np.flatnonzero(sender == each)
        left_ns = np.where(seen.dropped[rows], STILL_QUEUED, seen.left_ns[rows])
        until_ns[rows] = np.minimum.accumulate(left_ns[::-1])[::-1]
    return replace(seen, left_ns=until_ns)


def kernel_counts(
    queue: Queue, seen: Passage, length: Callable[[], Occupancy]
) -> tuple[Occupancy, Occupancy]:
    """Compute bounds of the kernel's count of packets in a queue over time.

    Args:
        queue: the queue.
        seen: its packets, as captures show them.
        length: a function that computes the queue's length, which is the count of other queues.
    """
    if queue.is_managed:
        return occupancy(seen), occupancy(leave_latest(queue, seen))
    return length(), length()


def occupancy(passed: Passage, which: BoolArray | IntArray | None = None) -> Occupancy:
    """Compute a queue's length over time.

    Args:
        passed: the packets that entered and left.
        which: a mask or rows, ascending: count only these packets; all by default.

    Returns: one step per event; an arrival at the instant of a departure counts after it.
    """
    every = slice(None) if which is None else which
    arrived, left = passed.packets.time_ns[every], passed.left_ns[every]
    counted = left >= 0
    arrived, left = arrived[counted], left[counted]
    return Occupancy(*queue_length(arrived, np.sort(left, kind="stable")))


def merge_times(*sorted_ns: IntArray | list[int]) -> IntArray:
    """Merge sorted times into one sorted array in which each occurs once.

    A stable sort of sorted runs takes a tenth of `np.unique`'s time.
    """
    time_ns = np.sort(np.concatenate(sorted_ns), kind="stable")
    return np.asarray(time_ns[np.concatenate(([True], time_ns[1:] > time_ns[:-1]))[: len(time_ns)]])


def service_error_ns(queue: Queue, passed: Passage, ends: Ends | None = None) -> IntArray:
    """Compute the lateness of each departure from a queue.

    A transmission starts when the packet arrives or when the one before it ends, whichever is
    later, and takes its analytic service time, or ends at the time that `ends` returns (see
    `passage`).

    Returns: shape (m,), ns, one per departure, positive if late; all zeros on an exact clock.
    """
    rows = passed.departures
    left, arrived = passed.left_ns[rows], passed.packets.time_ns[rows]
    size = passed.frame_bytes[rows]
    if ends:
        return left - ends(arrived, queue.link_bytes(size))
    before = np.concatenate(([0], left[:-1]))
    expected = np.maximum(arrived, before) + queue.service_ns(size)
    return np.asarray(left - expected, dtype=np.int64)
