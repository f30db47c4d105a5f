"""The dip of a throughput in any second, by hand."""

import math

import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import queue_of

from twoway.measure.metrics.throughput_dip import throughput_dip

S = 1_000_000_000


def _dip(came_s: list[float], window_s: float, frame_bytes: list[int] | None = None) -> float:
    """Return the dip of data sent at these times, in a steady window that begins at 7 s."""
    sizes = frame_bytes or [104] * len(came_s)
    came_ns = [7 * S + round(at * S) for at in came_s]
    data = packets(time_ns=came_ns, payload_bytes=sizes, frame_bytes=sizes)
    views = {"forward": queue_view(queue=queue_of(overhead_bytes=-4))}
    steady_ns, stop_ns = 7 * S, round((7 + window_s) * S)
    analysis = analysis_of(Ends(arrived=data), queues=views, steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = throughput_dip.measure(analysis, analysis.connections["0"])
    return found


def test_the_worst_second() -> None:
    """With 3, 1 and 2 segments in three seconds the dip is 1/2: one segment, against two."""
    assert _dip([0, 0.5, 0.999999999, 1, 2, 2.9], 3) == pytest.approx(0.5, rel=1e-12)
    assert _dip([0, 1], 2) == 0
    assert _dip([0.1, 0.2], 2) == 1


def test_sizes_are_those_on_the_link() -> None:
    """A second of 200 bytes on the link and one of 100 make a dip of a third."""
    assert _dip([0.5, 1.5], 2, [204, 104]) == pytest.approx(1 / 3, rel=1e-12)


def test_a_rest_of_a_second_is_left_out() -> None:
    """An incomplete last second of the window does not count, though it has no packets."""
    assert _dip([0.5, 1.5], 2.9) == 0


def test_too_short_or_nothing() -> None:
    """A window of less than two seconds has no dip, and neither has a connection without data."""
    assert math.isnan(_dip([0.5], 1.999))
    assert math.isnan(_dip([], 5, []))
