"""Compute a queue's level from the times of entering and leaving."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.one_capture.tally import PAUSE_NS


def steps(
    arrived_ns: IntArray, left_ns: IntArray, *sizes: tuple[IntArray, IntArray]
) -> tuple[IntArray, ...]:
    """Sort the changes of a queue's level by time.

    Args:
        arrived_ns: shape (n,), time at which each packet enters.
        left_ns: shape (m,), time at which each packet leaves.
        sizes: one pair for each kind of level, such as packets or bytes: its increase for each
            packet that enters, shape (n,), and its decrease for each that leaves, shape (m,).

    Returns: the times and the changes of each kind, shape (m + n,); a packet that enters at the
        instant of a departure does so after it.
    """
    time_ns = np.concatenate((left_ns, arrived_ns))
    order = np.argsort(time_ns, kind="stable")
    changes = (np.concatenate((-left, entered)) for entered, left in sizes)
    return time_ns.take(order), *(change.take(order) for change in changes)


def transmission_starts(arrived_ns: IntArray, left_ns: IntArray, before_ns: int) -> IntArray:
    """Compute the start of each packet's transmission.

    A transmission starts on arrival, or at the end of the transmission before it.

    Args:
        arrived_ns: shape (n,), in the order of leaving.
        left_ns: shape (n,), end of each transmission.
        before_ns: end of the transmission before the first.
    """
    previous = np.concatenate(([before_ns], left_ns))[: len(left_ns)]
    return np.asarray(np.maximum(arrived_ns, previous))


@dataclass(frozen=True)
class Levels:
    """A queue's level over a span of time: `packets[k]` from `time_ns[k]` on.

    Attributes:
        time_ns: shape (n,), ascending; the first is the start of the span.
        packets, bytes: shape (n,).
        until_ns: end of the span.
    """

    time_ns: IntArray
    packets: IntArray
    bytes: IntArray
    until_ns: int

    @cached_property
    def duration_ns(self) -> IntArray:
        """Shape (n,): duration of each level."""
        return np.diff(self.time_ns, append=self.until_ns)


class ActiveTime:
    """Leaves out pauses: empty stretches of at least PAUSE_NS.

    A stretch may extend over several blocks.
    """

    def __init__(self) -> None:
        self._empty_ns = 0

    def durations(self, duration_ns: IntArray, empty: BoolArray) -> IntArray:
        """Return the part of each level's duration that counts.

        Args:
            duration_ns: shape (n,), duration of each level.
            empty: shape (n,), True if the level is empty.

        Returns: shape (n + 1,): first the duration of an empty stretch that earlier blocks began; 0
            for a level in a pause or in a stretch that is still open.
        """
        duration_ns = np.concatenate(([self._empty_ns], duration_ns))
        empty = np.concatenate(([True], empty))
        starts = np.flatnonzero(empty & ~np.append(False, empty[:-1]))
        total = np.cumsum(duration_ns)
        ends = np.flatnonzero(empty & ~np.append(empty[1:], False))
        lasted = total[ends] - total[starts] + duration_ns[starts]
        counted = np.where(empty, 0, duration_ns)
        counted[starts] = np.where(lasted < PAUSE_NS, lasted, 0)
        self._empty_ns = 0
        if empty[-1]:
            self._empty_ns, counted[starts[-1]] = int(lasted[-1]), 0
        return counted


class QueueLevel:
    """Follows the level of a queue whose packets come block by block."""

    def __init__(self) -> None:
        self._packets = self._bytes = 0
        self._from_ns: int | None = None
        self._leaving = np.zeros((2, 0), dtype=np.int64)

    def add(
        self, arrived_ns: IntArray, left_ns: IntArray, size: IntArray, until_ns: int
    ) -> Levels | None:
        """Take packets; return the levels until a time, or None.

        The result is None as long as no packet has entered.

        Args:
            arrived_ns: shape (n,), time at which each packet enters, sorted.
            left_ns: shape (n,), time at which each packet leaves.
            size: shape (n,), bytes.
            until_ns: packets of later calls do not enter before this time.
        """
        leaving = np.concatenate((self._leaving, np.stack((left_ns, size))), axis=1)
        if self._from_ns is None:
            if not len(arrived_ns):
                return None
            self._from_ns = int(arrived_ns[0])
        last_ns = max(int(leaving[0].max(initial=0)), int(arrived_ns.max(initial=0)))
        until_ns = max(min(until_ns, last_ns), self._from_ns)
        now = leaving[0] <= until_ns if until_ns == last_ns else leaving[0] < until_ns
        self._leaving, leaving = leaving[:, ~now], leaving[:, now]
        ones = np.ones_like(size), np.ones_like(leaving[1])
        time_ns, packets, changes = steps(arrived_ns, leaving[0], ones, (size, leaving[1]))
        levels = Levels(
            np.concatenate(([self._from_ns], time_ns)),
            np.cumsum(np.concatenate(([self._packets], packets))),
            np.cumsum(np.concatenate(([self._bytes], changes))),
            until_ns,
        )
        self._from_ns = until_ns
        self._packets, self._bytes = int(levels.packets[-1]), int(levels.bytes[-1])
        return levels
