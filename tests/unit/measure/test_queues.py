"""A queue reconstructed from the packets that entered and left it."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from capture_analysis.errors import AnalysisError
from conversation import packets
from hypothesis import given
from hypothesis import strategies as st
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of, queue_of

from twoway.contract.network import Queue
from twoway.links.half_duplex import Medium
from twoway.measure.analysis import Analysis
from twoway.measure.medium import latest_ns, replay
from twoway.measure.queues import (
    STILL_QUEUED,
    Occupancy,
    end_transmissions,
    leave_latest,
    mark_copies,
    occupancy,
    passage,
    service_error_ns,
    still_queued,
)

NEVER = -1


@st.composite
def drop_tail(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Make arrival times, sizes and departure times of a drop-tail queue, packet by packet."""
    sizes = draw(st.lists(st.integers(1, 9), max_size=25))
    gaps = draw(st.lists(st.integers(0, 9), min_size=len(sizes), max_size=len(sizes)))
    limit = draw(st.integers(1, 4))
    entered: list[int] = []
    left: list[int] = []
    queued: list[int] = []
    idle_at = now = 0
    for size, gap in zip(sizes, gaps, strict=True):
        now += gap
        queued = [end for end in queued if end > now]
        entered.append(now)
        if len(queued) == limit:
            left.append(NEVER)
            continue
        idle_at = max(idle_at, now) + size
        queued.append(idle_at)
        left.append(idle_at)
    return entered, sizes, left


def count_at(entered: list[int], left: list[int], now: int) -> int:
    """Count the packets in the queue at a time, by looking at every one of them."""
    return sum(a <= now < b for a, b in zip(entered, left, strict=True))


@given(drop_tail())
def test_occupancy_by_counting(case: tuple[list[int], list[int], list[int]]) -> None:
    """The occupancy at any time is the number of packets that have entered and not left."""
    entered, _, left = case
    times = np.arange(-1, 250)
    got = occupancy(passage_of(entered, left)).count_at(times)
    assert got.tolist() == [count_at(entered, left, int(now)) for now in times]


@given(drop_tail(), st.integers(0, 60), st.integers(1, 60))
def test_summaries_by_counting(
    case: tuple[list[int], list[int], list[int]], start: int, length: int
) -> None:
    """Mean, peak and range over a window are those of the occupancy at each instant."""
    entered, _, left = case
    steps = occupancy(passage_of(entered, left))
    stop = start + length
    counts = [count_at(entered, left, now) for now in range(start, stop)]
    assert steps.mean(start, stop) == sum(counts) / length
    assert steps.peak(start, stop) == max(counts)
    lowest, highest = steps.range(np.array([start]), np.array([stop]))
    before = count_at(entered, left, start - 1)
    after = count_at(entered, left, stop)
    assert lowest[0] <= min([before, *counts, after])
    assert highest[0] == max([before, *counts, after])


def test_range_sees_each_level() -> None:
    """A range includes the level at the window's start and each later one, and none outside."""
    steps = Occupancy(np.array([10, 20, 30, 40]), np.array([5, 1, 3, 9]))
    lowest, highest = steps.range(np.array([0, 15, 20, 31]), np.array([9, 30, 20, 39]))
    assert lowest.tolist() == [0, 1, 1, 3]
    assert highest.tolist() == [0, 5, 5, 3]


def test_occupancy_of_some() -> None:
    """The count of data in a queue excludes ACKs and dropped packets."""
    passed = passage_of([0, 1, 2, 3], [10, 11, NEVER, 21], payload_bytes=[9, 0, 9, 9])
    steps = occupancy(passed, passed.is_data)
    assert steps.time_ns.tolist() == [0, 3, 10, 21]
    assert steps.packets.tolist() == [1, 2, 1, 0]


