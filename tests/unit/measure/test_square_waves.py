"""Plateaus, periods, epochs and synchronisation of queues that are drawn by hand."""

from itertools import pairwise

import numpy as np
import pytest
from capture_analysis.congestion_epochs import congestion_epochs

from twoway.measure.metrics.queue_length import BINS, period_s, plateaus
from twoway.measure.metrics.synchronisation import synchronisation
from twoway.measure.queues import Occupancy


def square_wave(high: int, low: int, half_ns: int, cycles: int, delay_ns: int = 0) -> Occupancy:
    """A queue that is high, then low, for the same time, again and again, from a time on."""
    edges = np.arange(2 * cycles) * half_ns + delay_ns
    return Occupancy(edges, np.where(np.arange(2 * cycles) % 2, low, high))


def test_plateaus() -> None:
    """A stretch that alternates between two levels is one plateau; a ramp is none."""
    steps = [(0, 5), (10, 6), (20, 5), (30, 6), (40, 9), (41, 12), (42, 13), (70, 13), (90, 2)]
    levels = Occupancy(*(np.array(column) for column in zip(*steps, strict=True)))
    assert plateaus(levels, 30).tolist() == [6, 13]


def test_plateaus_of_any_queue() -> None:
    """Plateaus are those that a walk from packet to packet finds, whatever the queue does."""
    random = np.random.default_rng(3)
    for _ in range(50):
        packets = np.abs(np.cumsum(random.integers(-1, 2, 200)))
        time_ns = np.cumsum(random.integers(0, 9, 200))
        heights: list[int] = []
        start = 0
        for row in range(1, 200):
            here = packets[start : row + 1]
            if here.max() - here.min() > 1:
                highest = int(packets[start:row].max())
                if time_ns[row] - time_ns[start] >= 20 and heights[-1:] != [highest]:
                    heights.append(highest)
                start = row
        assert plateaus(Occupancy(time_ns, packets), 20).tolist() == heights
    assert plateaus(Occupancy(time_ns[:0], packets[:0]), 20).tolist() == []


def test_period() -> None:
    """A square wave's period is found to a bin, not one of its multiples."""
    wave = square_wave(20, 3, 500_000_000, 50)
    assert period_s(wave, 0, 50_000_000_000) == pytest.approx(1, abs=50 / BINS)


def test_constant_has_no_period() -> None:
    """A queue that never changes repeats nothing."""
    still = Occupancy(np.array([0]), np.array([4]))
    assert np.isnan(period_s(still, 0, 1_000_000_000))


@pytest.mark.parametrize(("delay_ns", "index"), [(0, 1), (500, -1), (250, 0)])
def test_synchronisation(delay_ns: int, index: int) -> None:
    """In phase is 1, half a cycle later -1, a quarter 0, each without error."""
    first = square_wave(9, 1, 500, 200)
    second = square_wave(30, 20, 500, 201, delay_ns - 1000)
    found, error = synchronisation(first, second, 0, 100_000)
    assert found == pytest.approx(index, abs=1e-9)
    assert error == pytest.approx(0, abs=1e-9)


def test_synchronisation_error() -> None:
    """A queue that is in phase for half of the time, then out of phase, is neither, by a third."""
    first = square_wave(9, 1, 500, 100)
    turned = np.where(first.time_ns < 50_000, first.packets, 10 - first.packets)
    found, error = synchronisation(first, Occupancy(first.time_ns, turned), 0, 100_000)
    assert found == pytest.approx(0, abs=1e-9)
    assert error == pytest.approx(1 / 3)  # a deviation of sqrt(10/9), over sqrt(10)


def test_epoch_period() -> None:
    """The mean time from the first drop of an epoch to that of the next."""
    time_ns = np.array([0, 1, 2, 10, 30, 31]) * 1_000_000_000
    epochs = congestion_epochs(time_ns, np.zeros(6, dtype=np.int64), 2_000_000_000)
    assert epochs.drops.tolist() == [3, 1, 2]
    assert epochs.period_s() == 15
    assert [b - a for a, b in pairwise(epochs.start_ns // 1_000_000_000)] == [10, 20]
