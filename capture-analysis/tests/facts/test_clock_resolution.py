"""The resolution of a clock, from its times."""

import numpy as np
import pytest
from capture_analysis.facts.clock_resolution import clock_resolution_ns


@pytest.mark.parametrize("unit_ns", [1_000, 1_000_000, 10_000_000, 15_625_000])
def test_unit_found_despite_odd_times(unit_ns: int) -> None:
    """The unit of a clock is found, whatever its offset, though one time of a thousand is odd."""
    random = np.random.default_rng(unit_ns % 97)
    time_ns = 946_684_800_123_456_789 + np.cumsum(random.integers(0, 40, 1000)) * unit_ns
    time_ns[300] += 7
    assert clock_resolution_ns(time_ns) == unit_ns


def test_odd_times_at_the_start() -> None:
    """One step of a hundred may be odd, even if all odd ones come first."""
    time_ns = np.arange(1001) * 1_000_000
    time_ns[1:10:2] += 7
    assert clock_resolution_ns(time_ns) == 1_000_000
    time_ns[11] += 7
    assert clock_resolution_ns(time_ns) == 1


def test_fine_clock() -> None:
    """Times of a clock of nanoseconds have no common divisor."""
    random = np.random.default_rng(1)
    assert clock_resolution_ns(np.cumsum(random.integers(1, 10**6, 1000))) == 1


def test_pace_of_a_link_is_no_clock() -> None:
    """Segments paced at 1.5 ms, with one odd step in 200, come from a clock of nanoseconds."""
    steps = np.tile([0, 1_500_000, 1_500_000, 3_000_000], 500)
    steps[::200] = 1_595_903
    assert clock_resolution_ns(946_684_800_000_000_257 + np.cumsum(steps)) == 1


def test_pace_on_a_coarse_clock() -> None:
    """A pace of 20 ms without an odd step leaves the clock a unit that divides it."""
    assert clock_resolution_ns(np.arange(1000) * 20_000_000) == 10_000_000


def test_times_that_many_share() -> None:
    """If a thousand packets have only five times, the shortest step between them is the clock's."""
    time_ns = np.repeat(np.array([0, 10, 20, 40, 50]) * 1_000_000, 200)
    assert clock_resolution_ns(time_ns) == 10_000_000


def test_too_few_times() -> None:
    """A handful of times does not show the clock's resolution."""
    assert clock_resolution_ns(np.arange(10) * 10**7) == 1
