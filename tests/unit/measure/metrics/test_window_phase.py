"""Congestion windows over time: how they grow."""

import math
from itertools import pairwise

import numpy as np
import pytest
from packet_columns import packets
from support.column_run import Ends, analysis_of

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
    """Linear growth from half the peak fits an exponent of about 0.3."""
    time_ns = np.arange(0, 100) * S
    grown = (500 + 500 * time_ns / (100 * S)).astype(np.int64)
    found = growth_exponent(Occupancy(time_ns, grown), np.array([0, 100 * S]))
    assert found == pytest.approx(0.29, abs=0.03)


def test_growth_needs_a_cycle() -> None:
    """Without two losses there is no cycle, and no exponent."""
    flat = Occupancy(np.array([0]), np.array([5]))
    assert math.isnan(growth_exponent(flat, np.array([50 * S])))


def _with_window(window: list[int]) -> Ends:
    """Make a connection whose window has each of these lengths for ten seconds."""
    sent_s, acked_s = [0] * window[0], [-1]
    for at, (before, now) in enumerate(pairwise(window), start=1):
        (sent_s if now > before else acked_s).append(10 * at)
    sent = packets(
        time_ns=[at * S for at in sent_s], seq=range(len(sent_s)), payload_bytes=[1] * len(sent_s)
    )
    acks = packets(time_ns=[at * S for at in acked_s], ack=range(len(acked_s)))
    return Ends(sent=sent, acks_in=acks)


def test_pairs_of_many_windows() -> None:
    """If connections are too many, pairs of the first, the last and some between are correlated."""
    up, down = _with_window([1, 2, 1, 2]), _with_window([2, 1, 2, 1])
    few = [up] * (MOST - 1) + [down]
    correlated = (math.comb(MOST - 1, 2) - (MOST - 1)) / math.comb(MOST, 2)
    assert phase.measure(analysis_of(*few, stop_ns=40 * S))[0] == pytest.approx(correlated)
    many = [each for each in few for _ in range(2)][:-1]
    assert phase.measure(analysis_of(*many, stop_ns=40 * S))[0] == pytest.approx(correlated)
