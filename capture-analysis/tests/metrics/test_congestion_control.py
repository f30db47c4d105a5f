"""The metric names the control whose rules a window follows: windows by rule, and by none."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from capture_analysis.columns import IntArray
from capture_analysis.metrics.congestion_control import (
    CONTROLS,
    NO_RULE,
    TOO_FEW,
    VARIED,
    name_control,
    shape_of,
)

MSS, TRIP_NS = 1448, 20_000_000


def slots(windows: list[float], again: list[int], queued: float = 0) -> IntArray:
    """Make the slots of a window, a round trip each: segments, and the slots with repairs."""
    flight = np.array(windows) * MSS
    trip = TRIP_NS * (1 + queued / np.maximum(np.array(windows) - queued, 1))
    lost = np.isin(np.arange(len(windows)), again)
    rows = (np.arange(len(windows)), flight, 0.9 * flight, 4 * flight, lost, flight > 0, trip)
    return np.array(rows, dtype=np.int64)


def sawtooth(
    least: float, gain: Callable[[int], float], most: float = 40, times: int = 25
) -> tuple[list[float], list[int]]:
    """Grow a window to a most, which is lost, and then begin anew at the least."""
    windows: list[float] = []
    again = []
    for _ in range(times):
        again.append(len(windows))
        windows += [most, least, least, *_growing(least, gain, most)]
    return windows, again


def _growing(window: float, gain: Callable[[int], float], most: float) -> Iterator[float]:
    trip = 0
    while window < most:
        yield window
        window += gain(trip)
        trip += 1


@pytest.mark.parametrize(
    ("least", "gain", "control"),
    [
        pytest.param(20, lambda _: 1, "reno", id="reno"),
        pytest.param(28, lambda _: 0.53, "cubic", id="cubic, friendly"),
        pytest.param(28, lambda trip: 0.2 + 0.01 * (trip - 10) ** 2, "cubic", id="cubic"),
        pytest.param(32, lambda _: 0.38, "bic", id="bic"),
        pytest.param(20, lambda _: 2.2, "hybla", id="hybla"),
        pytest.param(20, lambda trip: 0.2 + 0.4 * trip, "htcp", id="htcp"),
        pytest.param(20, lambda _: 0.53, NO_RULE, id="highspeed"),
        pytest.param(36, lambda _: 1, NO_RULE, id="scalable"),
    ],
)
def test_rules_between_losses(least: float, gain: Callable[[int], float], control: str) -> None:
    """The share of a window after a loss and its growth in a round trip tell the control."""
    most = 120 if control == "htcp" else 40
    windows, again = sawtooth(least * most / 40, gain, most)
    assert said(slots(windows, again)) == control
    shape = shape_of(slots(windows, again), MSS, TRIP_NS)
    assert shape
    assert isinstance(shape.losses, int)  # for JSON, which knows no number of numpy


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


def test_losses_that_do_not_tell() -> None:
    """Two losses are too few, and decreases that differ follow no rule."""
    windows, again = sawtooth(20, lambda _: 1, times=3)
    assert said(slots([*windows, *[40.0] * 100], again[:2])) == TOO_FEW
    mixed: list[float] = []
    lost = []
    for least in (10, 34, 16, 30, 12, 36):
        more, _ = sawtooth(least, lambda _: 1, times=1)
        lost.append(len(mixed))
        mixed += more
    assert said(slots(mixed, lost)) == VARIED


def test_a_short_transfer_has_no_shape() -> None:
    """Fewer than a hundred round trips tell nothing."""
    assert shape_of(slots([20.0] * 99, []), MSS, TRIP_NS) is None


def said(rows: IntArray) -> str:
    """Return the control's name, or the reason why none is named."""
    shape = shape_of(rows, MSS, TRIP_NS)
    assert shape
    found = name_control(shape)
    return found if isinstance(found, str) else [*CONTROLS][int(found) - 1]