@given(drop_tail(), st.integers(0, 250))
def test_passage_finds_drops(
    case: tuple[list[int], list[int], list[int]], capture_ends: int
) -> None:
    """Captures of both ends give departures, drops, and the packets still in the queue."""
    entered, _, left = case
    numbers = [n for n, time in enumerate(entered) if time <= capture_ends]
    entering = packets(time_ns=[entered[n] for n in numbers], ip_id=numbers)
    out = [n for n in numbers if left[n] != NEVER and left[n] <= capture_ends]
    leaving = packets(time_ns=[left[n] for n in out], ip_id=out)
    expected = [left[n] if n in out or left[n] == NEVER else STILL_QUEUED for n in numbers]
    limit = max((count_at(entered, left, now) for now in entered), default=0)
    queue, inside = queue_of(limit_packets=max(limit, 1)), expected.count(STILL_QUEUED)
    got = still_queued(queue, passage(queue, entering, leaving), lambda: inside)
    assert got.left_ns.tolist() == expected
    assert got.dropped.tolist() == [time == NEVER for time in expected]
    assert got.departures.tolist() == out


def _at_the_end(
    queue: Queue, kernel: int, refused: Sequence[int] = (), **columns: Any
) -> list[int]:
    """List the packets still in a queue that four entered at 0, and that the first left at 9."""
    entering = packets(time_ns=[0, 0, 0, 0], ip_id=range(4), **columns)
    seen = passage(queue, entering, entering.where(np.array([0])))
    seen.left_ns[0] = 9
    mask = np.isin(np.arange(4), refused)
    found = still_queued(queue, seen, lambda: kernel, (lambda: mask) if refused else None)
    return np.flatnonzero(found.left_ns == STILL_QUEUED).tolist()


def test_a_full_drop_tail_queue_took_the_first() -> None:
    """A drop-tail queue holds the first of the packets that never left, until it is full."""
    assert _at_the_end(queue_of(limit_packets=3), kernel=2) == [1, 2]
    assert _at_the_end(queue_of(limit_packets=4), kernel=3) == [1, 2, 3]


def test_a_policed_packet_takes_no_place() -> None:
    """A packet that the policer refuses is dropped, and the next one has its place."""
    assert _at_the_end(queue_of(limit_packets=3), kernel=2, refused=[1]) == [2, 3]


def test_no_more_are_queued_than_the_kernel_counts() -> None:
    """A packet that neither left nor is in the kernel's count at the end was dropped."""
    assert _at_the_end(queue_of(limit_packets=4), kernel=0) == []
    assert _at_the_end(queue_of(limit_packets=4), kernel=1) == [3]


def test_flows_have_queues_of_their_own() -> None:
    """In a managed queue a departure tells of its own flow's packets alone."""
    queue = queue_of(limit_packets=4, leaves_at_start=True)
    assert _at_the_end(queue, kernel=3, flow=[1, 0, 0, 1]) == [1, 2, 3]
    entering = packets(time_ns=[0, 0, 0, 0], ip_id=range(4), flow=[1, 0, 0, 1])
    seen = passage(queue, entering, entering.where(np.array([3])))
    found = still_queued(queue, seen, lambda: 2)
    assert found.dropped.tolist() == [True, False, False, False]


def test_departures_are_in_the_order_in_which_packets_left() -> None:
    """Departures include only packets that left, ordered by time, then by arrival."""
    passed = passage_of([0, 1, 2, 3, 4, 5], [30, 10, NEVER, 20, STILL_QUEUED, 20])
    assert passed.departures.tolist() == [1, 3, 5, 0]


@pytest.mark.parametrize(
    ("entered", "left", "left_ns"),
    [
        ([(0, 7), (1, 7), (2, 8)], [(10, 7), (20, 7), (30, 8)], [10, 20, 30]),
        # Of equal packets the one that waits longest was dropped, but none leaves before it enters.
        (
            [(0, 7), (5, 8), (1000, 7), (1005, 7)],
            [(15, 8), (1010, 7), (1020, 7)],
            [NEVER, 15, 1010, 1020],
        ),
        ([(0, 7), (1000, 7), (1001, 8)], [(10, 7), (1010, 8)], [10, NEVER, 1010]),
        # Two SYN-ACKs are dropped, and both sent again.
        (
            [(0, 7), (1, 8), (1000, 7), (1001, 8)],
            [(1010, 7), (1020, 8)],
            [NEVER, NEVER, 1010, 1020],
        ),
    ],
)
def test_identical_packets_leave_in_order(
    entered: list[tuple[int, int]], left: list[tuple[int, int]], left_ns: list[int]
) -> None:
    """Packets (time, sequence number) that look alike leave in the order in which they entered."""
    ends = [
        packets(time_ns=[t for t, _ in end], seq=[s for _, s in end]) for end in (entered, left)
    ]
    assert passage(queue_of(), *ends).left_ns.tolist() == left_ns


