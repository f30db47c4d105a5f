"""Windows over time: how they grow."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from twoway.measure.metrics.window_phase import MOST, growth_exponent, phase
from twoway.measure.queues import Occupancy

S = 1_000_000_000


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_growth_has_its_exponent(power: float) -> None:
    """A window that grows as a power of the time since its loss has that power as exponent."""
    time_ns = np.arange(0, 2000) * S // 10
    grown = (1000 * (time_ns % (100 * S) / (100 * S)) ** power).astype(np.int64)
    losses_ns = np.array([0, 100, 200]) * S
    assert growth_exponent(Occupancy(time_ns, grown), losses_ns) == pytest.approx(power, abs=0.02)


def test_growth_from_half_is_slower() -> None:
    """A window that grows evenly from half its peak has an exponent of about 0.3."""
    time_ns = np.arange(0, 100) * S
    grown = (500 + 500 * time_ns / (100 * S)).astype(np.int64)
    found = growth_exponent(Occupancy(time_ns, grown), np.array([0, 100 * S]))
    assert found == pytest.approx(0.29, abs=0.03)


def test_growth_needs_a_cycle() -> None:
    """Without two losses there is no cycle, and no exponent."""
    flat = Occupancy(np.array([0]), np.array([5]))
    assert math.isnan(growth_exponent(flat, np.array([50 * S])))


def _run_of(windows: list[Occupancy]) -> Any:
    """A run from 0 to 40 s of lasting connections one way, with these windows."""
    one_way = SimpleNamespace(transfer_bytes=None, direction="forward")
    views = {str(n): SimpleNamespace(connection=one_way, window=w) for n, w in enumerate(windows)}
    run = SimpleNamespace(steady_ns=0, stop_ns=40 * S)
    return cast("Any", SimpleNamespace(connections=views, run=run))


def test_pairs_of_many_windows() -> None:
    """Of more connections than can all be paired, first, last and ones between are."""
    time_ns = np.arange(0, 40, 10) * S
    up, down = (
        Occupancy(time_ns, np.array([1, 2, 1, 2])),
        Occupancy(time_ns, np.array([2, 1, 2, 1])),
    )
    few = [up] * (MOST - 1) + [down]
    correlated = (math.comb(MOST - 1, 2) - (MOST - 1)) / math.comb(MOST, 2)
    assert phase.measure(_run_of(few))[0] == pytest.approx(correlated)
    many = [each for each in few for _ in range(2)][:-1]
    assert phase.measure(_run_of(many))[0] == pytest.approx(correlated)
