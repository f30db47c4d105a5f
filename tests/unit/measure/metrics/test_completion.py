"""Completion of transfers; loss, delay, jitter and order of UDP, on packets made by hand."""

import numpy as np
import pytest
from conversation import packets
from support.column_run import Ends, analysis_of
from support.connections import datagram_flow

from twoway.measure.datagrams import DatagramView, jitter_ns, join
from twoway.measure.metrics.completion import completion_time, completion_times
from twoway.measure.metrics.datagrams import datagrams, overtaking_share


def _transfer(size: int | None, time_ns: list[int], seq: list[int]) -> Ends:
    """Make a transfer of a size, with arrivals of its segments of 100 bytes."""
    arrived = packets(time_ns=time_ns, seq=seq, payload_bytes=[100] * len(seq))
    return Ends(arrived=arrived, fields={"transfer_bytes": size, "start_ns": 1000})


def _completion(transfer: Ends) -> float:
    analysis = analysis_of(transfer, stop_ns=10_000)
    (found,) = completion_time.measure(analysis, analysis.connections["0"])
    return found


def _completions(*transfers: Ends) -> tuple[float, ...]:
    return tuple(completion_times.measure(analysis_of(*transfers, stop_ns=10_000)))


def test_a_repaired_hole_is_the_end() -> None:
    """A transfer is complete when its last hole is filled, whatever arrived earlier."""
    view = _transfer(300, [2000, 3000, 3500, 4000], [0, 200, 200, 100])
    assert _completion(view) == 3e-6


def test_unlimited_or_unfinished_has_no_time() -> None:
    """A transfer without a size, with missing bytes, or completed after the end has no time."""
    for view in (
        _transfer(None, [2000], [0]),
        _transfer(300, [2000, 3000], [0, 100]),
        _transfer(200, [2000, 10_000], [0, 100]),
    ):
        assert np.isnan(_completion(view))


def test_all_transfers_together() -> None:
    """With two of three transfers complete, median and percentile are over these two."""
    found = _completions(
        _transfer(100, [2000], [0]),
        _transfer(100, [4000], [0]),
        _transfer(200, [4000], [0]),
        _transfer(None, [4000], [0]),
    )
    assert found == pytest.approx((2e-6, 2.9e-6, 2 / 3))


def test_no_transfer_is_complete() -> None:
    """If no transfer is complete the share is 0; without transfers it is undefined."""
    unfinished = _completions(_transfer(200, [2000], [0]))
    assert np.isnan(unfinished[:2]).all()
    assert unfinished[2] == 0
    assert np.isnan(_completions(_transfer(None, [2000], [0]))).all()


def test_what_came_before_the_start_does_not_count() -> None:
    """Bytes that arrive before the start, or at that instant, belong to no transfer."""
    before, at = _transfer(100, [999, 5000], [0, 100]), _transfer(100, [1000, 5000], [0, 100])
    assert _completion(before) == 4e-6
    assert _completion(at) == 0
    a_byte_more = _transfer(101, [999, 2000, 3000], [0, 100, 200])
    assert _completion(a_byte_more) == 2e-6


def test_data_may_begin_anywhere() -> None:
    """Sequence numbers may wrap, and a byte beyond the size changes nothing."""
    view = _transfer(150, [2000, 3000], [(1 << 32) - 100, 0])
    assert _completion(view) == 2e-6


# Loss, delay, jitter and order of UDP, on packets made by hand.

FLOW = datagram_flow("udp", "forward", 8, start_ns=0, stop_ns=5000)
NONE = packets(time_ns=[])


def _view(
    sent_ns: list[int], arrived: dict[int, int], queued: tuple[int, ...] = ()
) -> DatagramView:
    """Make a flow whose numbered packets arrive in the order of the given times, or never."""
    in_order = sorted(arrived, key=lambda number: arrived[number])
    return join(
        FLOW,
        packets(time_ns=sent_ns, seq=[*range(len(sent_ns))]),
        packets(time_ns=[arrived[number] for number in in_order], seq=in_order),
        packets(time_ns=[0] * len(queued), seq=[*queued]),
    )


def _measured(view: DatagramView, steady_ns: int, stop_ns: int) -> tuple[float, ...]:
    return tuple(datagrams.measure(analysis_of(steady_ns=steady_ns, stop_ns=stop_ns), view))


def test_each_packet_finds_its_arrival() -> None:
    """Packets are joined by their content, even if one overtakes another."""
    view = _view([0, 10, 20], {0: 105, 2: 106})
    assert view.arrived_ns.tolist() == [105, -1, 106]
    assert view.lost.tolist() == [False, True, False]
    assert _view([0, 10], {}).lost.all()


def test_what_is_still_queued_is_not_lost() -> None:
    """A packet in a queue when the captures end counts neither as lost nor as sent."""
    view = _view([0, 10, 20, 30], {0: 50}, queued=(3,))
    assert view.lost.tolist() == [False, True, True, False]
    assert _measured(view, 0, 40)[1] == 2 / 3


def test_jitter_is_that_of_the_rfc() -> None:
    """The estimate follows |D| with a gain of 1/16, in the order of arrival."""
    found = jitter_ns(np.array([0, 100, 200]), np.array([50, 166, 250]))
    assert found.tolist() == [0, 1, 1 + (16 - 1) / 16]
    assert jitter_ns(np.array([0, 1, 2]), np.array([7, 8, 9])).tolist() == [0, 0, 0]
    assert len(jitter_ns(np.zeros(0, np.int64), np.zeros(0, np.int64))) == 0


def test_only_the_steady_window_counts() -> None:
    """Rate, loss, delay and jitter are over the packets sent after warm-up."""
    view = _view([0, 1000, 2000, 3000, 4000], {1: 6000, 3: 10_000, 4: 10_500})
    found = _measured(view, 1000, 4000)
    expected = (3 * 8e6 / 3000, 1 / 3, 6e-6, 6.9e-6, 2e-6 / 16 / 2)
    assert found == pytest.approx(expected, rel=1e-12, abs=0)


def test_what_arrives_at_the_first_instant_arrives() -> None:
    """A packet that is sent and arrives at time 0 has a delay of 0."""
    assert _measured(_view([0], {0: 0}), 0, 1)[1:] == (0, 0, 0, 0)


def test_a_flow_of_which_nothing_arrives() -> None:
    """A flow without an arrival has lost all packets; one without a packet has lost none."""
    assert _measured(_view([0, 1], {}), 0, 2)[1] == 1
    assert np.isnan(_measured(_view([0, 1], {}), 0, 2)[2:]).all()
    assert np.isnan(_measured(_view([0], {0: 1}), 5, 9)[1:]).all()


def test_a_later_packet_overtakes() -> None:
    """The share counts steady packets that arrive after a packet sent later."""
    view = _view([0, 10, 20, 30, 40], {0: 99, 1: 90, 2: 50, 4: 95})
    assert tuple(overtaking_share.measure(analysis_of(steady_ns=10, stop_ns=50), view)) == (1 / 3,)
    assert tuple(overtaking_share.measure(analysis_of(steady_ns=10, stop_ns=11), view)) == (0,)
    assert np.isnan(overtaking_share.measure(analysis_of(steady_ns=30, stop_ns=40), view)).all()
