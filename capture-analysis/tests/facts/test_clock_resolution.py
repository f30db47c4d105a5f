"""The resolution of a clock, from its times."""

import numpy as np
import pytest
from capture_analysis.facts.clock_resolution import clock_resolution_ns


@pytest.mark.parametrize("unit_ns", [1_000, 1_000_000, 10_000_000, 15_625_000])
def test_unit_found_despite_odd_times(unit_ns: int) -> None:
    """A clock's unit is found for any offset, though one time of a thousand is no multiple."""
    random = np.random.default_rng(unit_ns % 97)
    time_ns = 946_684_800_123_456_789 + np.cumsum(random.integers(0, 40, 1000)) * unit_ns
    time_ns[300] += 7
    assert clock_resolution_ns(time_ns) == unit_ns


def test_odd_times_at_the_start() -> None:
    """One step of a hundred may be no multiple of the unit, even if all of these come first."""
    time_ns = np.arange(1001) * 1_000_000
    time_ns[1:10:2] += 7
    assert clock_resolution_ns(time_ns) == 1_000_000
    time_ns[11] += 7
    assert clock_resolution_ns(time_ns) == 1


def test_fine_clock() -> None:
    """The times of a nanosecond clock have no common divisor, so its resolution is 1 ns."""
    random = np.random.default_rng(1)
    assert clock_resolution_ns(np.cumsum(random.integers(1, 10**6, 1000))) == 1


def test_pace_of_a_link_is_no_clock() -> None:
    """Segments paced at 1.5 ms, with one other step in 200, come from a nanosecond clock."""
    steps = np.tile([0, 1_500_000, 1_500_000, 3_000_000], 500)
    steps[::200] = 1_595_903
    assert clock_resolution_ns(946_684_800_000_000_257 + np.cumsum(steps)) == 1


def test_pace_on_a_coarse_clock() -> None:
    """A steady pace of 20 ms gives the clock a resolution that divides it, 10 ms."""
    assert clock_resolution_ns(np.arange(1000) * 20_000_000) == 10_000_000


def test_times_that_many_share() -> None:
    """If a thousand packets have only five times, their shortest step is the resolution."""
    time_ns = np.repeat(np.array([0, 10, 20, 40, 50]) * 1_000_000, 200)
    assert clock_resolution_ns(time_ns) == 10_000_000


def test_too_few_times() -> None:
    """A few times do not show the clock's resolution."""
    assert clock_resolution_ns(np.arange(10) * 10**7) == 1
