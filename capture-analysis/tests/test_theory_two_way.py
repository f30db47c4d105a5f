"""Two-way traffic in closed form: the paper's own numbers, and its printed forms as limits."""

import pytest
from capture_analysis.theory.two_way import (
    Side,
    alone_s,
    alternating_s,
    cycle_s,
    printed_efficiency,
    printed_queue_peak,
    queue_peaks,
    round_trip_s,
)
from hypothesis import assume, given
from hypothesis import strategies as st


def side(window: int, rate: float = 1, delay: float = 2, ack: float = 0, start: float = 0) -> Side:
    """A side whose segments take 1 / rate."""
    return Side(window, 1 / rate, ack / rate, delay, start)


SIDES = st.builds(
    side,
    window=st.integers(1, 60),
    rate=st.sampled_from([0.25, 0.5, 1, 2, 3]),
    delay=st.floats(0.1, 20),
    ack=st.just(0),
)


def efficiency(one: Side, other: Side) -> float:
    """The first side's share of its channel."""
    return one.window_s / cycle_s(one, other)


def test_worked_example_of_section_3() -> None:
    """Windows of 4 on a link of 2 slots: 66.67 %, a period of 12 slots, a queue of 3."""
    one, other = side(4), side(4, start=1)
    assert efficiency(one, other) == pytest.approx(2 / 3)
    assert 2 * cycle_s(one, other) == 12
    assert queue_peaks(one, other) == (3, 3)


def test_example_of_section_5_2() -> None:
    """Windows of 28 on 15 segments of delay: 65.1 %, and a queue of 13 that is free to swing."""
    assert efficiency(side(28, delay=15), side(28, delay=15)) == pytest.approx(0.651, abs=2e-4)
    assert queue_peaks(side(28, delay=15.01), side(28, delay=15.01)) == (13, 13)
    assert queue_peaks(side(28, delay=15.01), side(28, delay=15.01, start=3)) == (16, 16)


def test_example_of_section_4() -> None:
    """14 segments of 9180 bytes each way, 5 ms: the figure's 15 %, 40 % and 60 %."""
    data_s = 9180 * 8 / 155e6

    def fast(rate_mbit: float) -> float:
        slow = Side(14, 9180 * 8 / rate_mbit / 1e6, 0, 5e-3)
        return printed_efficiency(Side(14, data_s, 0, 5e-3), slow)

    assert fast(20) < 0.15
    assert fast(60) == pytest.approx(0.4, abs=0.02)
    assert fast(155) == pytest.approx(0.6, abs=0.03)


@given(one=SIDES, other=SIDES)
def test_printed_form_is_the_limit_of_ack_time_zero(one: Side, other: Side) -> None:
    """Without ACK time, Theorem 2 holds wherever no segment's round trip takes longest."""
    cycle = cycle_s(one, other)
    assume(cycle > max(round_trip_s(one, other), round_trip_s(other, one)))
    assert efficiency(one, other) == pytest.approx(printed_efficiency(one, other))


@given(one=SIDES, other=SIDES)
def test_queue_is_bounded_by_the_printed_lemma(one: Side, other: Side) -> None:
    """Without ACK time, no queue exceeds Lemma 5 by more than the segment in transmission."""
    peaks = queue_peaks(one, other)
    assume(peaks is not None)
    assert peaks is not None
    assert peaks[0] <= printed_queue_peak(one, other) + 1 + 1e-6
    assert peaks[1] <= printed_queue_peak(other, one) + 1 + 1e-6


@given(one=SIDES, other=SIDES)
def test_other_side_never_helps(one: Side, other: Side) -> None:
    """Against data of the other side, no side is faster than against its ACKs alone."""
    assert cycle_s(one, other) >= alone_s(one, other)
    assert cycle_s(one, other) == cycle_s(other, one)
    assert cycle_s(one, other) >= alternating_s(one, other)
