"""Goodput over a flow's own sending time, and segments sent again."""

import math
from typing import Any

import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of

from twoway.measure.metrics.completion import completion_time
from twoway.measure.metrics.retransmissions import retransmissions
from twoway.measure.metrics.throughput import fairness, goodput

# Goodput over a flow's own sending time, on segments made by hand.

MS = 1_000_000


def ends(*at_ms: int, **fields: Any) -> Ends:
    """Make a connection with a segment of 1000 bytes that arrives at each of some times."""
    data = packets(
        time_ns=[ms * MS for ms in at_ms],
        seq=[1000 * number for number in range(len(at_ms))],
        payload_bytes=[1000] * len(at_ms),
        frame_bytes=[1066] * len(at_ms),
    )
    return Ends(sent=data, arrived=data, fields=fields)


def measured(flow: Ends, steady_ms: int = 0, stop_ms: int = 100) -> tuple[float, float]:
    """Return goodput and throughput in Mbit/s: 1000 bytes in a ms are 8."""
    analysis = analysis_of(flow, steady_ns=steady_ms * MS, stop_ns=stop_ms * MS)
    (view,) = analysis.connections.values()
    found, through, _ = goodput.measure(analysis, view)
    return found, through


@pytest.mark.parametrize("stop_ms", [40, 100, 400])
def test_a_transfer_has_one_goodput(stop_ms: int) -> None:
    """A transfer of 4000 bytes in 20 ms has 1.6 Mbit/s, however long the run goes on."""
    flow = ends(5, 10, 15, 20, 30, transfer_bytes=4000)
    assert measured(flow, stop_ms=stop_ms) == pytest.approx((1.6, 1.6 * 1.066))


def test_a_transfer_is_measured_from_its_own_start() -> None:
    """A transfer from 10 ms to 20 ms has twice the goodput, and a time of 10 ms."""
    flow = ends(12, 14, 16, 20, transfer_bytes=4000, start_ns=10 * MS)
    assert measured(flow)[0] == pytest.approx(3.2)
    analysis = analysis_of(flow, stop_ns=100 * MS)
    (view,) = analysis.connections.values()
    assert completion_time.measure(analysis, view) == (0.01,)


def test_an_unfinished_transfer_sends_to_the_end() -> None:
    """A transfer that is not complete has its goodput over the whole window, and no time."""
    flow = ends(10, 20, transfer_bytes=4000)
    assert measured(flow)[0] == pytest.approx(0.16)
    analysis = analysis_of(flow, stop_ns=100 * MS)
    (view,) = analysis.connections.values()
    assert math.isnan(completion_time.measure(analysis, view)[0])


@pytest.mark.parametrize(
    ("at_ms", "mbit"), [((25, 35), 16 / 20), ((25, 45), 16 / 25), ((25, 120), 8 / 80)]
)
def test_a_stopped_flow_sends_until_its_data_has_arrived(
    at_ms: tuple[int, ...], mbit: float
) -> None:
    """A flow from 20 to 40 ms is measured to 40 ms, or until its last byte arrives in the run."""
    flow = ends(*at_ms, start_ns=20 * MS, stop_ns=40 * MS)
    assert measured(flow)[0] == pytest.approx(mbit)


def test_the_window_bounds_the_time() -> None:
    """A transfer from 0 to 40 ms counts with what arrives from 20 ms on, over 20 ms."""
    flow = ends(10, 20, 30, 40, transfer_bytes=4000)
    assert measured(flow, steady_ms=20)[0] == pytest.approx(3 * 8 / 20)


def test_a_flow_outside_of_the_window_has_no_goodput() -> None:
    """A transfer that ends before the window has no goodput, and does not count for fairness."""
    early, other = ends(1, 2, transfer_bytes=2000), ends(30, 60)
    analysis = analysis_of(early, other, steady_ns=20 * MS, stop_ns=100 * MS)
    assert all(map(math.isnan, goodput.measure(analysis, analysis.connections["0"])))
    assert fairness.measure(analysis) == (1,)
    alone = analysis_of(early, steady_ns=20 * MS, stop_ns=100 * MS)
    assert math.isnan(fairness.measure(alone)[0])


# Segments sent again, and those sent again in vain.


def test_copies_by_a_link_are_no_retransmissions() -> None:
    """A segment is needless if its payload had arrived; copies by a link never count.

    The first segment arrives twice because of the link, and once more because it was sent again,
    and the link copies that one, too.
    """
    arrived = packets(
        time_ns=[10, 11, 20, 30, 31],
        seq=[1, 1, 101, 1, 1],
        ip_id=[1, 1, 2, 3, 3],
        payload_bytes=[100] * 5,
    )
    sent = packets(time_ns=[0, 1, 2], seq=[1, 101, 1], ip_id=[1, 2, 3], payload_bytes=[100] * 3)
    analysis = analysis_of(Ends(sent=sent, arrived=arrived), stop_ns=100)
    found = retransmissions.measure(analysis, analysis.connections["0"])
    assert tuple(found) == (1, 1 / 3, 1)
