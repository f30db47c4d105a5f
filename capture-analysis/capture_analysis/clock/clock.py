"""Map two capture clocks to one, by the delays in both directions.

A packet from tap A to tap B shows b - a = offset + delay, one from B to A b - a = offset - delay,
and no delay is negative: the offset lies below every difference of the first kind and above every
difference of the second. Offset and drift are the line that leaves the widest gap to both (Moon,
Skelly and Towsley 1999, here for both directions at once); the gap is the shortest round trip
between the taps. The place of the offset in the gap cannot be measured from packets: the middle is
taken, as if the shortest delays of both directions were equal, and half the gap is the uncertainty.
"""

from dataclasses import dataclass

import numpy as np

from capture_analysis.clock.envelope import UNBOUNDED, Envelope
from capture_analysis.clock.straight_lines import (
    MOST_DRIFT,
    Corridor,
    middle_slope,
    support,
    widest_gap,
)
from capture_analysis.columns import IntArray

# Smaller differences between lines count as errors of time stamping, ns.
RESOLUTION_NS = 1000
ALWAYS_NS = -(1 << 62)
_STEPS_AT_MOST = 16
_CANDIDATES = 8
# Intervals to leave out before and after a step; a larger margin is taken only if it widens the gap
# by this factor.
_MARGINS = (0, 1, 2, 4, 8, 16, 32)
_MARGIN_GAIN = 1.01


@dataclass(frozen=True)
class Line:
    """The second clock minus the first, as a line that is valid from some time on.

    Attributes:
        from_ns: start of the line's validity, on the first clock.
        at_ns: the time for which the offset is given.
        offset_ns: the difference at that time.
        drift: ns per ns.
        drift_uncertainty: the largest difference of drift between this line and another that fits.
        shortest_ns: shortest delay from A to B and from B to A; None if not seen.
    """

    from_ns: int
    at_ns: int
    offset_ns: float
    drift: float
    drift_uncertainty: float
    shortest_ns: tuple[float | None, float | None]

    def __call__(self, time_ns: IntArray) -> IntArray:
        """Return the difference of the clocks at times of the first, (n,), ns."""
        change = self.offset_ns + self.drift * (time_ns - self.at_ns)
        return np.asarray(np.rint(change), dtype=np.int64)

    def on_first(self, time_ns: IntArray) -> IntArray:
        """Convert times of the second clock to the first; shape (n,), ns."""
        since = (time_ns - self.at_ns - self.offset_ns) / (1 + self.drift)
        change = self.offset_ns + self.drift * since
        return np.asarray(time_ns - np.rint(change).astype(np.int64), dtype=np.int64)


