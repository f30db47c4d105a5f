"""Goodput, efficiency and utilisation over a window."""

import math

import numpy as np
import pytest
from capture_analysis.columns import FLAG_RST, FLAG_SYN, Packets
from conversation import packets
from hypothesis import given
from hypothesis import strategies as st
from support.queue_columns import passage_of, queue_of

from twoway.measure.queues import STILL_QUEUED
from twoway.measure.throughput import (
    before_reset,
    carried_bit,
    efficiency,
    full_payload_share,
    in_order_bytes,
    link_bytes,
    new_payload,
    new_payload_bytes,
    rate_bit,
    unwrap,
    utilisation,
)

EVER = np.iinfo(np.int64).max
# First byte and length of a segment; few bytes, so that many segments overlap.
SEGMENTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)))


def payload_bytes(arriving: Packets, start_ns: int, stop_ns: int) -> int:
    """Count the new payload of packets in a window."""
    data = arriving.data()
    return new_payload_bytes(data, new_payload(data), start_ns, stop_ns)


@given(st.integers(0, (1 << 32) - 1), st.lists(st.integers(-(1 << 31), (1 << 31) - 1)))
def test_unwrap_any_steps(first: int, steps: list[int]) -> None:
    """Steps of less than 2^31 in either direction are restored after any number of wraps."""
    positions = np.concatenate(([0], np.cumsum(np.array(steps, dtype=np.int64))))
    assert unwrap((first + positions) % (1 << 32)).tolist() == positions.tolist()


def test_unwrap_nothing() -> None:
    """No sequence numbers give an empty result, not one number."""
    assert unwrap(np.zeros(0, dtype=np.int64)).tolist() == []


@given(SEGMENTS, st.integers(0, 30), st.integers(0, 30), st.integers(0, (1 << 32) - 1))
def test_new_payload_by_marking(
    segments: list[tuple[int, int]], start: int, length: int, initial: int
) -> None:
    """New payload is the bytes of a window's segments that no earlier segment had."""
    stop = start + length
    seen: set[int] = set()
    new = 0
    for time, (first, size) in enumerate(segments):
        fresh = set(range(first, first + size)) - seen
        new += len(fresh) if start <= time < stop else 0
        seen |= fresh
    arriving = packets(
        time_ns=range(len(segments)),
        seq=[(initial + first) % (1 << 32) for first, _ in segments],
        payload_bytes=[size for _, size in segments],
    )
    assert payload_bytes(arriving, start, stop) == new


def test_goodput_of_intervals() -> None:
    """Intervals have 400 and 200 Gbit/s if 100, 100 and 50 new bytes come 2 and 3 ns apart.

    A segment that arrives at an interval's start belongs to it; a repeated segment is not new.
    """
    data = packets(
        time_ns=[10, 12, 13, 15], seq=[0, 100, 0, 200], payload_bytes=[100, 100, 100, 50]
    )
    edges_ns = np.array([10, 12, 14, 16])
    assert rate_bit(data, new_payload(data), edges_ns).tolist() == [400e9, 400e9, 200e9]


def test_window_is_half_open() -> None:
    """A packet at the window's start is in it, one at its end is not."""
    arriving = packets(time_ns=[3, 6, 9], seq=[0, 1, 3], payload_bytes=[1, 2, 4])
    assert payload_bytes(arriving, 3, 9) == 3
    assert payload_bytes(arriving, 4, 10) == 6


@given(SEGMENTS)
def test_in_order_by_marking(segments: list[tuple[int, int]]) -> None:
    """The receiver can hand over all bytes before the first missing one."""
    held = {byte for first, size in segments for byte in range(first, first + size)}
    reached = start = min(held, default=0)
    while reached in held:
        reached += 1
    arriving = packets(
        time_ns=range(len(segments)),
        seq=[first for first, _ in segments],
        payload_bytes=[size for _, size in segments],
    )
    assert in_order_bytes(arriving) == reached - start


@pytest.mark.parametrize(("arrived", "bytes_"), [([1], 100), ([101], 0), ([1, 201], 100), ([], 0)])
def test_a_stream_begins_behind_its_syn(arrived: list[int], bytes_: int) -> None:
    """Bytes count from the stream's first; without its first segment no byte is in order."""
    arriving = packets(
        time_ns=range(1 + len(arrived)),
        seq=[0, *arrived],
        payload_bytes=[0] + [100] * len(arrived),
        flags=[FLAG_SYN] + [0] * len(arrived),
    )
    assert in_order_bytes(arriving) == bytes_


def test_share_of_the_largest() -> None:
    """The payload share is that of the largest segment with the link's overhead."""
    arriving = packets(payload_bytes=[0, 446, 10], frame_bytes=[54, 500, 64])
    assert full_payload_share(arriving, queue_of()) == 446 / 500
    assert full_payload_share(arriving, queue_of(overhead_bytes=-50)) == 446 / 450


