"""How far losses are from what a profile says."""

import math

import pytest

from twoway.measure.metrics.link_loss import deviations


def test_single_losses() -> None:
    """Of 10 000 packets 110 lost where 100 are expected is a standard deviation too many."""
    alone = {"percent": 1, "burst_packets": None}
    share, length = deviations(alone, 0.011, 10_000, 1 / 0.99, 100)
    assert share == pytest.approx(0.001 / math.sqrt(0.01 * 0.99 / 10_000))
    assert length == 0


def test_bursts() -> None:
    """Bursts of 8 widen the share's deviation 3.85 times; 25 lengths of 9.5 are one above 8."""
    bursts = {"percent": 1, "burst_packets": 8}
    share, length = deviations(bursts, 0.011, 10_000, 9.5, 25)
    correlated = 1 - 1 / 8 - 0.01 / 0.99 / 8
    widened = math.sqrt((1 + correlated) / (1 - correlated))
    assert widened == pytest.approx(3.85, abs=0.01)
    assert share == pytest.approx(0.001 / math.sqrt(0.01 * 0.99 / 10_000) / widened)
    assert length == pytest.approx(1.5 / math.sqrt(8 * 7 / 25))


def test_no_losses() -> None:
    """Without a burst there is no length to compare."""
    assert math.isnan(deviations({"percent": 1, "burst_packets": 8}, 0, 100, math.nan, 0)[1])
