"""Kalampoukas's closed forms: worked numbers, and an independent packet-level model."""

from fractions import Fraction

from capture_analysis.theory import kalampoukas, zhang
from capture_analysis.theory.kalampoukas import Side
from hypothesis import given, settings
from hypothesis import strategies as st
from capture_analysis.theory.packet_model import Side as ModelSide
from capture_analysis.theory.packet_model import simulate

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
