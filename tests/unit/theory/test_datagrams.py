"""The closed forms of UDP on a link, against an independent simulation."""

import numpy as np
import pytest

from twoway.runs.points import load_point

SERVICE_S, FIXED_S = 1e-3, 9e-3
WINDOW_S, PATHS = 100, 100


def _mean_waits(load: float) -> np.ndarray:
    """Return mean waits over the window, for some sample paths, by Lindley's recursion."""
    source, means = np.random.default_rng(1), []
    for _ in range(PATHS):
        gaps = source.exponential(SERVICE_S / load, int(load * (WINDOW_S + 20) / SERVICE_S))
        walk = np.concatenate(([0], np.cumsum(SERVICE_S - gaps[1:])))
        waits, at_s = walk - np.minimum.accumulate(walk), np.cumsum(gaps)
        means.append(waits[at_s >= 20].mean())
    return np.array(means)


@pytest.mark.parametrize(("rate", "load"), [(4, 0.5), (6.4, 0.8)])
def test_an_m_d_1_queue(rate: float, load: float) -> None:
    """Prediction and tolerance of udp-poisson are a simulation's mean and four deviations."""
    point = load_point(f"udp-poisson@rate={rate:g},buffer=1000")
    (prediction,) = point.predictions
    waits = _mean_waits(load)
    assert prediction.value == pytest.approx(FIXED_S + waits.mean(), abs=4 * waits.std() / 10)
    assert prediction.tolerance == pytest.approx(4 * waits.std(), rel=0.2)


@pytest.mark.parametrize(("rate", "loss"), [(6, 0), (10, 0.2), (16, 0.5)])
def test_a_full_queue(rate: int, loss: float) -> None:
    """A link of 8 Mbit/s loses the rate above its own, and nothing below."""
    (prediction,) = load_point(f"udp-loss@rate={rate}").predictions
    assert prediction.value == pytest.approx(loss)
