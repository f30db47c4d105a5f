"""The time in which two links transmit, in bins of time."""

import numpy as np
import pytest
from capture_analysis.facts.busy_series import BINS, BusySeries
from hypothesis import given
from hypothesis import strategies as st

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
