"""How long transfers take: to the arrival of the last byte that was missing."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from packet_columns import packets

from twoway.measure.metrics.completion import completion_time, completion_times


def _view(size: int | None, time_ns: list[int], seq: list[int]) -> Any:
    arrived = packets(time_ns=time_ns, seq=seq, payload_bytes=[100] * len(seq))
    connection = SimpleNamespace(transfer_bytes=size, start_ns=1000)
    return SimpleNamespace(connection=connection, arrived=arrived)


def _analysis(**views: Any) -> Any:
    return SimpleNamespace(run=SimpleNamespace(stop_ns=10_000), connections=views)


def test_a_repaired_hole_is_the_end() -> None:
    """A transfer is complete when its last hole is filled, whatever came before."""
    view = _view(300, [2000, 3000, 3500, 4000], [0, 200, 200, 100])
    assert completion_time.measure(_analysis(), view) == (3e-6,)


def test_unlimited_or_unfinished_has_no_time() -> None:
    """Without a size, with bytes missing, or with the last after the end there is no time."""
    for view in (
        _view(None, [2000], [0]),
        _view(300, [2000, 3000], [0, 100]),
        _view(200, [2000, 10_000], [0, 100]),
    ):
        assert np.isnan(completion_time.measure(_analysis(), view)[0])


def test_all_transfers_together() -> None:
    """Of three transfers two are complete; median and percentile are theirs, others' none."""
    analysis = _analysis(
        a=_view(100, [2000], [0]),
        b=_view(100, [4000], [0]),
        c=_view(200, [4000], [0]),
        d=_view(None, [4000], [0]),
    )
    assert completion_times.measure(analysis) == pytest.approx((2e-6, 2.9e-6, 2 / 3))


def test_no_transfer_is_complete() -> None:
    """Where no transfer is complete the share is 0, and where there is none it is not defined."""
    unfinished = completion_times.measure(_analysis(a=_view(200, [2000], [0])))
    assert np.isnan(unfinished[:2]).all()
    assert unfinished[2] == 0
    assert np.isnan(completion_times.measure(_analysis(d=_view(None, [2000], [0])))).all()


def test_what_came_before_the_start_does_not_count() -> None:
    """Bytes count from the start on: those of the instant before it are of no transfer."""
    before, at = _view(100, [999, 5000], [0, 100]), _view(100, [1000, 5000], [0, 100])
    assert completion_time.measure(_analysis(), before) == (4e-6,)
    assert completion_time.measure(_analysis(), at) == (0,)
    a_byte_more = _view(101, [999, 2000, 3000], [0, 100, 200])
    assert completion_time.measure(_analysis(), a_byte_more) == (2e-6,)


def test_data_may_begin_anywhere() -> None:
    """A first byte of any number, and a byte more than asked for, change nothing."""
    view = _view(150, [2000, 3000], [(1 << 32) - 100, 0])
    assert completion_time.measure(_analysis(), view) == (2e-6,)
