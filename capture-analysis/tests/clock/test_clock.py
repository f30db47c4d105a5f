"""Offset, drift and steps of a clock from the delays in both directions."""

from dataclasses import dataclass

import numpy as np
import pytest
from capture_analysis.clock import clock
from capture_analysis.clock.clock import Clock
from capture_analysis.clock.envelope import INTERVALS, Envelope
from capture_analysis.columns import BoolArray, IntArray

EPOCH_NS = 1_700_000_000_000_000_000
HOUR_NS = 3_600_000_000_000
MS = 1_000_000


@dataclass
class Delays:
    """Packets in both directions: readings of A and B, A's clock when B read, order of taps."""

    a_ns: IntArray
    b_ns: IntArray
    at_b_ns: IntArray
    a_first: BoolArray

    def envelope(self, parts: int = 1) -> Envelope:
        """Return the packets' Envelope, added in a number of parts."""
        envelope = Envelope()
        for rows in np.array_split(np.arange(len(self.a_ns)), parts):
            difference = self.b_ns[rows] - self.a_ns[rows]
            envelope.add(self.a_ns[rows], difference, self.a_first[rows])
        return envelope

    def error_ns(self, fitted: Clock) -> IntArray:
        """Return the clock's error for every packet."""
        return np.asarray(np.abs(fitted.on_first(self.b_ns) - self.at_b_ns))


def delays(
    seconds: float,
    offset_ns: int,
    drift_ppm: float,
    *,
    steps: tuple[tuple[float, int], ...] = (),
    asymmetry_ns: int = 0,
    packets: int = 20_000,
) -> Delays:
    """Make packets with 10 ms of delay and a random queue, which one in fifty finds empty."""
    random = np.random.default_rng(7)
    after_ns = np.sort(random.integers(0, int(seconds * 1e9), packets))
    a_first = random.random(packets) < 0.5
    queue = random.exponential(5 * MS, packets) * (random.random(packets) > 0.02)
    delay = 10 * MS + queue.astype(np.int64) + np.where(a_first, asymmetry_ns, 0)
    at_b_ns = after_ns + np.where(a_first, delay, -delay)
    theta = offset_ns + np.rint(drift_ppm * 1e-6 * at_b_ns).astype(np.int64)
    for at_s, size_ns in steps:
        theta += np.where(at_b_ns >= at_s * 1e9, size_ns, 0)
    return Delays(EPOCH_NS + after_ns, EPOCH_NS + at_b_ns + theta, EPOCH_NS + at_b_ns, a_first)


@pytest.mark.parametrize(
    ("seconds", "offset_ns", "drift_ppm"),
    [(60, 3 * HOUR_NS + 123, 0.0), (60, -5 * HOUR_NS, 25.0), (3600, 77, -80.0), (60, 9 * MS, 3.0)],
)
def test_offset_and_drift_are_found(seconds: float, offset_ns: int, drift_ppm: float) -> None:
    """If both shortest delays are equal, every time is right to 2 ns, for any offset and drift."""
    packets = delays(seconds, offset_ns, drift_ppm)
    fitted = clock.fit(packets.envelope())
    (line,) = fitted.lines
    assert packets.error_ns(fitted).max() <= 2
    assert line.drift * 1e6 == pytest.approx(drift_ppm, abs=1e-4)
    assert fitted.uncertainty_ns == pytest.approx(10 * MS, rel=1e-4)


def test_blocks_do_not_matter() -> None:
    """The clock is the same to the last bit, whatever the parts in which packets are added."""
    packets = delays(300, HOUR_NS, 12.0)
    whole, parts = clock.fit(packets.envelope()), clock.fit(packets.envelope(97))
    assert whole == parts


def test_memory_is_constant() -> None:
    """A year takes no more intervals than a second."""
    envelope = Envelope()
    times = EPOCH_NS + np.array([0, 1, 365 * 24 * HOUR_NS], dtype=np.int64)
    envelope.add(times[:2], np.array([5, 4]), np.array([True, False]))
    envelope.add(times[2:], np.array([6]), np.array([True]))
    bounds = envelope.bounds()
    assert len(bounds.above) <= INTERVALS
    assert (bounds.above.min(), bounds.below.max(), bounds.most.max()) == (5, 4, 6)


