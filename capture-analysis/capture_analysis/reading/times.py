"""Times that a capture's file has wrong: packets out of order, and a clock that was set forward.

Packets are put in order if three or more come before their time, none by a second. A step of the
clock is seen by TCP's time stamps: the first packet after a gap of a second or more whose end was
seen before it, and the last one of that end, are closer by them than by half of the gap. All later
times are set back. A machine that slept looks alike, if that end is the machine's own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from capture_analysis.columns import IntArray, Mark, Packets, concatenate, empty_columns

_GAP_NS = 1_000_000_000
_DISORDER, _LATE_NS = 3, 1_000_000_000
# Packets before a gap, and after it, among which those of one end are looked for.
_BEFORE, _AFTER = 1000, 100
# The longest tick of time stamps (RFC 7323, 5.4), that of most hosts, and ticks that show a length.
_TICK_NS, _USUAL_NS, _TICKS = 1_000_000_000, 1_000_000, 3
# Steps that the warning tells.
_TOLD = 3


class Times:
    """The right times of a capture's packets.

    Attributes:
        steps: for each step of the clock its end in the file, and its length, ns.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []
        self._before = empty_columns(0)

    def correct_chunks(self, chunks: Iterable[Packets]) -> Iterator[Packets]:
        """Yield the chunks of a capture with right times, in order."""
        for chunk in chunks:
            packets = self._right(chunk)
            kept = packets.where(slice(max(len(packets) - _BEFORE, 0), None))
            both = concatenate((self._before, kept))
            self._before = both.where(slice(max(len(both) - _BEFORE, 0), None))
            yield packets

    def right(self, time_ns: IntArray) -> IntArray:
        """Return the right times for some of the file."""
        for end_ns, step_ns in reversed(self.steps):
            time_ns = np.where(time_ns >= end_ns, time_ns - step_ns, time_ns)
        return time_ns

    def warning(self) -> str:
        """Return a sentence on the steps; "" without any."""
        if not self.steps:
            return ""
        seconds = ", ".join(f"{step_ns / 1e9:.1f}" for _, step_ns in self.steps[:_TOLD])
        more = len(self.steps) - _TOLD
        seconds += f" and {more} times more" if more > 0 else ""
        return (
            "TCP's time stamps show that the clock was set forward, or that the machine slept, by "
            f"{seconds} s: later times are set back by as much"
        )

    def _right(self, packets: Packets) -> Packets:
        told_ns = sum(step_ns for _, step_ns in self.steps)
        gaps_ns = _gaps_ns(packets)
        if gaps_ns.min(initial=0) < 0:
            packets = _in_order(packets)
            gaps_ns = _gaps_ns(packets)
        first_ns = packets.time_ns[:1] - self._before.time_ns[-1:] - told_ns
        if not told_ns and max(gaps_ns.max(initial=0), first_ns.max(initial=0)) < _GAP_NS:
            return packets
        right_ns = packets.time_ns - told_ns
        gaps_ns = np.append(first_ns, gaps_ns)
        # Without a packet before the first, gaps are counted from the second.
        for row in (np.flatnonzero(gaps_ns >= _GAP_NS) + (not len(first_ns))).tolist():
            step_ns = self._step_ns(replace(packets, time_ns=right_ns), row)
            if step_ns:
                self.steps.append((int(packets.time_ns[row]), step_ns))
                right_ns[row:] -= step_ns
        return replace(packets, time_ns=right_ns)

    def _step_ns(self, packets: Packets, row: int) -> int:
        """Return the part of the gap before a packet that time stamps contradict, ns; 0 if none."""
        near = packets.where(slice(max(row - _BEFORE, 0), row))
        near = near if len(near) == _BEFORE else concatenate((self._before, near))
        ends, later = _ends(near), packets.where(slice(row, row + _AFTER))
        for end, after in zip(_ends(later).tolist(), range(len(later)), strict=True):
            mine = np.flatnonzero(ends == end)
            if end and len(mine):
                return _contradicted_ns(near.where(mine), later.where(slice(after, after + 1)))
        return 0


def _ends(packets: Packets) -> IntArray:
    """Return a number from 1 on of the end that sent each packet; 0 without a time stamp."""
    return np.where(packets.marks & Mark.TIMESTAMPS, packets.directions + 1, 0)


def _contradicted_ns(before: Packets, after: Packets) -> int:
    """Return what the time stamps of an end lack of the time between its last packets, ns."""
    ticks, passed = (
        (int(later) - int(earlier)) % (1 << 32)
        for later, earlier in (
            (before.ts_value[-1], before.ts_value[0]),
            (after.ts_value[0], before.ts_value[-1]),
        )
    )
    span_ns = int(before.time_ns[-1]) - int(before.time_ns[0])
    gap_ns = int(after.time_ns[0]) - int(before.time_ns[-1])
    known = _TICKS <= ticks < 1 << 31 and span_ns > 0
    tick_ns, most_ns = (span_ns // ticks,) * 2 if known else (_USUAL_NS, _TICK_NS)
    if passed >= 1 << 31 or 2 * (passed + 1) * most_ns >= gap_ns:
        return 0
    return gap_ns - passed * tick_ns


def _gaps_ns(packets: Packets) -> IntArray:
    return packets.time_ns[1:] - packets.time_ns[:-1]


def _in_order(packets: Packets) -> Packets:
    time_ns = packets.time_ns
    if np.count_nonzero(_gaps_ns(packets) < 0) < _DISORDER:
        return packets
    if (np.maximum.accumulate(time_ns) - time_ns).max() >= _LATE_NS:
        return packets
    return packets.where(np.argsort(time_ns, kind="stable"))
