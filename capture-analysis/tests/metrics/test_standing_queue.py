"""The share of time with a standing queue, on simulated paths."""

from typing import Any

import pytest
from capture_analysis.metrics.standing_queue import NO_STAMPS, TOO_FEW
from capture_analysis.one_capture.evidence import ONE_SIDED
from capture_analysis.one_capture.single import measure
from measured_captures import ColumnCapture, values
from simulated_path import Connection, Link, Place, Simulation

# 8 Mbit/s and 4 ms hold 3 segments.
PIPE = 3


def captured(place: Place, *others: Connection, **settings: Any) -> ColumnCapture:
    """Simulate a transfer over 8 Mbit/s, whose first round trips find an idle link."""
    links = Link(8e6), Link(1e8)
    transfer = Connection(**{"window": 30, "segments": 2000} | settings)
    return Simulation(links, [transfer, *others], place).run().captured()


def standing(capture: ColumnCapture) -> Any:
    """Return the share of time with a standing queue, or the reason for having none."""
    return values(measure(capture), 0).standing_queue


@pytest.mark.parametrize("place", ["near", "middle", "far"])
def test_window_beyond_the_pipe(place: Place) -> None:
    """At any tap a window of ten pipes shows a standing queue; one of one pipe does not."""
    assert standing(captured(place)) > 0.95
    assert standing(captured(place, announced=PIPE)) == 0


def test_queue_of_others() -> None:
    """A queue that another transfer fills also counts for a transfer with a small window."""
    other = Connection(window=60, segments=20_000, begin_ns=500_000_000)
    assert standing(captured("near", other, announced=2)) > 0.8
    assert standing(captured("near", announced=2)) == 0


def test_receiver_that_waits_is_no_queue() -> None:
    """Delays of a receiver that reads only now and then do not count as a queue."""
    assert standing(captured("near", announced=PIPE, held_ns=3_000_000)) < 0.2


def test_silence_is_no_queue() -> None:
    """In a silence at most one round trip counts as time with a queue."""
    assert 0.05 < standing(captured("near", write_ns=800_000_000, write=100)) < 0.4
    assert standing(captured("near", write_ns=160_000_000, write=100)) > 0.8
    other = Connection(window=60, segments=20_000)
    seldom = standing(captured("near", other, write_ns=800_000_000, write=10, segments=200))
    assert 0.05 < seldom < 0.6


def test_jitter_is_no_queue() -> None:
    """On a path of a few ms, delays that vary by less than 1 ms are no queue."""
    links = Link(8e6, jitter_ns=600_000), Link(1e8, jitter_ns=300_000)
    transfer = Connection(announced=PIPE, segments=2000)
    assert standing(Simulation(links, [transfer], "near").run().captured()) == 0


def test_clocks_that_drift_make_no_queue() -> None:
    """With time stamps a drift of 50 ppm gives no queue, even after a hundred seconds."""
    capture = captured("far", write_ns=100_000_000, write=2)
    capture.whole.time_ns[:] += (capture.whole.time_ns - capture.whole.time_ns[0]) // 20_000
    assert standing(capture) == 0


def test_what_cannot_be_told() -> None:
    """Without time stamps, the ACKs or enough round trips the share has a reason instead."""
    assert standing(captured("far", tick_ns=0)) == NO_STAMPS
    assert standing(captured("near", segments=20)) == TOO_FEW
    alone = captured("far")
    alone.whole = alone.whole.data()
    assert standing(alone) == ONE_SIDED
