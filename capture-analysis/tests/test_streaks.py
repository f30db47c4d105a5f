"""Functions of columns: streaks found block by block, rows by lane, and step functions."""

from itertools import groupby, pairwise

import numpy as np
import pytest
from capture_analysis.facts.running_totals import LaneArray, Previous, occurrences
from capture_analysis.row_order import by_lane
from capture_analysis.step_functions import (
    LastToEmpty,
    Sums,
    last_to_empty,
    queue_length,
    sums_over_time,
)
from capture_analysis.streaks import StreakFinder, Streaks
from hypothesis import given
from hypothesis import strategies as st

# Maximal streaks, found block by block.

# Packets as (lane, whether it continues the streak before it, value), and the blocks' lengths.
PACKETS = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(-5, 5)), max_size=40)
BLOCKS = st.lists(st.integers(1, 9), max_size=40)

Packet = tuple[int, bool, int]


def plainly(packets: list[Packet]) -> list[tuple[int, int, int, int, int]]:
    """Return the streaks, packet by packet: lane, rows, first, last, sum; times are positions."""
    found = []
    for lane in range(4):
        streak: list[int] = []
        total = 0
        for at, (of, joined, value) in enumerate(packets):
            if of != lane:
                continue
            if streak and not joined:
                found.append((lane, len(streak), streak[0], streak[-1], total))
                streak, total = [], 0
            streak.append(at)
            total += value
        if streak:
            found.append((lane, len(streak), streak[0], streak[-1], total))
    return found


def in_blocks(
    packets: list[Packet], blocks: list[int], finder: StreakFinder, values: int
) -> list[Streaks]:
    """Return a finder's streaks, given the packets block by block."""
    found, first = [], 0
    for length in [*blocks, len(packets)]:
        block = packets[first : first + length]
        order = sorted(range(len(block)), key=lambda row: block[row][0])
        lane = np.array([block[row][0] for row in order], dtype=np.int64)
        joined = np.array([block[row][1] for row in order], dtype=np.bool_)
        value = np.array([block[row][2] for row in order], dtype=np.int64)
        time_ns = first + np.array(order, dtype=np.int64)
        sums = (value, value * 2) if values else value
        found.append(finder.add(lane, joined, time_ns, sums))
        first += length
    return [*found, finder.finish()]


@given(packets=PACKETS, blocks=BLOCKS)
def test_blocks_do_not_matter(packets: list[Packet], blocks: list[int]) -> None:
    """For any blocks, streaks equal those found packet by packet, in order in each lane."""
    parts = in_blocks(packets, blocks, StreakFinder(), 0)
    rows = [
        row
        for streaks in parts
        for row in zip(*(c.tolist() for c in vars(streaks).values()), strict=True)
    ]
    rows.sort(key=lambda row: row[0])
    assert rows == plainly(packets)


@given(packets=PACKETS, blocks=BLOCKS)
def test_least_rows(packets: list[Packet], blocks: list[int]) -> None:
    """Short streaks are left out, others are unchanged, and each value has its own sum."""
    parts = in_blocks(packets, blocks, StreakFinder(2, least_rows=3), 2)
    rows = sorted(
        (lane, rows, first, total, twice)
        for streaks in parts
        for lane, rows, first, total, twice in zip(
            streaks.lane, streaks.rows, streaks.first_ns, *streaks.total, strict=True
        )
    )
    expected = [(r[0], r[1], r[2], r[4], 2 * r[4]) for r in plainly(packets) if r[1] >= 3]
    assert rows == sorted(expected)


@given(PACKETS, BLOCKS)
def test_previous_value_crosses_blocks(packets: list[Packet], blocks: list[int]) -> None:
    """The previous value is that of the lane's previous packet, even in an earlier block."""
    previous, last, first = Previous(), dict.fromkeys(range(4), -1), 0
    for length in [*blocks, len(packets)]:
        block = sorted(packets[first : first + length], key=lambda packet: packet[0])
        first += length
        lane = np.array([packet[0] for packet in block], dtype=np.int64)
        values = np.array([packet[2] for packet in block], dtype=np.int64)
        lanes, starts = np.unique(lane, return_index=True)
        before = previous.take_previous(lanes, starts, values)
        expected = []
        for of, group in groupby(block, key=lambda packet: packet[0]):
            for _, _, value in group:
                expected.append(last[of])
                last[of] = value
        assert before.tolist() == expected


def test_lanes_appear_late() -> None:
    """A lane without values has the empty value, even after the array has grown."""
    least = LaneArray(np.minimum, 99)
    least.add(np.array([2]), np.array([5]))
    other = LaneArray(np.minimum, 99)
    other.add_rows(np.array([7, 7, 2]), np.array([3, 1, 6]))
    least.merge(other)
    assert [least.value_of(lane) for lane in (0, 2, 7, 8, 1000)] == [99, 5, 1, 99, 99]
    assert least.values_of(np.array([1, 7])).tolist() == [99, 1]


@given(st.lists(st.sampled_from([0, 1, 2, 1 << 40])))
def test_sparse_and_dense_keys_count_alike(keys: list[int]) -> None:
    """Counts of keys do not depend on whether the keys are close together."""
    found, count = occurrences(np.array(keys, dtype=np.int64))
    assert dict(zip(found.tolist(), count.tolist(), strict=True)) == {
        key: keys.count(key) for key in set(keys)
    }
    assert found.tolist() == sorted(set(keys))


# Sorting rows by lane.

MOST = 1 << 20


def test_by_lane() -> None:
    """Rows are in order of lane, and within a lane in the given order."""
    lane = np.array([7, MOST, 7, 3, MOST], np.uint32)
    order = by_lane(lane, np.array([0, 1, 2, 4]))
    assert order.lanes.tolist() == [7, MOST]
    assert order.counts.tolist() == [2, 2]
    assert order.rows.tolist() == [0, 2, 1, 4]
    assert order.places.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("lanes", [1, 50, 1 << 16, 1 << 20])
def test_by_lane_alike(lanes: int) -> None:
    """Many rows are in the order of a stable sort, for any number of lanes."""
    draw = np.random.default_rng(lanes)
    lane = draw.integers(0, lanes, 5000).astype(np.uint32)
    rows = np.flatnonzero(draw.random(5000) < 0.5)
    order = by_lane(lane, rows)
    by_sort = np.argsort(lane[rows], kind="stable")
    found, counts = np.unique(lane[rows], return_counts=True)
    expected = (np.argsort(by_sort), rows[by_sort], found, counts)
    for column, other in zip(vars(order).values(), expected, strict=True):
        assert column.dtype == np.int64
        np.testing.assert_array_equal(column, other)


def test_no_such_row() -> None:
    """A row that the table does not have is refused."""
    with pytest.raises(IndexError):
        by_lane(np.zeros(4, np.uint32), np.array([0, 4]))


# Lengths of queues as step functions, and sums over time.

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
QUEUED = st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(1, 9)), max_size=15)


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


@given(st.lists(QUEUED, max_size=3), st.integers(0, 40), st.integers(0, 40))
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
