"""Kalampoukas's closed forms, against worked numbers, a packet-level model and printed forms."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connections import setup_at
from support.kept_results import kept_numbers

from twoway.runs.points import load_point
from twoway.theory import kalampoukas
from twoway.theory.packet_model import Sender, simulate
from twoway.theory.predictions import zhang
from twoway.theory.registry import predict, printed_values

FREE = Fraction(0)


def _even(window: int, delay: int) -> Sender:
    return Sender(window, Fraction(1), FREE, Fraction(delay))


def test_worked_example_has_two_thirds() -> None:
    """Windows of 4 on a link of delay 2 give 66.67 %; queues of 3 and 1 alternate (section 3)."""
    sender = _even(4, 2)
    assert kalampoukas.printed_efficiency(sender, sender) == Fraction(2, 3)
    assert kalampoukas.next_queue(sender, sender, Fraction(3)) == 1
    assert kalampoukas.printed_queue_bound(sender, sender) == 4


def test_section_5_2_has_its_efficiency_and_queue() -> None:
    """Windows of 28 and a delay of 15 give 65.1 % and queues of 13 (section 5.2)."""
    sender = _even(28, 15)
    assert round(float(kalampoukas.printed_efficiency(sender, sender)), 3) == 0.651
    assert kalampoukas.next_queue(sender, sender, Fraction(13)) == 13


@pytest.mark.parametrize(
    ("window", "delay", "start", "expected"),
    [
        (4, 2, 1, (3, 1)),  # figure 3.2
        (28, 15, 0, (13, 13)),  # section 5.2
        (28, 15, 3, (16, 10)),
        (28, 9, 4, (23, 15)),  # section 5.4, whose 23 needs this phase
        (8, 5, 7, (6, 0)),  # no queue is below zero
    ],
)
def test_lemma_2_alternates_from_the_starts(
    window: int, delay: int, start: int, expected: tuple[int, int]
) -> None:
    """The phase gives Lemma 2's two queues; with free ACKs the model has the same ones."""
    late = replace(_even(window, delay), start=Fraction(start))
    queues = [
        kalampoukas.printed_queues(*pair) for pair in permutations((_even(window, delay), late))
    ]
    assert [expected] * 2 == [tuple(map(int, each)) for each in queues]
    if sum(expected) < window:
        return
    # A segment is stored before it is forwarded, so data takes one whole slot less to arrive.
    outcomes = simulate((_even(window, delay), late), (Fraction(400), Fraction(800)))
    for outcome in outcomes:
        assert set(outcome.cluster_peaks[2:]) == set(expected)


def _uneven(window: int, data: int, delay: int, start: int = 0) -> Sender:
    return Sender(window, Fraction(data), FREE, Fraction(delay), start=Fraction(start))


def test_compression_needs_more_than_the_round_trip() -> None:
    """Bursts of 8 compress ACKs over a round trip of 7, but not of 8 or 9 (2.1, 4.1)."""
    for delay, compressed in ((4, True), (5, False), (6, False)):
        assert kalampoukas.compresses(_uneven(4, 1, delay), _uneven(2, 2, 3)) == compressed


def test_lemma_5_in_each_region() -> None:
    """Lemma 5's bound has its value in each of three regions of window and delay."""
    large, small, other = _uneven(20, 2, 3), _uneven(10, 1, 2), _uneven(4, 2, 3)
    assert kalampoukas.printed_queue_bound(large, small) == Fraction(35, 2)
    assert kalampoukas.printed_queue_bound(small, large) == 10
    assert kalampoukas.printed_queue_bound(other, _uneven(6, 1, 2)) == Fraction(9, 2)


def test_lemma_2_with_unequal_rates() -> None:
    """With segments of 2 and a start 1 late, 6.5 of a window of 8 queue; the next queue has 0."""
    late = _uneven(8, 2, 5, start=1)
    queues = kalampoukas.printed_queues(late, _uneven(6, 1, 4))
    assert queues == (Fraction(13, 2), Fraction(0))