def test_packets_that_look_alike_are_named() -> None:
    """Resets of equal content without an IP identification are all marked, the first included."""
    found = mark_copies(packets(time_ns=[0, 1, 2, 3], seq=[7, 8, 7, 7], ip_id=[0, 0, 0, 5]))
    assert found.tolist() == [True, False, True, False]


def test_retransmission_is_another_packet() -> None:
    """A segment and its retransmission differ in IP identification; only the first is dropped."""
    entering = packets(time_ns=[0, 1, 2], seq=[7, 8, 7], ip_id=[1, 2, 3])
    leaving = packets(time_ns=[10, 20], seq=[8, 7], ip_id=[2, 3])
    assert passage(queue_of(), entering, leaving).left_ns.tolist() == [NEVER, 10, 20]


def test_left_but_never_entered() -> None:
    """A packet that left without having entered is an error that names the interface."""
    entering = packets(time_ns=[0], ip_id=[1])
    leaving = packets(time_ns=[10, 20, 30], ip_id=[1, 2, 3])
    with pytest.raises(AnalysisError, match="r1-eth1: 2 packets left the queue that no capture"):
        passage(queue_of(), entering, leaving)


@given(drop_tail())
def test_exact_service_has_no_error(case: tuple[list[int], list[int], list[int]]) -> None:
    """A queue that serves by arithmetic has a departure error of zero for every packet."""
    entered, sizes, left = case
    thousand = [1000 * size for size in sizes]  # A byte takes 1 us, and times are in ms
    ms = [1_000_000 * time for time in entered]
    left = [1_000_000 * time if time != NEVER else NEVER for time in left]
    errors = service_error_ns(queue_of(), passage_of(ms, left, frame_bytes=thousand))
    assert errors.tolist() == [0] * sum(time != NEVER for time in left)


def test_late_departure_is_one_error() -> None:
    """A packet 7 ns late is one error of 7 ns; the next packet has none."""
    passed = passage_of([0, 0, 0], [1000, 2007, 3007])
    assert service_error_ns(queue_of(), passed).tolist() == [0, 7, 0]


def test_size_on_the_link() -> None:
    """A size on the link includes the overhead, then whole cells with their own overhead."""
    atm = queue_of(overhead_bytes=-14, cell_bytes=48, cell_overhead_bytes=5)
    assert atm.link_bytes(62) == 53
    assert atm.link_bytes(63) == 106
    assert atm.link_bytes(np.array([54, 1514])).tolist() == [53, 32 * 53]
    assert queue_of(overhead_bytes=-4).link_bytes(504) == 500


def test_service_time_is_cut() -> None:
    """A transmission time is whole ns at a rate of whole bytes per second, as in netem."""
    assert queue_of(rate_bit=24).service_ns(1) == 333_333_333
    assert queue_of(rate_bit=31).service_ns(1) == 333_333_333
    assert queue_of(rate_bit=32).service_ns(3) == 750_000_000


@given(drop_tail(), drop_tail(), st.integers(0, 60), st.integers(2, 60))
def test_correlation_by_counting(
    one: tuple[list[int], list[int], list[int]],
    other: tuple[list[int], list[int], list[int]],
    start: int,
    length: int,
) -> None:
    """Correlation equals that of the lengths in each ns, and is undefined for a constant length."""
    levels = [
        [count_at(entered, left, now) for now in range(start, start + length)]
        for entered, _, left in (one, other)
    ]
    queues = [occupancy(passage_of(entered, left)) for entered, _, left in (one, other)]
    got = queues[0].sum_beside(queues[1], start, start + length).correlation()
    if any(len(set(level)) == 1 for level in levels):
        assert np.isnan(got)
    else:
        assert got == pytest.approx(statistics.correlation(*levels), abs=1e-9)


# A queue whose packets are captured at the start of transmission, and dropped inside.

MANAGED = queue_of(leaves_at_start=True)
# Three packets of 10 us; the second is dropped at the head as the third is about to leave.
SEEN = passage_of([0, 2_000, 4_000], [0, -1, 10_000], frame_bytes=[10, 10, 10])


