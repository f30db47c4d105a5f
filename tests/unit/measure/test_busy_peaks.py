"""Peaks of a queue's data during busy periods, and the growth of busy periods."""

import math

import numpy as np
import pytest
from support.queue_columns import passage_of

from twoway.measure.busy_periods import busy_peaks, busy_periods, growth
from twoway.measure.queues import Passage, occupancy


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