def test_alone_a_window_waits_for_its_first_ack() -> None:
    """A segment of 1, delays of 3 and 2, and an ACK of 1/4 make a cycle of 6 1/4."""
    one = Sender(1, Fraction(1), Fraction(1, 2), Fraction(3))
    two = Sender(9, Fraction(1), Fraction(1, 4), Fraction(2))
    assert kalampoukas.one_way_cycle(one, two) == Fraction(25, 4)


def test_acks_that_go_first_wait_for_one_segment() -> None:
    """With ACKs first, a cycle is at most about a segment longer than that of one connection."""
    sender = replace(_even(28, 15), ack=Fraction(1, 200), ack_first=True)
    watched = 100 * kalampoukas.one_way_cycle(sender, sender)
    outcome, _ = simulate((sender, sender), (watched, 2 * watched))
    efficiency = outcome.data_sent / watched
    alone = sender.burst / kalampoukas.one_way_cycle(sender, sender)
    assert Fraction(28, 32) - Fraction(1, 50) < efficiency <= alone
    assert outcome.ack_bunch == 1
    shared, _ = simulate((replace(sender, ack_first=False),) * 2, (watched, 2 * watched))
    assert shared.data_sent / watched < Fraction(28, 42)
    assert shared.ack_bunch == 13


def test_zhang_figure_8_has_its_peaks() -> None:
    """Windows of 30 and 25 over a short pipe peak at 55 and 23 (figure 8)."""
    assert zhang.out_of_phase(30, 25, Fraction(1, 8))
    assert not zhang.out_of_phase(30, 25, Fraction(25, 2))
    assert [int(p) for p in zhang.out_of_phase_peaks(30, 25, Fraction(1, 10))] == [55, 23]


@given(
    windows=st.tuples(st.integers(2, 20), st.integers(2, 20)),
    delay=st.integers(1, 60).map(lambda n: Fraction(n, 5)),
    ack=st.sampled_from([Fraction(1, 200), Fraction(1, 10)]),
)
def test_model_is_busy_as_the_closed_form_says(
    windows: tuple[int, int], delay: Fraction, ack: Fraction
) -> None:
    """In every region the model's links are busy as derived, within a cycle's work at each end."""
    one, two = (Sender(w, Fraction(1), ack, delay) for w in windows)
    period = kalampoukas.cycle(one, two)
    outcomes = simulate((one, two), (30 * period, 70 * period))
    for outcome, here, there in zip(outcomes, (one, two), (two, one), strict=True):
        expected = kalampoukas.utilisation(here, there)
        assert abs(outcome.busy / (40 * period) - expected) <= Fraction(2, 40)


@given(
    windows=st.tuples(st.integers(3, 24), st.integers(3, 24)),
    rate=st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(3)]),
    delay=st.fractions(1, 16, max_denominator=7),
)
def test_closed_form_holds_on_links_as_unequal_as_three_to_one(
    windows: tuple[int, int], rate: Fraction, delay: Fraction
) -> None:
    """Both nodes have the same cycle; without compression it is that of the longer round trip."""
    ack, delay = Fraction(40, 9180), delay + Fraction(1, 101)
    one = Sender(windows[0], 1 / rate, ack / rate, delay)
    two = Sender(windows[1], Fraction(1), ack, delay)
    period = kalampoukas.cycle(one, two)
    outcomes = simulate((one, two), (30 * period, 70 * period))
    for outcome, here, there in zip(outcomes, (one, two), (two, one), strict=True):
        expected = kalampoukas.utilisation(here, there)
        assert abs(outcome.busy / (40 * period) - expected) <= Fraction(2, 40)


@given(window=st.integers(1, 40), delay=st.fractions(0, 20, max_denominator=9))
def test_one_way_traffic_is_stored_before_it_is_forwarded(window: int, delay: Fraction) -> None:
    """A single connection fills its link from W = 2L + 1 on; the paper prints 2L (section 3)."""
    sender = Sender(window, Fraction(1), FREE, delay)
    alone = sender.burst / kalampoukas.one_way_cycle(sender, sender)
    assert alone == min(window / (2 * delay + 1), Fraction(1))
    if delay:
        assert alone <= kalampoukas.printed_one_way_efficiency(window, delay)


