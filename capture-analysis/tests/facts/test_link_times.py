"""Times of links: when they transmit, clock resolutions, and random gaps like those of a link."""

from collections.abc import Callable

import numpy as np
import pytest
from capture_analysis.facts.busy_series import BINS, BusySeries
from capture_analysis.facts.fact_finder import clock_resolution_ns
from capture_analysis.facts.gap_modes import modes
from hypothesis import given
from hypothesis import strategies as st

# The time in which two links transmit, in bins of time.

BIN_NS = 1 << 17
TIMES = st.lists(st.integers(0, 3 * BINS * BIN_NS), min_size=2, max_size=30)


def series(times: list[int], link: int = 0, service_ns: int = 1000) -> BusySeries:
    """Make a series with one packet at each time."""
    made = BusySeries()
    time_ns = np.array(times, dtype=np.int64)
    made.add(np.full(len(times), link), time_ns, np.full(len(times), service_ns))
    return made


@given(TIMES, st.integers(0, 30), st.booleans())
def test_parts_merge(times: list[int], cut: int, turned: bool) -> None:
    """Two parts merge, in either order, into the series of the whole."""
    whole, parts = series(times), [series(times[:cut]), series(times[cut:])]
    one, two = parts[::-1] if turned else parts
    one.merge(two)
    expected, found = whole.shares(), one.shares()
    assert found.width_ns == expected.width_ns
    assert np.array_equal(found.busy, expected.busy)


def test_bins_are_bounded() -> None:
    """A day takes no more memory than a second."""
    assert len(series([0, 86_400_000_000_000])) <= BINS


def test_what_is_too_much_waits() -> None:
    """Packets that arrive at once keep the link busy for the sum of their transmission times."""
    made = series([0, 0, 0], service_ns=BIN_NS)
    made.add(np.zeros(1, np.int64), np.array([9 * BIN_NS]), np.array([BIN_NS // 2]))
    assert made.shares().busy[0].tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0.5]


def test_pauses_are_left_out() -> None:
    """A second in which neither link transmits does not count as time of the links."""
    second = 1_000_000_000
    assert made_of_pause(second // 2) > 3000
    assert made_of_pause(2 * second) == pytest.approx(2, abs=2)


def made_of_pause(pause_ns: int) -> int:
    """Return the number of bins that count, for two packets a given time apart."""
    return int(series([0, pause_ns]).shares().busy.shape[1])


# The resolution of a clock, from its times.


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


# The frequency with which random gaps look like those of a link.

Random = np.random.Generator
GAPS = 400_000
FAMILIES: dict[str, Callable[[Random, tuple[int, int]], np.ndarray]] = {
    "exponential": lambda random, shape: random.exponential(1, shape),
    "uniform": lambda random, shape: random.uniform(0, 2, shape),
    "lognormal, sigma 2": lambda random, shape: random.lognormal(0, 2, shape),
    "lognormal, sigma 0.5": lambda random, shape: random.lognormal(0, 0.5, shape),
    "lognormal, sigma 0.2": lambda random, shape: random.lognormal(0, 0.2, shape),
    "Pareto": lambda random, shape: random.pareto(1.5, shape),
}


def alarms(gaps: np.ndarray) -> float:
    """Return the share of samples (rows of gaps) whose mode counts as a link's."""
    samples, count = gaps.shape
    gap_ns = np.maximum(1e6 * gaps, 1).astype(np.int64).ravel()
    group = np.repeat(np.arange(samples), count)
    return float(modes(group, np.full(len(gap_ns), 12_000.0), gap_ns, samples, 0.5).true.mean())


@pytest.mark.parametrize("count", [20, 50, 200, 2000])
@pytest.mark.parametrize("family", FAMILIES)
def test_random_gaps_are_no_link(family: str, count: int) -> None:
    """At most one in 500 samples of random gaps counts as having a mode."""
    random = np.random.default_rng(len(family) + count)
    samples = max(GAPS // count, 1000)
    assert alarms(FAMILIES[family](random, (samples, count))) <= 0.002


@pytest.mark.parametrize("count", [50, 200, 2000])
def test_a_link_among_random_gaps(count: int) -> None:
    """If half of the gaps are a link's, within 2 %, nearly every sample has a mode."""
    random = np.random.default_rng(count)
    gaps = random.exponential(4, (100, count))
    gaps[:, ::2] = random.normal(1, 0.01, gaps[:, ::2].shape)
    assert alarms(gaps) >= 0.95
