"""Find the resolution of a capture's clock from its times alone."""

import numpy as np

from capture_analysis.columns import IntArray

# Resolutions of known clocks: Windows's timer, jiffies, tools that round.
UNITS_NS = (
    100_000_000, 15_625_000, 10_000_000, 4_000_000, 1_000_000, 100_000, 10_000, 1_000, 100
)  # fmt: skip
# Share of steps that must be multiples of a unit; a finer clock's steps are multiples by chance in
# 1 of 10.
_MULTIPLES, _LEAST_STEPS = 0.99, 10
# Steps are tested in this number of parts, because the first part excludes most units.
_PARTS = 32
# A step is common if it has this share of the first steps, which are a sample.
_COMMON, _SAMPLE = 0.01, 4096


def clock_resolution_ns(time_ns: IntArray) -> int:
    """Return the coarsest unit that divides the steps from packet to packet.

    With fewer than _LEAST_STEPS steps it is the shortest step if many packets share each time, else
    1. One step in a hundred may be odd, unless the common steps are multiples of a larger unit:
    then a link paces the packets, as in virtual time, and the odd steps show the clock.
    """
    steps = np.diff(time_ns)
    steps = steps[steps != 0]
    if len(steps) < _LEAST_STEPS:
        shared = len(time_ns) > _LEAST_STEPS * (len(steps) + 1)
        return int(np.abs(steps).min(initial=UNITS_NS[0])) if shared else 1
    unit = _unit_ns(steps, _MULTIPLES)
    return unit if _common_ns(steps) == unit else _unit_ns(steps, 1)


def _unit_ns(steps: IntArray, share: float) -> int:
    return next((unit for unit in UNITS_NS if _are_multiples(steps, unit, share)), 1)


def _common_ns(steps: IntArray) -> int:
    """Return the greatest common divisor of the common steps."""
    step, count = np.unique(np.abs(steps[:_SAMPLE]), return_counts=True)
    return int(np.gcd.reduce(step[count >= _COMMON * count.sum()]))


def _are_multiples(steps: IntArray, unit: int, share: float) -> bool:
    """Tell whether a share of the steps are multiples of a unit; a few steps exclude most units."""
    others, least = 0, share * len(steps)
    for part in np.array_split(steps, _PARTS):
        others += int(np.count_nonzero(part % unit))
        if len(steps) - others < least:
            return False
    return True
