"""Lengths of queues as step functions, and sums over time."""

from itertools import pairwise

import numpy as np
import pytest
from capture_analysis.step_functions import (
    LastToEmpty,
    Sums,
    last_to_empty,
    queue_length,
    sums_over_time,
)
from hypothesis import given
from hypothesis import strategies as st

LEVELS = st.integers(-(1 << 31), (1 << 31) - 1)
# The time since the step before, and the level from then on.
STEPS = st.lists(st.tuples(st.integers(0, 5), LEVELS), max_size=20)


def sums(x: list[tuple[int, int]], y: list[tuple[int, int]], start_ns: int, stop_ns: int) -> Sums:
    """Sum two functions, each given by its steps."""
    one, two = (np.array(steps, dtype=np.int64).reshape(-1, 2).T for steps in (x, y))
    return sums_over_time((one[0], one[1]), (two[0], two[1]), start_ns, stop_ns)


@given(STEPS, STEPS, st.integers(0, 60), st.integers(0, 60))
def test_sums_by_counting(
    x: list[tuple[int, int]], y: list[tuple[int, int]], start: int, length: int
) -> None:
    """Each sum is that over the levels in every ns of the window."""
    steps, levels = [], []
    for gaps in (x, y):
        times = np.cumsum([gap for gap, _ in gaps], dtype=np.int64).tolist()
        steps.append(list(zip(times, (level for _, level in gaps), strict=True)))
        levels.append(
            [
                ([0] + [level for at, level in steps[-1] if at <= now])[-1]
                for now in range(start, start + length)
            ]
        )
    both = list(zip(*levels, strict=True))
    assert sums(steps[0], steps[1], start, start + length) == (
        length,
        sum(a for a, _ in both),
        sum(b for _, b in both),
        sum(a * a for a, _ in both),
        sum(b * b for _, b in both),
        sum(a * b for a, b in both),
        sum(a > 0 for a, _ in both),
        sum(b > 0 for _, b in both),
        sum(a > 0 and b > 0 for a, b in both),
    )


def test_sums_beyond_64_bits_are_exact() -> None:
    """A year of the highest level, squared, is more than 64 bits hold."""
    year, most = 366 * 86400 * 10**9, (1 << 31) - 1
    found = sums([(0, most)], [(0, -most)], 0, year)
    assert (found.xx, found.xy) == (most**2 * year, -(most**2) * year)


def test_correlations() -> None:
    """Lengths that rise together correlate; their being busy does not need to."""
    found = sums([(0, 1), (5, 2)], [(0, 0), (5, 9)], 0, 10)
    assert found.correlation() == 1
    assert np.isnan(found.busy_correlation())
    opposite = sums([(0, 3), (5, 0)], [(0, 0), (5, 4)], 0, 10)
    assert opposite.correlation() == opposite.busy_correlation() == -1


def test_columns_of_one_length() -> None:
    """Times without levels are refused: nothing is read beyond a column."""
    with pytest.raises(ValueError, match="of one length"):
        sums_over_time((np.arange(2), np.arange(1)), (np.arange(0), np.arange(0)), 0, 1)


# Gaps between arrivals, and each packet's time in the queue; None if it was dropped.
PACKETS = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(1, 9)), max_size=15)


def last(
    *queues: tuple[list[int], list[int]], start_ns: int = 0, stop_ns: int = 100
) -> LastToEmpty:
    """Find the last of several queues, each given by times of entering and leaving."""
    columns = [(np.array(entered), np.array(left)) for entered, left in queues]
    return last_to_empty(columns, start_ns, stop_ns)


def test_a_queue_is_compared_with_all_others() -> None:
    """A is the last queue to run empty until C gets a packet at 20 ns; B never is."""
    a, b, c = ([0], [30]), ([0], [10]), ([20], [60])
    assert last(a, b, c) == ([20, 0, 40], 1, 60)


def test_a_queue_is_not_empty_before_a_packet_that_others_overtook() -> None:
    """A queue outlasts another until all its packets left, even if one overtook: A to 100 ns."""
    assert last(([0, 10], [100, 50]), ([0], [60]), stop_ns=200).last_ns == [100, 0]


def test_empty_queues_are_not_the_last_to_empty() -> None:
    """Before the first packet no queue is the last to empty, so that packet makes no change."""
    assert last(([], []), ([5], [9])) == ([0, 4], 0, 4)


@given(st.lists(PACKETS, max_size=3), st.integers(0, 40), st.integers(0, 40))
def test_last_to_empty_by_counting(
    packets: list[list[tuple[int, int | None]]], start: int, length: int
) -> None:
    """In each ns the last queue is that whose last packet leaves last; alone if no other does."""
    queues = []
    for each in packets:
        entered = np.cumsum([gap for gap, _ in each], dtype=np.int64).tolist()
        stays = (stay for _, stay in each)
        left = [-1 if stay is None else at + stay for at, stay in zip(entered, stays, strict=True)]
        queues.append((entered, left))
    alone, lasts = [0] * len(queues), []
    for now in range(start, start + length):
        empty = [
            max([now] + [end for at, end in zip(*queue, strict=True) if at <= now])
            for queue in queues
        ]
        latest = max(empty, default=now)
        if latest > now:
            lasts.append(empty.index(latest))
            alone[lasts[-1]] += empty.count(latest) == 1
    changes = sum(a != b for a, b in pairwise(lasts))
    assert last(*queues, start_ns=start, stop_ns=start + length) == (alone, changes, len(lasts))


def test_an_arrival_at_the_instant_of_a_departure_is_after_it() -> None:
    """A queue of one packet is empty for an instant if the next one enters as it leaves."""
    time_ns, packets = queue_length(np.array([0, 10]), np.array([10, 20]))
    assert time_ns.tolist() == [0, 10, 10, 20]
    assert packets.tolist() == [1, 0, 1, 0]
