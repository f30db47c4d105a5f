"""Bunches of ACKs that leave a queue."""

from support.column_run import analysis_of, queue_view
from support.queue_columns import passage_of

from twoway.measure.metrics.acks import bunches_of_queue
from twoway.measure.queues import Passage


def _largest(passed: Passage, steady_ns: int = 0, stop_ns: int = 100_000) -> float:
    analysis = analysis_of(steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = bunches_of_queue.measure(analysis, queue_view(passed))
    return found


# A frame of 1 byte takes 1 us: three ACKs back to back, data, and two ACKs 2 us apart.
LEFT_NS = [1_000, 2_000, 3_000, 9_000, 20_000, 22_000, 25_000]
PAYLOAD = [0, 0, 0, 9, 0, 0, 0]


def test_largest_bunch_of_a_queue() -> None:
    """ACKs at most two ACK times apart are one bunch, which data ends."""
    assert _largest(passage_of([0] * 7, LEFT_NS, payload_bytes=PAYLOAD)) == 3


def test_bunches_are_those_of_the_steady_window() -> None:
    """ACKs that left before the steady window, or at its end, do not count."""
    passed = passage_of([0] * 7, LEFT_NS, payload_bytes=PAYLOAD)
    assert _largest(passed, steady_ns=2_000, stop_ns=20_000) == 2
    assert _largest(passed, stop_ns=3_000) == 2
    assert _largest(passed, steady_ns=3_000) == 2


def test_the_smallest_ack_sets_the_distance() -> None:
    """The smallest ACK sets a bunch's spacing: if it takes 1 us, ACKs 2 us apart are a bunch."""
    left_ns, sizes = [1_000, 3_000, 6_000], [1, 1, 3]
    assert _largest(passage_of([0] * 3, left_ns, [0] * 3, sizes)) == 2


def test_no_acks_no_bunch() -> None:
    """A queue with data only has a largest bunch of 0."""
    assert _largest(passage_of([0], [1_000])) == 0
