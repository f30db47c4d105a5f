"""Jitter, overtaking and copies on a link, of packets made by hand."""

import math

import numpy as np
import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of

from twoway.measure.links.impairments import link_impairments

MS = 1_000_000


def _measured(
    came_ms: list[int], payload: list[int], arrivals: int, *, impaired: bool = True
) -> tuple[float, ...]:
    """Return the metrics of packets that left their last queue one millisecond apart."""
    rows = range(len(came_ms))
    behind = packets(time_ns=[row * MS for row in rows], seq=rows, payload_bytes=payload)
    came = [row for row in rows if came_ms[row] >= 0]
    copies = [came[0]] * (arrivals - len(came))
    time_ns = [came_ms[row] * MS for row in came] + [max(came_ms) * MS] * len(copies)
    again = [*came, *copies]
    arrived = packets(time_ns=time_ns, seq=again, payload_bytes=[payload[row] for row in again])
    order = np.argsort(arrived.time_ns, kind="stable")
    directions = {"directions": ["first", "last"], "direction": "last"}
    mine = Ends(behind=behind, arrived=arrived.where(order), fields=directions)
    links = {"last": {"impairments": {"jitter_ms": 1} if impaired else None}}
    analysis = analysis_of(mine, links=links)
    return tuple(link_impairments.measure(analysis, analysis.connections["0"]))


def test_each_impairment_by_hand() -> None:
    """A packet with 9 ms of delay overtakes ones with 10 and 12; losses and ACKs do not count."""
    jitter, overtaking, copies = _measured([10, 13, -1, 15, 12], [1, 1, 1, 0, 0], 6)
    assert jitter == pytest.approx(1, rel=1e-12)
    assert overtaking == 0
    assert copies == 2 / 5
    jitter, overtaking, _ = _measured([10, 13, -1, 11, 12], [1, 1, 1, 0, 1], 4)
    assert jitter == pytest.approx(math.sqrt((0 + 4 + 4) / 3), rel=1e-12)
    assert overtaking == 1 / 3


def test_arrival_with_another_overtakes_nothing() -> None:
    """Two data packets that arrive at once, in their order, have no overtaking; time 0 is valid."""
    jitter, overtaking, copies = _measured([0, 3, 3], [1, 1, 1], 3)
    assert jitter == pytest.approx(math.sqrt(2 / 3), rel=1e-12)  # deviation of 0, 2 and 1 ms
    assert (overtaking, copies) == (0, 0)


def test_no_data_no_impairment() -> None:
    """The metrics are undefined if no data packet arrives, or a link has no impairments."""
    assert np.isnan(_measured([-1, 5], [1, 0], 1)).all()
    assert np.isnan(_measured([10, 5], [1, 1], 3, impaired=False)).all()