def test_left_when_transmitted() -> None:
    """A packet is in the queue until its transmission ends, and departures are exact."""
    ended = end_transmissions(MANAGED, SEEN)
    assert ended.left_ns.tolist() == [10_000, -1, 20_000]
    assert service_error_ns(MANAGED, ended).tolist() == [0, 0]


def test_drop_tail_is_as_seen() -> None:
    """A drop-tail queue, captured at transmissions' end, needs no corrections."""
    assert end_transmissions(queue_of(), SEEN) is SEEN
    assert leave_latest(queue_of(), SEEN) is SEEN


def test_dropped_inside() -> None:
    """A packet dropped at the head was queued at most until its connection's next packet left."""
    most = leave_latest(MANAGED, SEEN)
    assert most.left_ns.tolist() == [0, 10_000, 10_000]
    assert occupancy(most).packets.max() == 2


def test_dropped_last() -> None:
    """A dropped packet without a successor in its connection may be queued until the end."""
    most = leave_latest(MANAGED, passage_of([0, 2_000], [0, -1], frame_bytes=[10, 10]))
    assert most.left_ns.tolist() == [0, STILL_QUEUED]


# Half-duplex links in a run: a medium reconstructed from two captures.

# r2 joins the medium last, though its direction is the first of the profile.
BACK = queue_of().model_copy(update={"direction": "back", "interface": "r2-eth1"})
THERE = queue_of(rate_bit=4_000_000).model_copy(update={"direction": "there"})


def _analysis(*queues: Queue, frames: int = 0) -> Analysis:
    """Make a run of two queues, in this order, with frames of at most 3 bytes.

    The medium changes hands after 4 packets, with a gap of 100 ns.
    """
    passed_by = {"directions": ["there"], "direction": "there"}
    passed_by |= {"ack_directions": ["back"], "ack_direction": "back"}
    ends = Ends(sent=packets(time_ns=[0, 1], frame_bytes=[3, 2]), fields=passed_by)
    passed = passage_of([0] * frames, [1] * frames, frame_bytes=[2] * frames)
    views = {q.direction: queue_view(passed, q) for q in queues}
    return analysis_of(ends, queues=views, medium={"gap_us": 0.1, "turn_packets": 4})


@pytest.mark.parametrize("queues", [(BACK, THERE), (THERE, BACK)])
def test_the_first_turn_is_of_the_first_router(queues: tuple[Queue, Queue]) -> None:
    """If both ends get a packet in one ns, the end that joined the medium first sends first."""
    passed = {"back": passage_of([5], [3105]), "there": passage_of([5], [2105])}
    found = replay(_analysis(*queues).run, Medium(100, 1), passed)
    assert found["there"].sent_ns.tolist() == [2105]
    assert found["back"].sent_ns.tolist() == [3205]
    assert found["back"].error_ns(passed["back"]).tolist() == [-100]
    assert found["back"].bits_begin_ns(passed["back"]).tolist() == [2205]


def test_dropped_packets_take_no_turn() -> None:
    """A packet that its queue dropped takes no turn; one still queued at the end does."""
    passed = {
        "back": passage_of([0, 1, 2], [-1, 1101, np.iinfo(np.int64).max]),
        "there": passage_of([], []),
    }
    found = replay(_analysis(BACK, THERE).run, Medium(100, 1), passed)["back"]
    assert (found.start_ns.tolist(), found.sent_ns.tolist()) == ([1, 1101], [1101, 2201])
    assert found.error_ns(passed["back"]).tolist() == [0]
    assert found.held_ns(1001, 1201) == 200


def test_a_packet_waits_for_one_turn_of_the_other_end_at_most() -> None:
    """A packet waits for at most one turn of the other end: two gaps, four frames, its own time."""
    latest = latest_ns(
        _analysis(BACK, THERE).run, THERE, Medium(100, 4), np.array([7]), np.array([1])
    )
    assert latest.tolist() == [7 + 2 * 100 + 4 * 3000 + 2000]


def test_a_round_trip_has_a_frame_back_for_each_packet() -> None:
    """The longest round trip has ten packets in each queue; each waits for two gaps and a frame."""
    there_ns, back_ns = 2 * 100 + 3 * 1000 + 2 * 2000, 2 * 100 + 3 * 2000 + 2 * 1000
    analysis = _analysis(BACK, THERE, frames=1)
    assert analysis.longest_round_trip_ns == 10 * (there_ns + back_ns)
