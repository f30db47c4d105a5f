"""Half-duplex links in a run: a medium reconstructed from two captures."""

import numpy as np
import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of, queue_of

from twoway.contract.network import Queue
from twoway.links.half_duplex import Medium
from twoway.measure.analysis import Analysis
from twoway.measure.medium import latest_ns, replay

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
