"""Data pendulum: whether the queues of both directions fill in turn.

    index = correlation over time of (forward queue busy) and (reverse queue busy)

Pearson's coefficient of the two indicators, weighted by time: -1 if exactly one is busy at any
time, a pure pendulum (Heusse, Merritt, Brown, Duda 2011). A queue is busy while it holds a packet.
The share of time in which neither is busy is capacity that both directions leave unused. Also the
correlation of the lengths: negative out of phase, positive in phase (Zhang, Shenker, Clark 1991).
Unit 1, on one clock, over the time in which both queues are known, pauses (both empty for a second
or more) left out.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.two_captures.pair_measure import PairMeasure, Quantity, Step, Values
from capture_analysis.two_captures.queue_levels import ActiveTime, Levels

FloatArray = NDArray[np.float64]

_ONE_WAY = "packets pass both taps one way only"
_ALWAYS = "a queue is always busy, or never"


class Pendulum(PairMeasure):
    """Correlation of the two queues between the taps."""

    title = "Data pendulum"
    picture = "queue"
    per_pair: ClassVar[Sequence[Quantity]] = (
        Quantity("pendulum_index", "1", "correlation of the queues' being busy"),
        Quantity("queue_correlation", "1", "correlation of the queues' lengths"),
        Quantity("neither_busy_share", "1", "share of time in which both queues are empty"),
        Quantity("both_busy_share", "1", "share of time in which both hold packets"),
    )

    def start(self) -> None:
        """Create the empty counts and sums."""
        # Sums over time of 1, x, y, x x, y y, x y; x, y: busy or not (0, 1), or the lengths.
        self._busy, self._length = np.zeros(6), np.zeros(6)
        self._active = ActiveTime()
        self._parts: tuple[list[Levels], list[Levels]] = ([], [])

    def add(self, step: Step) -> None:
        """Take the next packets."""
        for kept, levels in zip(self._parts, step.levels, strict=True):
            if levels is not None:
                kept.append(levels)
        first, second = (_joined(kept) for kept in self._parts)
        if first is None or second is None:
            return
        start = max(int(first.time_ns[0]), int(second.time_ns[0]))
        stop = min(first.until_ns, second.until_ns)
        if stop > start:
            self._add(first, second, start, stop)
        for kept, levels in zip(self._parts, (first, second), strict=True):
            kept[:] = [_between(levels, stop, levels.until_ns)] if levels.until_ns > stop else []

    def _add(self, first: Levels, second: Levels, start: int, stop: int) -> None:
        first, second = _between(first, start, stop), _between(second, start, stop)
        self._add_busy(first, second, stop)
        dx, dy = first.duration_ns, second.duration_ns
        x, y = first.packets, second.packets
        x_ns, y_ns = x * dx, y * dy
        # The integral of y up to each of x's times.
        until = np.append(0, np.cumsum(y_ns))
        edges = np.append(first.time_ns, stop)
        at = np.searchsorted(second.time_ns, edges, side="right") - 1
        amount = until.take(at) + y.take(at) * (edges - second.time_ns.take(at))
        found = x_ns.sum(), y_ns.sum(), x @ x_ns, y @ y_ns, x @ np.diff(amount)
        self._length += np.array([0, *found], dtype=np.float64)

    def _add_busy(self, first: Levels, second: Levels, stop: int) -> None:
        changes = [_busy_changes(each) for each in (first, second)]
        edges = np.sort(np.concatenate([time_ns for time_ns, _ in changes]))
        x, y = (
            busy[np.searchsorted(time_ns, edges, side="right") - 1] for time_ns, busy in changes
        )
        weight = self._active.durations(np.diff(edges, append=stop), ~(x | y)).astype(np.float64)
        found = [weight[1:][each].sum() for each in (x, y, x, y, x & y)]
        self._busy += np.array([weight.sum(), *found])
        self._length[0] = self._busy[0]

    def of_pair(self) -> Values:
        """Return the quantities of both captures together, by name."""
        total, x, y, _, _, both = self._busy
        if not total:
            return {q.name: _ONE_WAY for q in self.per_pair}
        return {
            "pendulum_index": _correlation(self._busy),
            "queue_correlation": _correlation(self._length),
            "neither_busy_share": float((total - x - y + both) / total),
            "both_busy_share": float(both / total),
        }


def _between(levels: Levels, start: int, stop: int) -> Levels:
    """Cut a step function to the part between two times within its span."""
    first = int(np.searchsorted(levels.time_ns, start, side="right")) - 1
    last = int(np.searchsorted(levels.time_ns, stop))
    time_ns = levels.time_ns[first:last].copy()
    time_ns[0] = start
    return Levels(time_ns, levels.packets[first:last], levels.bytes[first:last], stop)


def _busy_changes(levels: Levels) -> tuple[IntArray, BoolArray]:
    """Find when a queue becomes busy or empty, and its state at the start."""
    busy = levels.packets > 0
    at = np.flatnonzero(np.append(True, busy[1:] != busy[:-1]))
    return levels.time_ns[at], busy[at]


def _correlation(sums: FloatArray) -> float | str:
    total, x, y, xx, yy, xy = sums
    spread = (xx / total - (x / total) ** 2) * (yy / total - (y / total) ** 2)
    if spread <= 1e-18:
        return _ALWAYS
    return float((xy / total - x * y / total**2) / np.sqrt(spread))


def _joined(parts: list[Levels]) -> Levels | None:
    if not parts:
        return None
    return Levels(
        np.concatenate([part.time_ns for part in parts]),
        np.concatenate([part.packets for part in parts]),
        np.concatenate([part.bytes for part in parts]),
        parts[-1].until_ns,
    )