@dataclass(frozen=True)
class Clock:
    """The second capture's clock relative to the first's.

    Attributes:
        lines: in time order; each step of the clock begins a new one.
        how: the basis of the estimate, in words.
        uncertainty_ns: possible error of the offset; None if nothing bounds it.
    """

    lines: tuple[Line, ...]
    how: str
    uncertainty_ns: float | None

    def on_first(self, time_ns: IntArray) -> IntArray:
        """Convert the second capture's times to the first's clock, (n,), ns."""
        result = self.lines[0].on_first(time_ns)
        for line in self.lines[1:]:
            later = line.on_first(time_ns)
            result = np.where(later >= line.from_ns, later, result)
        return result

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Time, on the first clock, and size of each step of the second clock, ns."""
        return [
            (after.from_ns, int((after(at) - before(at))[0]))
            for before, after in zip(self.lines, self.lines[1:], strict=False)
            for at in [np.array([after.from_ns])]
        ]


def slowest_ns(clock: Clock, envelope: Envelope) -> int:
    """Bound the longest time, by the clock, from one tap to the other."""
    bounds, longest = envelope.bounds(), 0
    # The envelope does not show when in its interval the slowest packet passed.
    drift_ns = max(abs(line.drift) for line in clock.lines) * envelope.width_ns
    for bound, at_ns, sign in (
        (bounds.most, bounds.above_at, 1),
        (bounds.least, bounds.below_at, -1),
    ):
        known = np.abs(bound) < UNBOUNDED
        on_first = clock.on_first(at_ns[known] + bound[known])
        longest = max(longest, int((sign * (on_first - at_ns[known])).max(initial=0)))
    return longest + round(drift_ns)


def fit(envelope: Envelope) -> Clock:
    """Estimate the clock from the delays in both directions."""
    corridor = Corridor.from_bounds(envelope.bounds())
    if not (corridor.has_above.any() and corridor.has_below.any()):
        how = "one direction only: the shortest delay is part of the offset"
        return Clock((_one_way(corridor),), how, None)
    parts = _split(corridor, _STEPS_AT_MOST)
    if len(parts) == 1 and _is_one_clock(corridor):
        line = _line(corridor, ALWAYS_NS, 0.0, 0.0, 0.0)
        how = "one clock: no packet contradicts it, and no drift fits better"
        return Clock((line,), how, max(each or 0.0 for each in line.shortest_ns))
    lines = tuple(_both_directions(p, p.start_ns if k else ALWAYS_NS) for k, p in enumerate(parts))
    gaps = [sum(each or 0.0 for each in line.shortest_ns) for line in lines]
    how = "estimated: the shortest delays of both directions are assumed to be equal"
    return Clock(lines, how, max(gaps) / 2)


def same_clock(envelope: Envelope) -> Clock:
    """Return the clock of two captures that are known to have the same one."""
    line = _line(Corridor.from_bounds(envelope.bounds()), ALWAYS_NS, 0.0, 0.0, 0.0)
    return Clock((line,), "given: one clock", 0.0)


def _line(
    corridor: Corridor, from_ns: int, offset_ns: float, slope: float, uncertainty: float
) -> Line:
    """Make a line, with the shortest delays that it implies."""
    above, below = corridor.above_points, corridor.below_points
    return Line(
        from_ns,
        corridor.at_ns,
        offset_ns,
        slope,
        uncertainty,
        (
            support(above, slope) + corridor.base_ns - offset_ns if len(above) else None,
            offset_ns - corridor.base_ns - support(below, slope, lower=False)
            if len(below)
            else None,
        ),
    )


def _both_directions(corridor: Corridor, from_ns: int) -> Line:
    above, below = corridor.above_points, corridor.below_points
    _, low, high = widest_gap(above, below)
    # Of the slopes that leave the same gap, take the one that keeps most delays constant.
    slope = min(max(corridor.usual_slope(), low), high)
    spread = abs(middle_slope(above) - middle_slope(below)) / 2
    middle = (support(above, slope) + support(below, slope, lower=False)) / 2
    uncertainty = max(high - slope, slope - low, min(spread, MOST_DRIFT))
    return _line(corridor, from_ns, middle + corridor.base_ns, slope, uncertainty)


def _one_way(corridor: Corridor) -> Line:
    lower = bool(corridor.has_above.any())
    points = corridor.above_points if lower else corridor.below_points
    slope = middle_slope(points)
    offset_ns = support(points, slope, lower=lower) + corridor.base_ns
    return _line(corridor, ALWAYS_NS, offset_ns, slope, MOST_DRIFT)


def _is_one_clock(corridor: Corridor) -> bool:
    """Test whether one clock without drift fits every packet best."""
    above, below = corridor.above_points, corridor.below_points
    top, bottom = support(above, 0.0), support(below, 0.0, lower=False)
    if top + corridor.base_ns < -RESOLUTION_NS or bottom + corridor.base_ns > RESOLUTION_NS:
        return False
    gap, _, _ = widest_gap(above, below)
    return top - bottom >= gap - RESOLUTION_NS


def _split(corridor: Corridor, steps: int) -> list[Corridor]:
    """Cut a corridor where both bounds jump alike, if no single line fits.

    A queue that fills moves one direction's bound. A data pendulum moves both, but only for a
    while. A step of a clock moves both by the same amount, permanently.
    """
    whole = corridor.gap()
    best, least = [corridor], 0.0
    for at, size in corridor.jumps(_CANDIDATES) if steps else []:
        # Packets that were under way when the clock was set belong to neither part.
        for margin in _MARGINS:
            parts = [
                corridor.part(slice(0, max(at - margin, 0))),
                corridor.part(slice(at + 1 + margin, None)),
            ]
            gain = min(part.gap() for part in parts) - whole
            if gain > max(size / 4, 2 * RESOLUTION_NS, _MARGIN_GAIN * least):
                best, least = parts, gain
    if len(best) == 1:
        return best
    return [piece for part in best for piece in _split(part, steps // 2)]
