"""The metric names the control whose law a window follows: windows by law, and by none."""

from collections.abc import Callable

import numpy as np
import pytest
from capture_analysis.columns import IntArray
from capture_analysis.metrics.congestion_control import (
    ALIKE,
    CONTROLS,
    IDLE,
    NO_RULE,
    SHORT_TRIPS,
    TOO_FEW,
    VARIED,
    Fit,
    name_control,
)
from capture_analysis.one_capture.single import measure
from capture_analysis.window_laws import window_of
from measured_captures import values
from simulated_path import Connection, Link, Simulation

MSS, TRIP_NS = 1448, 80_000_000
Gain = Callable[[int, float], float]


def slots(windows: list[float], again: list[int], queued: float = 0, acks: int = 2) -> IntArray:
    """Make the slots of a window, a round trip each.

    Args:
        windows: segments, of each slot.
        again: the slots with repairs.
        queued: segments in a queue, at all times but the first.
        acks: segments that an ACK acknowledges.
    """
    window = np.array(windows)
    flight = window * MSS
    trip = TRIP_NS * (1 + queued / np.maximum(window - queued, 1))
    trip[0] = TRIP_NS
    count = np.maximum((window - queued) // acks, 1)
    lost = np.isin(np.arange(len(windows)), again)
    rows = (flight, 0.9 * flight, 4 * flight, trip, lost, count, trip * count)
    return np.array((np.arange(len(windows)), *rows), dtype=np.int64)


def sawtooth(
    kept: float, gain: Gain, queued: float = 0, times: int = 25
) -> tuple[list[float], list[int]]:
    """Grow a window to 80; a loss then leaves a share, and a slot later it grows again."""
    most = 80.0
    windows: list[float] = []
    again = []
    for _ in range(times):
        again.append(len(windows))
        windows += [most, most]
        window, trip = float(int(kept * most)), 0
        while window < most:
            windows.append(window)
            window += gain(trip, window) * (1 - queued / window)
            trip += 1
    return windows, again


@pytest.mark.parametrize(
    ("kept", "gain", "controls"),
    [
        pytest.param(0.5, lambda *_: 1, "reno, yeah and lp", id="reno"),
        pytest.param(0.56, lambda _, window: 0.5 + (window > 38) / 2, "highspeed", id="highspeed"),
        pytest.param(0.5, lambda _, window: 1250 // window * window / 256, "hybla", id="hybla"),
        pytest.param(0.875, lambda *_: 1, "scalable", id="scalable"),
        pytest.param(0.5, lambda *_: 0.5, "veno", id="veno"),
        pytest.param(0.3, lambda *_: 1, NO_RULE, id="none"),
    ],
)
def test_laws_between_losses(kept: float, gain: Gain, controls: str) -> None:
    """The share of a window after a loss and its growth in a round trip tell the control."""
    assert said(slots(*sawtooth(kept, gain, 12), 12)) == controls


def test_laws_that_a_queue_shows() -> None:
    """Without a queue Vegas, CDG, Veno and YeAH have no occasion to differ from others."""
    windows = slots(*sawtooth(0.5, lambda *_: 1))
    assert said(windows) == "reno, vegas, cdg and lp"


def test_cubic_growth() -> None:
    """CUBIC's window returns to the last one in a time that round trips do not change."""

    def gain(trip: int, _: float) -> float:
        now_s, back_s = trip * TRIP_NS / 1e9, np.cbrt(0.3 * 80 / 0.4)
        growth = (now_s + TRIP_NS / 1e9 - back_s) ** 3 - (now_s - back_s) ** 3
        return 0.4 * float(growth)

    assert said(slots(*sawtooth(0.7, gain))) == "cubic"


def test_rules_without_losses() -> None:
    """BBR dips to four segments, Vegas keeps two to four queued, and others tell nothing."""
    steady, dips = [20.0] * 300, [20.0] * 250 + [4.0] * 10 + [20.0] * 40
    assert said(slots(dips, [], queued=9)) == "bbr"
    assert said(slots(steady, [], queued=3)) == "vegas"
    for queued in (0.5, 7):
        assert said(slots(steady, [], queued)) == TOO_FEW
    full = slots(steady, [], queued=3)
    full[3] = full[1]
    assert said(full) == TOO_FEW, "the receiver's window limits"


def test_cuts_without_losses() -> None:
    """CDG cuts its window to 0.7 without a loss; other falls, as BBR's to 0.83, tell nothing."""
    for kept, control in ((0.7, "cdg"), (0.4, VARIED), (0.83, VARIED)):
        windows, again = sawtooth(kept, lambda *_: 1)
        calm = [window for number, window in enumerate(windows) if number not in again]
        assert said(slots(calm, [])) == control


def test_losses_that_do_not_tell() -> None:
    """One loss is too few, and decreases that differ follow no rule."""
    assert said(slots([40.0] * 120, [110])) == TOO_FEW
    mixed: list[float] = []
    lost = []
    for kept in (0.2, 0.9, 0.3, 0.85, 0.25, 0.6) * 2:
        more, _ = sawtooth(kept, lambda *_: 1, times=1)
        lost.append(len(mixed))
        mixed += more
    assert said(slots(mixed, lost)) == NO_RULE


@pytest.mark.parametrize("early", range(1, 11))
def test_a_pause_between_losses(early: int) -> None:
    """A pause that takes a third of the time between two losses makes no gain undefined."""
    windows, again = sawtooth(0.5, lambda *_: 1, 12)
    rows = slots(windows, again, 12)
    for at in again[1:]:
        rows[0, at - early :] += 200
    with np.errstate(all="raise"):
        assert said(rows) in ("reno, yeah and lp", NO_RULE)


def test_a_flight_that_is_no_window() -> None:
    """A flight that falls in each round trip is not the window, and names no control."""
    rows = slots(*sawtooth(0.875, lambda *_: 1, 12), 12)
    rows[2] = rows[1] // 3
    assert said(rows) == IDLE


def test_a_lan_has_no_window() -> None:
    """Slots are a millisecond or longer, so that shorter round trips name no control."""
    links = Link(1e8, 100_000, 100_000), Link(1e8, 100_000, 100_000)
    simulation = Simulation(links, [Connection(segments=3000, window=40)], "near")
    found = values(measure(simulation.run().captured()), 0).congestion_control
    assert found == SHORT_TRIPS


def test_json_numbers() -> None:
    """The number of losses is one that JSON can write, and so is the control's."""
    window = window_of(slots(*sawtooth(0.875, lambda *_: 1, 12), 12), MSS, TRIP_NS)
    assert window
    assert isinstance(name_control(window, Fit(window)), int)
    assert isinstance(Fit(window).decrease, float)


def test_a_short_transfer_has_no_window() -> None:
    """Fewer than a hundred round trips tell nothing."""
    assert window_of(slots([20.0] * 99, []), MSS, TRIP_NS) is None


def said(rows: IntArray) -> str:
    """Return the control's name, the names of those that are alike, or why none is named."""
    window = window_of(rows, MSS, TRIP_NS)
    assert window
    found = name_control(window, Fit(window))
    if not isinstance(found, str):
        return CONTROLS[int(found) - 1]
    return found.removeprefix(f"{ALIKE} ").partition(", which")[0]