@given(
    windows=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    data=st.fractions(Fraction(1, 4), 4, max_denominator=4),
    delay=st.fractions(0, 20, max_denominator=9),
)
def test_free_acks_leave_the_printed_theorem(
    windows: tuple[int, int], data: Fraction, delay: Fraction
) -> None:
    """Without ACK time, Theorem 2 remains unless a segment's round trip takes longest."""
    one = Sender(windows[0], data, FREE, delay)
    two = Sender(windows[1], Fraction(1), FREE, delay)
    longest = kalampoukas.cycle(one, two)
    ways = (kalampoukas.one_way_cycle(one, two), kalampoukas.one_way_cycle(two, one))
    if longest > max(ways) and kalampoukas.compresses(one, two):
        assert kalampoukas.efficiency(one, two) == kalampoukas.printed_efficiency(one, two)


def test_one_way_form_is_half_of_the_window_over_the_delay() -> None:
    """Section 3 prints min(W/2L, 1): with L = 8, W = 4 gives a quarter, 16 and 20 give 1."""
    assert kalampoukas.printed_one_way_efficiency(4, Fraction(8)) == Fraction(1, 4)
    assert kalampoukas.printed_one_way_efficiency(16, Fraction(8)) == 1
    assert kalampoukas.printed_one_way_efficiency(20, Fraction(8)) == 1


def test_queue_bound_of_equal_windows_leaves_out_the_pipe() -> None:
    """Lemma 4: two windows of 8 with 2 slots in each direction make a queue of 12, not of 8."""
    one, two = (Sender(8, Fraction(1), FREE, Fraction(2)) for _ in range(2))
    assert kalampoukas.printed_queue_bound(one, two) == 12


# Predictions and printed forms for Kalampoukas's experiments of the checkout.


@pytest.mark.parametrize(
    ("name", "metric", "value", "digits"),
    [
        ("kalampoukas-3.2@ack_bytes=40", "efficiency.left", 0.6667, 4),
        ("kalampoukas-3.2@ack_bytes=40", "busy_peak_high.reverse", 3, 1),
        ("kalampoukas-3.2@ack_bytes=40", "busy_peak_low.reverse", 1, 1),
        ("kalampoukas-3.3@delay=8,window=16,opposite=0", "efficiency.left", 1, 4),
        ("kalampoukas-3.4@delay=12,opposite=1", "efficiency.left", 0.3333, 4),
        ("kalampoukas-4.1@rate=60", "efficiency.right", 0.387, 3),
        ("kalampoukas-4.1@rate=155", "efficiency.right", 0.57, 3),
        ("kalampoukas-5.2", "efficiency.left", 0.651, 3),
        ("kalampoukas-5.2", "busy_peak_high.forward", 13, 1),
        ("kalampoukas-5.2-staggered", "busy_peak_high.forward", 16, 1),
        ("kalampoukas-5.2-staggered", "busy_peak_low.forward", 10, 1),
        ("kalampoukas-5.3@opposite=1", "efficiency.left", 0.84, 2),
        ("kalampoukas-5.3@opposite=1", "efficiency.right", 0.56, 2),
        ("kalampoukas-5.4@phase=0.006738,probe=off", "busy_peak_high.long-forward-1", 23, 1),
        ("kalampoukas-5.4@phase=0.006738,probe=off", "busy_peak_low.long-forward-1", 15, 1),
        ("kalampoukas-5.4@phase=0,probe=off", "busy_peak_high.long-forward-1", 19, 1),
    ],
)
def test_printed_forms_give_what_the_paper_has(
    name: str, metric: str, value: float, digits: int
) -> None:
    """The paper's formulas, without ACK time, give its numbers for our parameters."""
    tolerance = 0.02 if digits == 1 else 0.51 * 10**-digits
    assert printed_values("kalampoukas", setup_at(name))[metric] == pytest.approx(
        value, abs=tolerance
    )


def test_printed_gain_is_57_of_95_mbit() -> None:
    """When capacity grows by 95 Mbit/s, (4.2) gives the connections 57 more; the text says 64."""
    sums = []
    for rate in (60, 155):
        forms = printed_values("kalampoukas", setup_at(f"kalampoukas-4.1@rate={rate}"))
        sums.append(forms["throughput.left"] + forms["throughput.right"])
    assert sums[1] - sums[0] == pytest.approx(57, abs=0.5)


