"""Fit straight lines between bounds, by convex hulls."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from capture_analysis.clock.envelope import UNBOUNDED, Bounds
from capture_analysis.columns import BoolArray, IntArray

FloatArray = NDArray[np.float64]

# The largest drift, ns per ns: no oscillator in use drifts more, and kernels slew a clock by at
# most half of it.
MOST_DRIFT = 1e-3
# Least number of intervals to compare on each side of a step.
_WINDOW = 4
# A step is at least this multiple of the usual movement of the bounds.
_STEP_MOVEMENTS = 5


@dataclass(frozen=True)
class Corridor:
    """Bounds of the offset as floats that are exact to the ns.

    Times and offsets are relative to a common time and a common offset.

    Attributes:
        bounds: the bounds as integers.
        at_ns, base_ns: the common time and the common offset.
    """

    bounds: Bounds
    at_ns: int
    base_ns: int

    @staticmethod
    def from_bounds(bounds: Bounds) -> "Corridor":
        """Make bounds relative to the middle of their times and to one offset."""
        above, below = bounds.above < UNBOUNDED, bounds.below > -UNBOUNDED
        times = np.concatenate((bounds.above_at[above], bounds.below_at[below]))
        values = np.concatenate((bounds.above[above], bounds.below[below]))
        return Corridor(bounds, (int(times.min()) + int(times.max())) // 2, int(values[0]))

    @property
    def has_above(self) -> BoolArray:
        """Shape (k,): True if an interval bounds the offset from above."""
        return np.asarray(self.bounds.above < UNBOUNDED)

    @property
    def has_below(self) -> BoolArray:
        """Shape (k,): True if an interval bounds the offset from below."""
        return np.asarray(self.bounds.below > -UNBOUNDED)

    @cached_property
    def above_points(self) -> FloatArray:
        """Lower hull of the bounds from above, shape (m, 2): time and offset, ns."""
        rows = self.has_above
        return _hull(self._points(self.bounds.above_at[rows], self.bounds.above[rows]))

    @cached_property
    def below_points(self) -> FloatArray:
        """Upper hull of the bounds from below, shape (m, 2)."""
        rows = self.has_below
        points = self._points(self.bounds.below_at[rows], self.bounds.below[rows])
        return _hull(points * (1, -1)) * (1, -1)

    def _points(self, at_ns: IntArray, offset_ns: IntArray) -> FloatArray:
        order = np.argsort(at_ns, kind="stable")
        columns = (at_ns - self.at_ns)[order], (offset_ns - self.base_ns)[order]
        return np.stack(columns, axis=1).astype(np.float64)

    @property
    def start_ns(self) -> int:
        """Time of the first bound."""
        firsts = (
            at[has][:1]
            for at, has in (
                (self.bounds.above_at, self.has_above),
                (self.bounds.below_at, self.has_below),
            )
        )
        return int(min(first[0] for first in firsts if len(first)))

    def gap(self) -> float:
        """Return the widest gap around a line, ns; -inf if bounded from one direction only."""
        if not (self.has_above.any() and self.has_below.any()):
            return -np.inf
        return widest_gap(self.above_points, self.below_points)[0]

    def usual_slope(self) -> float:
        """Compute the median slope of points that are half of the span apart (Theil, Sen)."""
        slopes = []
        for at, bound, has in (
            (self.bounds.above_at, self.bounds.above, self.has_above),
            (self.bounds.below_at, self.bounds.below, self.has_below),
        ):
            points = self._points(at[has], bound[has])
            apart = max(len(points) // 2, 1)
            run, rise = (points[apart:] - points[:-apart]).T
            slopes.append(rise[run > 0] / run[run > 0])
        found = np.concatenate(slopes)
        return float(np.median(found)) if len(found) else 0.0

    def part(self, rows: slice) -> "Corridor":
        """Select some of the intervals."""
        return Corridor(self.bounds.where(rows), self.at_ns, self.base_ns)

    def jumps(self, count: int) -> list[tuple[int, float]]:
        """Find the largest jumps: intervals that move both bounds alike.

        The usual movement, by drift and by queues, is subtracted.

        Returns: at most `count` pairs: number of the interval and size of its jump, ns.
        """
        window = max(_WINDOW, len(self.bounds.above) // 64)
        if len(self.bounds.above) < 2 * window + 1:
            return []
        above = np.where(self.has_above, self.bounds.above - self.base_ns, np.inf)
        below = np.where(self.has_below, self.bounds.below - self.base_ns, -np.inf)
        least = sliding_window_view(above, window).min(axis=1)
        most = sliding_window_view(below, window).max(axis=1)
        with np.errstate(invalid="ignore"):
            moves = [each[window + 1 :] - each[: -window - 1] for each in (least, most)]
        known = np.isfinite(moves).all(axis=0)
        if not known.any():
            return []
        moves = [each - np.median(each[known]) for each in moves]
        usual = [_STEP_MOVEMENTS * np.median(np.abs(each[known])) for each in moves]
        alike = known & (np.sign(moves[0]) == np.sign(moves[1]))
        for each, bound in zip(moves, usual, strict=True):
            alike[known] &= np.abs(each[known]) > bound
        size = np.where(alike, np.minimum(*np.abs(moves)), 0.0)
        largest = np.argsort(-size)[:count]
        return [(int(at) + window, float(size[at])) for at in largest if size[at] > 0]


def support(hull: FloatArray, slope: float, *, lower: bool = True) -> float:
    """Return the offset at time 0 of the line of a slope that touches a hull."""
    offsets = hull[:, 1] - slope * hull[:, 0]
    return float(offsets.min() if lower else offsets.max())


def widest_gap(above: FloatArray, below: FloatArray) -> tuple[float, float, float]:
    """Find the widest gap that a line of any slope leaves between both hulls.

    The gap is concave and piecewise linear in the slope, with corners at the hulls' edges.

    Returns: the gap, ns; the lowest and the highest slope that leave it (to a ns).
    """
    edges = [np.diff(hull[:, 1]) / np.diff(hull[:, 0]) for hull in (above, below)]
    slopes = np.concatenate((*edges, [-MOST_DRIFT, MOST_DRIFT]))
    corners = np.sort(np.clip(slopes, -MOST_DRIFT, MOST_DRIFT))
    gaps = np.array([support(above, s) - support(below, s, lower=False) for s in corners])
    best = np.flatnonzero(gaps >= gaps.max() - 1)
    return float(gaps.max()), float(corners[best[0]]), float(corners[best[-1]])


def middle_slope(hull: FloatArray) -> float:
    """Return the slope of a hull's edge at its middle time.

    This is the slope of Moon's line, which has the least sum of distances.
    """
    if len(hull) < 2:
        return 0.0
    middle = (hull[0, 0] + hull[-1, 0]) / 2
    at = min(max(int(np.searchsorted(hull[:, 0], middle)), 1), len(hull) - 1)
    rise, run = hull[at, 1] - hull[at - 1, 1], hull[at, 0] - hull[at - 1, 0]
    return float(np.clip(rise / run, -MOST_DRIFT, MOST_DRIFT))


def _hull(points: FloatArray) -> FloatArray:
    """Compute the lower convex hull of points in time order.

    The algorithm is Andrew's monotone chain.
    """
    hull: list[tuple[float, float]] = []
    for x, y in points.tolist():
        if hull and x == hull[-1][0]:
            if y >= hull[-1][1]:
                continue
            hull.pop()
        while len(hull) > 1:
            (x1, y1), (x2, y2) = hull[-2:]
            if (x2 - x1) * (y - y1) > (y2 - y1) * (x - x1):
                break
            hull.pop()
        hull.append((x, y))
    return np.array(hull, dtype=np.float64).reshape(-1, 2)
