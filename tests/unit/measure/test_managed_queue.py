"""A queue whose packets are captured at the start of transmission, and dropped inside."""

from support.queue_columns import passage_of, queue_of

from twoway.measure.queues import (
    STILL_QUEUED,
    lingering,
    occupancy,
    service_error_ns,
    transmitted,
)

MANAGED = queue_of(leaves_at_start=True)
# Three packets of 10 us; the second is dropped at the head as the third is about to leave.
SEEN = passage_of([0, 2_000, 4_000], [0, -1, 10_000], frame_bytes=[10, 10, 10])


def test_left_when_transmitted() -> None:
    """A packet is in the queue until its transmission ends, and departures are exact."""
    ended = transmitted(MANAGED, SEEN)
    assert ended.left_ns.tolist() == [10_000, -1, 20_000]
    assert service_error_ns(MANAGED, ended).tolist() == [0, 0]


def test_drop_tail_is_as_seen() -> None:
    """A drop-tail queue, captured at transmissions' end, needs no corrections."""
    assert transmitted(queue_of(), SEEN) is SEEN
    assert lingering(queue_of(), SEEN) is SEEN


def test_dropped_inside() -> None:
    """A packet dropped at the head was queued at most until its connection's next packet left."""
    most = lingering(MANAGED, SEEN)
    assert most.left_ns.tolist() == [0, 10_000, 10_000]
    assert occupancy(most).packets.max() == 2


def test_dropped_last() -> None:
    """A dropped packet without a successor in its connection may be queued until the end."""
    most = lingering(MANAGED, passage_of([0, 2_000], [0, -1], frame_bytes=[10, 10]))
    assert most.left_ns.tolist() == [0, STILL_QUEUED]
