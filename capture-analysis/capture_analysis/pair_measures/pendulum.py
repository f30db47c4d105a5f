"""Data pendulum: do the queues of both ways fill in turn?

    index = correlation over time of (forward queue busy) and (reverse queue busy)

Pearson's coefficient of the two indicators, weighted by time: -1 if exactly one is busy at any
time, a pure pendulum (Heusse, Merritt, Brown, Duda 2011). A queue is busy while it holds a packet.
The share of time in which neither is busy is capacity that both directions leave unused. Also the
correlation of the lengths: negative out of phase, positive in phase (Zhang, Shenker, Clark 1991).
Unit 1, on one clock, over the time in which both queues are
known, pauses (both empty for a second or more) left out.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from capture_analysis.pair_measure import PairMeasure, Quantity, Step, Values
from capture_analysis.queue_levels import ActiveTime, Levels

FloatArray = NDArray[np.float64]

_ONE_WAY = "packets pass both taps one way only"
_ALWAYS = "a queue is always busy, or never"


class Pendulum(PairMeasure):
    """See the module."""

    title = "Data pendulum"
    per_pair: ClassVar[Sequence[Quantity]] = (
        Quantity("pendulum_index", "1", "correlation of the queues' being busy"),
        Quantity("queue_correlation", "1", "correlation of the queues' lengths"),
        Quantity("neither_busy_share", "1", "share of time in which both queues are empty"),
        Quantity("both_busy_share", "1", "share of time in which both hold packets"),
    )

    def start(self) -> None:
        """Nothing is known yet."""
        # Sums over time of 1, x, y, x x, y y, x y: of the indicators, and of the lengths.
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
            kept[:] = [_from(levels, stop)] if levels.until_ns > stop else []

    def _add(self, first: Levels, second: Levels, start: int, stop: int) -> None:
        inside = np.concatenate(([start], first.time_ns, second.time_ns))
        edges = np.sort(inside[(inside >= start) & (inside < stop)])
        edges = edges[np.append(True, edges[1:] != edges[:-1])]
        x, y = (
            each.packets[np.searchsorted(each.time_ns, edges, side="right") - 1]
            for each in (first, second)
        )
        empty = (x == 0) & (y == 0)
        weight = self._active.durations(np.diff(edges, append=stop), empty).astype(np.float64)
        x, y = np.append(0, x), np.append(0, y)
        self._length += _sums(weight, x.astype(np.float64), y.astype(np.float64))
        self._busy += _sums(weight, (x > 0).astype(np.float64), (y > 0).astype(np.float64))

    def of_pair(self) -> Values:
        """See the class."""
        total, x, y, _, _, both = self._busy
        if not total:
            return {q.name: _ONE_WAY for q in self.per_pair}
        return {
            "pendulum_index": _correlation(self._busy),
            "queue_correlation": _correlation(self._length),
            "neither_busy_share": float((total - x - y + both) / total),
            "both_busy_share": float(both / total),
        }


def _sums(weight: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    wx, wy = weight * x, weight * y
    parts = (weight, wx, wy, wx * x, wy * y, wx * y)
    return np.array([part.sum() for part in parts])


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


def _from(levels: Levels, start_ns: int) -> Levels:
    """The rest of a step function, from a time on."""
    at = int(np.searchsorted(levels.time_ns, start_ns, side="right")) - 1
    time_ns = levels.time_ns[at:].copy()
    time_ns[0] = start_ns
    return Levels(time_ns, levels.packets[at:], levels.bytes[at:], levels.until_ns)