def test_start_up_ends_where_fixed_windows_begin() -> None:
    """At the ramp's last rate slow start acts like windows of 28; no queues are predicted."""
    ramp = predict("kalampoukas_ramp", setup_at("kalampoukas-acr"))
    fixed = predict("kalampoukas", setup_at("kalampoukas-5.2"))
    assert ramp["efficiency.left"] == pytest.approx(fixed["efficiency.left"], rel=3e-4)
    assert ramp["throughput.left"] > fixed["throughput.left"]
    assert ramp["busy_period_segments.forward"] == 28
    assert ramp["busy_period_growth.forward"] == 2
    assert not [name for name in ramp if name.startswith("queue")]


@pytest.mark.parametrize(
    "name",
    [
        "kalampoukas-3.3@delay=8,window=16,opposite=1",
        "kalampoukas-3.4@delay=1,opposite=1",
        "kalampoukas-theorems@ack_bytes=40,window=14,rate=73.44,delay=2",
    ],
)
def test_a_start_of_a_microsecond_decides_a_segment(name: str) -> None:
    """The kept queue is the model's, whose second connection starts 1.28 us after the first.

    Starts in one instant have a segment less.
    """
    setup, metric = setup_at(name), "queue_peak_data.forward"
    left, right = setup.connections
    later = left.model_copy(update={"start_ns": left.start_ns + 1280})
    kept = kept_numbers()[name][metric]
    assert kept
    assert predict("kalampoukas", setup)[metric] == kept
    assert predict("kalampoukas", replace(setup, connections=(later, right)))[metric] == kept - 1


def test_the_bound_is_a_segment_above_the_lemmas() -> None:
    """The bound is Lemma 4's or 5's plus one segment; the model stays below it and reaches it."""
    room = []
    for window in (6, 14, 30):
        for rate in (24.48, 73.44, 220.32):
            name = f"kalampoukas-theorems@ack_bytes=40,window={window},rate={rate},delay=2"
            setup = setup_at(name)
            bounds, model = predict("kalampoukas_bound", setup), predict("kalampoukas", setup)
            assert set(bounds) == {"queue_peak_data.forward", "queue_peak_data.reverse"}
            room += [bounds[metric] - model[metric] for metric in bounds]
    assert min(room) == pytest.approx(0, abs=0.01)


def test_ack_queues_bring_one_way_efficiency_back() -> None:
    """If ACKs have their own queue, efficiency is nearly that of a single connection."""
    name = "kalampoukas-remedies@window=28,acks={},opposite={}"
    shared = predict("kalampoukas", setup_at(name.format("shared", 1)))["efficiency.left"]
    alone = predict("kalampoukas", setup_at(name.format("shared", 0)))["efficiency.left"]
    for acks in ("own", "priority"):
        apart = predict("kalampoukas", setup_at(name.format(acks, 1)))["efficiency.left"]
        assert (shared < 0.66, apart > 0.9, apart < alone) == (True, True, True)
        assert apart == pytest.approx(alone, abs=0.002)
        assert "efficiency.left" not in printed_values(
            "kalampoukas", setup_at(name.format(acks, 1))
        )


def test_a_cluster_of_acks_is_23_four_segments_out_of_phase() -> None:
    """Four segments out of phase 23 of 28 ACKs leave in a bunch; in phase 19 do (section 5.4)."""
    for phase, expected in (("0.006738", 23), ("0", 19)):
        values = predict("kalampoukas", setup_at(f"kalampoukas-5.4@phase={phase},probe=off"))
        assert values["queue_ack_bunch_max.long-reverse-1"] == expected


def test_predictions_carry_the_printed_form() -> None:
    """Each prediction has the value that the paper prints as well as the one computed here."""
    said = load_point("kalampoukas-5.2").predictions
    first = next(each for each in said if each.metric == "efficiency.left")
    assert first.printed == pytest.approx(0.65098, abs=1e-5)
    assert first.value == pytest.approx(0.65091, abs=1e-5)
