"""Maximal streaks, found block by block."""

from itertools import groupby

import numpy as np
from capture_analysis.facts.running_totals import LaneArray, Previous, occurrences
from capture_analysis.streaks import StreakFinder, Streaks
from hypothesis import given
from hypothesis import strategies as st

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
        before = previous.of(lanes, starts, values)
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
    assert [least.of(lane) for lane in (0, 2, 7, 8, 1000)] == [99, 5, 1, 99, 99]
    assert least.at(np.array([1, 7])).tolist() == [99, 1]


@given(st.lists(st.sampled_from([0, 1, 2, 1 << 40])))
def test_sparse_and_dense_keys_count_alike(keys: list[int]) -> None:
    """Counts of keys do not depend on whether the keys are close together."""
    found, count = occurrences(np.array(keys, dtype=np.int64))
    assert dict(zip(found.tolist(), count.tolist(), strict=True)) == {
        key: keys.count(key) for key in set(keys)
    }
    assert found.tolist() == sorted(set(keys))
