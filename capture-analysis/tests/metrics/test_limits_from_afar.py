"""The limits of a transfer, seen from a tap away from its sender, on simulated paths."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from capture_analysis.flow_table import Seen
from capture_analysis.metrics import limits_from_afar
from capture_analysis.metrics.transfer_limits import NO_SCALE_SEEN
from capture_analysis.one_capture.evidence import ONE_SIDED
from capture_analysis.one_capture.limit import limit_of
from capture_analysis.one_capture.single import measure
from measured_captures import ColumnCapture, values
from simulated_path import Connection, Link, Place, Simulation

PLACES = ("middle", "far")


def captured(place: Place, loss: float = 0, **settings: Any) -> ColumnCapture:
    """Simulate a transfer that uses little of a link of 100 Mbit/s and 10 ms."""
    links = Link(1e8, 2_000_000, 3_000_000, loss=loss), Link(1e8, 3_000_000, 2_000_000)
    transfer = Connection(**{"window": 20, "announced": 1000} | settings)
    return Simulation(links, [transfer], place).run().captured()


def limits(capture: ColumnCapture) -> SimpleNamespace:
    """Return the quantities of the transfer's data."""
    return values(measure(capture), 0)


@pytest.mark.parametrize("place", PLACES)
def test_receive_window(place: Place) -> None:
    """With the announced window full, the window limits; with a wider one, the sender does."""
    found = limits(captured(place, window=1000, announced=20))
    assert found.afar_receive_window > 0.9
    assert limit_of(vars(found)).cause == "receive window"
    found = limits(captured(place))
    assert found.afar_sender > 0.9
    assert found.afar_receive_window == 0
    assert limit_of(vars(found)).cause == "sender"


@pytest.mark.parametrize("place", PLACES)
def test_recovery(place: Place) -> None:
    """The time from a loss before the tap to its repair is recovery; all shares sum to one."""
    found = limits(captured(place, loss=0.02))
    assert found.afar_recovery > 0.5
    shares = [each.name for each in limits_from_afar.LimitsFromAfar.per_direction]
    assert sum(getattr(found, name) for name in shares) == pytest.approx(1)
    assert limit_of(vars(found)).cause == "recovery"
    assert limits(captured(place)).afar_recovery == 0


@pytest.mark.parametrize(("place", "most"), [("far", 0.01), ("middle", 0.25)])
def test_data_that_the_capture_lacks_are_no_loss(place: Place, most: float) -> None:
    """Data that a capture lacks count as a repair until their ACK at most."""
    capture = captured(place)
    segments = np.flatnonzero(capture.whole.payload_bytes)
    capture.whole = capture.whole.where(np.delete(np.arange(len(capture.whole)), segments[::10]))
    found = limits(capture)
    assert found.capture_holes > 50
    assert found.afar_recovery < most
    assert limit_of(vars(found)).cause == "sender"


@pytest.mark.parametrize("place", PLACES)
def test_writes_of_the_application(place: Place) -> None:
    """The wait for an application that seldom writes is its own if its data have PSH."""
    capture = captured(place, write_ns=50_000_000, write=4)
    found = limits(capture)
    assert found.afar_sender > 0.95
    assert limit_of(vars(found)).cause == "sender"
    capture.whole.flags[capture.whole.payload_bytes > 0] |= 8
    found = limits(capture)
    assert found.afar_application > 0.6
    assert limit_of(vars(found)).cause == "application"


def test_what_cannot_be_told() -> None:
    """Near the sender, or without a known window scale, the metric has a reason instead."""
    near = limits(captured("near"))
    assert near.afar_sender == limits_from_afar.NOT_FAR
    unscaled = captured("far")
    unscaled.flows.rows["seen"] &= 3 * Seen.HALF
    found = limits(unscaled)
    assert found.afar_receive_window == NO_SCALE_SEEN
    assert found.afar_recovery == 0


@pytest.mark.parametrize("place", ["near", "middle"])
@pytest.mark.parametrize(("window", "named"), [(400, True), (227, False)])
def test_the_least_scale_of_windows(place: Place, window: int, *, named: bool) -> None:
    """Without the scale a window that is open under the least one is open under any."""
    capture = captured(place)
    capture.flows.rows["seen"] &= 3 * Seen.HALF
    capture.whole.window[:] = window  # 128 times of it hold 29,056 or 51,200 bytes; 28,960 are sent
    found = limits(capture)
    sender = found.limited_congestion_window if place == "near" else found.afar_sender
    assert (sender > 0.9) == named
    assert (NO_SCALE_SEEN in limit_of(vars(found)).sentence) != named


def test_data_alone() -> None:
    """If only data was captured, no cause is named, and the reason is that."""
    capture = captured("far")
    capture.whole = capture.whole.data()
    found = limit_of(vars(limits(capture)))
    assert found.cause == "cannot tell"
    assert ONE_SIDED in found.sentence