def test_bytes_on_the_link_are_those_of_all_packets() -> None:
    """ACKs and duplicates count as bytes on the link, each with the link's overhead."""
    arriving = packets(seq=[0, 0, 0], payload_bytes=[446, 446, 0], frame_bytes=[500, 500, 54])
    assert link_bytes(arriving, queue_of(overhead_bytes=-14)) == 486 + 486 + 40


def test_share_without_data() -> None:
    """Without data there is no payload share, and no efficiency."""
    arriving = packets(payload_bytes=[0], frame_bytes=[54])
    assert math.isnan(full_payload_share(arriving, queue_of()))
    assert math.isnan(efficiency(0.0, arriving, queue_of(), 8e6))


def test_efficiency_of_a_full_link() -> None:
    """A connection whose data fills the link has an efficiency of 1, despite headers."""
    arriving = packets(payload_bytes=[750], frame_bytes=[1000])
    assert efficiency(6_000_000.0, arriving, queue_of(), 8e6) == 1.0
    assert efficiency(3_000_000.0, arriving, queue_of(), 8e6) == 0.5


@pytest.mark.parametrize(
    ("start_us", "stop_us", "share"),
    [
        (0, 100, 0.4),  # 10..30 and 50..70; drops and packets that never left do not count
        (20, 60, 0.5),  # half of each transmission
        (12, 22, 1.0),
        (30, 50, 0.0),
    ],
)
def test_utilisation_by_hand(start_us: int, stop_us: int, share: float) -> None:
    """Utilisation is the share of the window in which a transmission is under way."""
    passed = passage_of(
        [10_000, 50_000, 50_000, 90_000],
        [30_000, 70_000, -1, STILL_QUEUED],
        payload_bytes=[1, 0, 1, 1],
        frame_bytes=[20, 20, 20, 20],
    )
    assert utilisation(passed, start_us * 1000, stop_us * 1000) == share


@pytest.mark.parametrize(
    ("refused_ns", "received_ns"),
    [
        ([], [10, 20, 30, 40]),  # resets that ended no connection, or came after all data
        ([30, 40], [10, 20]),
        ([31, 41], [10, 20]),  # a slow host
        ([25], [10, 20]),  # an answer at the time of the reset
        ([5], [10, 20, 30, 40]),  # an answer to another packet
    ],
)
def test_data_after_a_reset_is_not_received(refused_ns: list[int], received_ns: list[int]) -> None:
    """Data that a host answers with resets does not count, from its preceding reset on."""
    arriving = packets(
        time_ns=[10, 20, 25, 30, 40], payload_bytes=[1, 1, 0, 1, 1], flags=[0, 0, FLAG_RST, 0, 0]
    )
    answers = packets(time_ns=[10, *refused_ns], flags=[0, *[FLAG_RST] * len(refused_ns)])
    assert before_reset(arriving, answers).data().time_ns.tolist() == received_ns


def test_the_last_reset_before_an_answer_closes() -> None:
    """The second of two resets before the first answer closes; a third has no effect."""
    arriving = packets(
        time_ns=[10, 20, 30, 40, 50, 60],
        payload_bytes=[1, 0, 1, 0, 1, 0],
        flags=[0, FLAG_RST, 0, FLAG_RST, 0, FLAG_RST],
    )
    answers = packets(time_ns=[40, 60], flags=[FLAG_RST] * 2)
    assert before_reset(arriving, answers).time_ns.tolist() == [10, 20, 30, 40]


def test_intervals_shorter_than_a_packet_have_what_the_link_carries() -> None:
    """At 8 Mbit/s a full link shows 8 Mbit/s in each interval, with whole packets in none."""
    arrived = packets(time_ns=[1_200_000 * n for n in range(1, 11)], payload_bytes=[1200] * 10)
    edges_ns = np.arange(0, 12_500_001, 500_000)
    found = carried_bit(arrived, np.full(10, 1200), np.full(10, 1_200_000), edges_ns)
    assert found.tolist() == pytest.approx([8e6] * 24 + [0])


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 900)), max_size=30))
def test_no_interval_has_more_than_the_link_carries(segments: list[tuple[int, int]]) -> None:
    """However segments arrive, an interval has at most its own length, and all bytes are in one."""
    segments = sorted(segments)
    sizes = np.array([size for _, size in segments], dtype=np.int64)
    data = packets(time_ns=[at_ns for at_ns, _ in segments], payload_bytes=sizes.tolist())
    edges_ns = np.arange(-30_000, 5_100, 70)
    carried = carried_bit(data, sizes, sizes, edges_ns) * 70 / 8e9  # a byte takes a nanosecond
    assert carried.max() <= 70 + 1e-6
    assert carried.sum() == pytest.approx(sizes.sum())
