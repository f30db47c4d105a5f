"""Busy periods, from a queue's departures, and the peaks of its data during them."""

import math
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.column_run import analysis_of, queue_view
from support.queue_columns import passage_of

from twoway.measure.busy_periods import BusyPeriods, busy_peaks, busy_periods, growth
from twoway.measure.metrics.busy_periods import alternating_peaks, idle_periods
from twoway.measure.queues import Occupancy, Passage, occupancy


def departures(kinds: str) -> Passage:
    """Make packets that leave one second apart from 0 on: D is data, a is an acknowledgement."""
    times = list(range(len(kinds)))
    return passage_of(times, times, payload_bytes=[int(kind == "D") for kind in kinds])


def as_pairs(periods: BusyPeriods) -> list[tuple[int, int]]:
    """Return start and number of segments of each busy period."""
    return list(zip(periods.start_ns.tolist(), periods.segments.tolist(), strict=True))


def test_window_takes_starts() -> None:
    """A period belongs to the window in which it starts, even if the ACK before it does not."""
    everything = departures("aDDaDaDDDaDa")
    assert as_pairs(busy_periods(everything, 4, 11)) == [(4, 1), (6, 3)]
    assert as_pairs(busy_periods(everything, 5, 11)) == [(6, 3)]
    assert as_pairs(busy_periods(everything, 4, 10)) == [(4, 1)]


@given(st.text("Da", max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_by_grouping(kinds: str, start: int, stop: int) -> None:
    """Starts and lengths equal those of runs found by grouping the departures."""
    runs = [list(group) for _, group in groupby(enumerate(kinds), key=lambda pair: pair[1])]
    found = [(run[0][0], len(run)) for run in runs[1:] if run[0][1] == "D"]
    found = [(at, length) for at, length in found if start <= at < stop]
    assert as_pairs(busy_periods(departures(kinds), start, stop)) == found[:-1]


def test_dropped_packets_separate_nothing() -> None:
    """An acknowledgement that was dropped does not end a busy period."""
    passed = passage_of([0, 1, 2, 3, 4, 5], [0, 1, -1, 3, 4, 5], payload_bytes=[0, 1, 0, 1, 0, 1])
    assert as_pairs(busy_periods(passed, 0, 99)) == [(1, 2)]


@pytest.mark.parametrize(
    ("starts_s", "cycle_s"),
    [
        ([0, 1, 4], 2.0),
        ([0, 1, 4, 5], 2.0),  # with the fourth start the mean would be 5/3
        ([0, 1, 4, 5, 8], 2.0),
    ],
)
def test_cycle_is_over_pairs(starts_s: list[int], cycle_s: float) -> None:
    """The mean cycle spans an even number of periods, because these alternate in length."""
    starts = np.array(starts_s) * 1_000_000_000
    assert BusyPeriods(starts, np.ones_like(starts)).cycle_s() == cycle_s


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_cycle(count: int) -> None:
    """Fewer than three starts make no cycle."""
    starts = np.arange(count)
    assert np.isnan(BusyPeriods(starts, starts).cycle_s())


RUN = analysis_of(stop_ns=1000)


def test_peaks_that_alternate() -> None:
    """For peaks of 2, 5, 4, 1 and 9 the medians of odd and even busy periods are 4 and 3."""
    entered, kinds = [0], [0]
    for at, peak in enumerate((2, 5, 4, 1, 9, 7), start=1):
        entered += [100 * at] * (peak + 1)
        kinds += [1] * peak + [0]
    left = [at + place for place, at in enumerate(entered)]
    passed = passage_of(entered, left, payload_bytes=kinds)
    assert alternating_peaks.measure(RUN, queue_view(passed)) == (4, 3)


def test_idle_periods_have_an_end() -> None:
    """A queue empty from 10 to 20 and 35 to 70 ns idles twice; periods cut off do not count.

    An instant between two packets is no idle period.
    """
    steps = [(5, 1), (10, 0), (20, 1), (30, 0), (30, 1), (35, 0), (70, 2), (80, 0)]
    view = queue_view(all_packets=Occupancy(*np.array(steps, dtype=np.int64).T))
    expected = (2, 22.5e-9, 35e-9)
    assert idle_periods.measure(RUN, view) == pytest.approx(expected, rel=1e-12)
    view = queue_view(all_packets=Occupancy(*np.array(steps[:3], dtype=np.int64).T))
    assert idle_periods.measure(RUN, view) == pytest.approx((1, 10e-9, 10e-9), rel=1e-12)


# Peaks of a queue's data during busy periods, and the growth of busy periods.


def _peaks(passed: Passage, start_ns: int = 0, stop_ns: int = 99) -> list[int]:
    found = busy_peaks(passed, occupancy(passed, passed.is_data), start_ns, stop_ns)
    assert len(found) == len(busy_periods(passed, start_ns, stop_ns).segments)
    return [int(peak) for peak in found]


# Packets that leave: an ACK; three segments that wait together; an ACK; two segments, each alone in
# the queue; an ACK; a segment.
ALTERNATING = passage_of(
    [0, 5, 5, 5, 5, 20, 30, 30, 40],
    [1, 10, 12, 14, 15, 25, 35, 36, 45],
    payload_bytes=[0, 9, 9, 9, 0, 9, 9, 0, 9],
)


def test_each_busy_period_has_its_peak() -> None:
    """Three data packets that wait at once are a peak of three; single ones are a peak of one."""
    assert _peaks(ALTERNATING) == [3, 1]


def test_arrival_at_a_departure_counts_after_it() -> None:
    """If a packet arrives as another leaves, the queue does not grow."""
    passed = passage_of([0, 5, 10, 16, 20], [1, 10, 15, 17, 25], payload_bytes=[0, 9, 9, 0, 9])
    assert _peaks(passed) == [1]


@pytest.mark.parametrize("start_ns", [11, 26])
def test_peaks_are_those_of_periods_that_start_in_the_window(start_ns: int) -> None:
    """A busy period that starts before the window is left out, as in the count of busy periods."""
    assert _peaks(ALTERNATING, start_ns) == ([1] if start_ns < 25 else [])


def test_no_busy_periods_no_peaks() -> None:
    """A queue that only ACKs pass has no peaks."""
    passed = passage_of([0, 1], [1, 2], payload_bytes=[0, 0])
    assert np.array_equal(_peaks(passed), [])


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([2, 4, 8, 16, 28, 28, 28], 2),  # three doublings, then the window
        ([2, 6, 3, 6], 3),  # ratios until the longest is first reached
        ([28, 28, 27], math.nan),
        ([], math.nan),
    ],
)
def test_growth_is_that_of_the_start_up(segments: list[int], expected: float) -> None:
    """Growth is the median ratio of successive busy periods until the longest is reached."""
    assert growth(np.array(segments)) == pytest.approx(expected, nan_ok=True)