def test_asymmetry_is_the_uncertainty() -> None:
    """If one direction takes 4 ms more, the offset is wrong by 2 ms, less than its uncertainty."""
    packets = delays(60, HOUR_NS, 10.0, asymmetry_ns=4 * MS)
    fitted = clock.fit(packets.envelope())
    assert packets.error_ns(fitted).max() == pytest.approx(2 * MS, abs=50)
    assert fitted.uncertainty_ns == pytest.approx(12 * MS, rel=1e-4)


@pytest.mark.parametrize("size_ns", [50 * MS, -50 * MS, 2 * MS])
def test_a_step_is_found_with_time_and_size(size_ns: int) -> None:
    """A clock set during the capture shows as a step, and times are right on both sides of it."""
    packets = delays(60, HOUR_NS, 20.0, steps=((20.0, size_ns),))
    fitted = clock.fit(packets.envelope())
    ((time_ns, found_ns),) = fitted.steps
    assert abs(time_ns - EPOCH_NS - 20 * 10**9) < 100 * MS
    assert found_ns == pytest.approx(size_ns, abs=10)
    away = np.abs(packets.at_b_ns - EPOCH_NS - 20 * 10**9) > 200 * MS
    assert packets.error_ns(fitted)[away].max() <= 2


def test_a_pendulum_is_no_step() -> None:
    """If queues fill in turn, one rising while the other falls, no clock step is found."""
    random = np.random.default_rng(3)
    after_ns = np.sort(random.integers(0, 60 * 10**9, 20_000))
    a_first = random.random(20_000) < 0.5
    swing = ((after_ns // 500_000_000) % 2 == 0) == a_first
    delay = 10 * MS + np.where(swing, 8 * MS, 0)
    a_ns, at_b_ns = EPOCH_NS + after_ns, EPOCH_NS + after_ns + np.where(a_first, delay, -delay)
    packets = Delays(a_ns, at_b_ns + HOUR_NS, at_b_ns, a_first)
    fitted = clock.fit(packets.envelope())
    assert not fitted.steps
    assert packets.error_ns(fitted).max() <= 2


def test_one_clock_is_recognised() -> None:
    """Without offset and drift nothing is corrected, even if delays are asymmetric."""
    packets = delays(60, 0, 0.0, asymmetry_ns=3 * MS)
    fitted = clock.fit(packets.envelope())
    assert fitted.how.startswith("one clock")
    assert packets.error_ns(fitted).max() == 0


def test_a_small_drift_is_not_one_clock() -> None:
    """Two clocks that differ by 1 ppm do not count as one."""
    packets = delays(60, 0, 1.0)
    fitted = clock.fit(packets.envelope())
    assert fitted.how.startswith("estimated")
    assert packets.error_ns(fitted).max() <= 2


def test_one_direction_leaves_the_offset_open() -> None:
    """With packets in one direction, only the drift is found, and no uncertainty."""
    packets = delays(60, HOUR_NS, 20.0)
    forward = packets.a_first
    envelope = Envelope()
    envelope.add(
        packets.a_ns[forward], (packets.b_ns - packets.a_ns)[forward], packets.a_first[forward]
    )
    fitted = clock.fit(envelope)
    assert fitted.uncertainty_ns is None
    error = fitted.on_first(packets.b_ns) - packets.at_b_ns
    assert error == pytest.approx(-10 * MS, abs=300)


def test_the_slowest_packet_is_known() -> None:
    """The longest delay, which bounds the search for matches, is never underestimated."""
    packets = delays(60, HOUR_NS, 20.0)
    envelope = packets.envelope(13)
    fitted = clock.fit(envelope)
    delay = np.abs(packets.at_b_ns - packets.a_ns)
    assert 0 <= clock.slowest_ns(fitted, envelope) - delay.max() <= 2000
