"""Completion times of transfers: until the last missing byte arrives."""

import numpy as np
import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of

from twoway.measure.metrics.completion import completion_time, completion_times


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
