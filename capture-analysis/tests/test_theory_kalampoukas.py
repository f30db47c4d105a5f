"""Kalampoukas's closed forms: worked numbers, and an independent packet-level model."""

from fractions import Fraction

from capture_analysis.theory import kalampoukas, zhang
from capture_analysis.theory.kalampoukas import Side
from capture_analysis.theory.kalampoukas_queue import queue_peaks
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_model import Side as ModelSide
from packet_model import simulate

FREE = Fraction(0)


def _even(window: int, delay: int) -> Side:
    return Side(window, Fraction(1), FREE, Fraction(delay))


def test_worked_example_has_two_thirds() -> None:
    """Windows of 4 on a link of 2 get 66.67 %, and queues of 3 and 1 alternate (section 3)."""
    side = _even(4, 2)
    assert kalampoukas.printed_efficiency(side, side) == Fraction(2, 3)
    assert kalampoukas.next_queue(side, side, Fraction(3)) == 1
    assert kalampoukas.printed_queue_bound(side, side) == 4


def test_section_5_2_has_its_efficiency_and_queue() -> None:
    """Windows of 28 and 15 segments of delay get 65.1 %, with queues of 13 (section 5.2)."""
    side = _even(28, 15)
    assert round(float(kalampoukas.printed_efficiency(side, side)), 3) == 0.651
    assert kalampoukas.next_queue(side, side, Fraction(13)) == 13


def test_zhang_figure_8_has_its_peaks() -> None:
    """Windows of 30 and 25 over a short pipe peak at 55 and 23 (figure 8)."""
    assert zhang.out_of_phase(30, 25, Fraction(1, 8))
    assert not zhang.out_of_phase(30, 25, Fraction(25, 2))
    assert [int(p) for p in zhang.out_of_phase_peaks(30, 25, Fraction(1, 10))] == [55, 23]


@settings(max_examples=40, deadline=None)
@given(
    windows=st.tuples(st.integers(2, 20), st.integers(2, 20)),
    delay=st.integers(1, 60).map(lambda n: Fraction(n, 5)),
    ack=st.sampled_from([Fraction(1, 200), Fraction(1, 10)]),
)
def test_model_is_busy_as_the_closed_form_says(
    windows: tuple[int, int], delay: Fraction, ack: Fraction
) -> None:
    """In every region the model's links are busy as derived, within a cycle's work at each end."""
    one, two = (Side(w, Fraction(1), ack, delay) for w in windows)
    sides = tuple(ModelSide(s.window, s.data, s.ack, s.delay) for s in (one, two))
    period = kalampoukas.cycle(one, two)
    outcomes = simulate((sides[0], sides[1]), (30 * period, 70 * period))
    for outcome, here, there in zip(outcomes, (one, two), (two, one), strict=True):
        expected = kalampoukas.utilisation(here, there)
        assert abs(outcome.busy / (40 * period) - expected) <= Fraction(2, 40)


@settings(max_examples=40, deadline=None)
@given(
    windows=st.tuples(st.integers(3, 24), st.integers(3, 24)),
    rate=st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(3)]),
    delay=st.fractions(1, 16, max_denominator=7),
)
def test_model_agrees_on_links_as_unequal_as_three_to_one(
    windows: tuple[int, int], rate: Fraction, delay: Fraction
) -> None:
    """In every region, both links are busy as derived, and both queues peak within a segment."""
    ack, delay = Fraction(40, 9180), delay + Fraction(1, 101)
    one = Side(windows[0], 1 / rate, ack / rate, delay)
    two = Side(windows[1], Fraction(1), ack, delay)
    sides = tuple(ModelSide(s.window, s.data, s.ack, s.delay) for s in (one, two))
    period = kalampoukas.cycle(one, two)
    outcomes = simulate((sides[0], sides[1]), (20 * period, 60 * period))
    peaks = queue_peaks(one, two, FREE) or [None, None]
    for outcome, here, there, peak in zip(outcomes, (one, two), (two, one), peaks, strict=True):
        expected = kalampoukas.utilisation(here, there)
        assert abs(outcome.busy / (40 * period) - expected) <= Fraction(2, 40)
        if peak is not None:
            assert abs(outcome.queue_peak_data - peak) <= 1


def test_phase_decides_which_queues_alternate() -> None:
    """Section 5.2's queues are 13 and 13 in phase, and 16 and 10 three segments apart."""
    side = Side(28, Fraction(1), FREE, Fraction(1501, 100))
    assert queue_peaks(side, side, FREE) == (13, 13)
    assert queue_peaks(side, side, Fraction(3)) == (16, 16)


@given(
    windows=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    data=st.fractions(Fraction(1, 4), 4, max_denominator=4),
    delay=st.fractions(0, 20, max_denominator=9),
)
def test_free_acks_leave_the_printed_forms(
    windows: tuple[int, int], data: Fraction, delay: Fraction
) -> None:
    """Without ACK time, and unless a round trip takes longest, Theorem 2 and Lemma 5 hold."""
    one = Side(windows[0], data, FREE, delay)
    two = Side(windows[1], Fraction(1), FREE, delay)
    peaks = queue_peaks(one, two, FREE)
    if peaks and kalampoukas.compresses(one, two):
        assert kalampoukas.efficiency(one, two) == kalampoukas.printed_efficiency(one, two)
        # The lemma leaves out the segment in transmission.
        assert peaks[0] <= kalampoukas.printed_queue_bound(one, two) + 1
        assert peaks[1] <= kalampoukas.printed_queue_bound(two, one) + 1
