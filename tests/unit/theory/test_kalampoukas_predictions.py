"""Predictions and printed forms for Kalampoukas's experiments of the checkout."""

import pytest

from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory.network import Setup
from twoway.theory.registry import predict, printed


def _setup(name: str) -> Setup:
    point = load_point(name)
    return setup_of(point.experiment, point.profile, point.graph, list(point.connections))


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
    assert printed("kalampoukas", _setup(name))[metric] == pytest.approx(value, abs=tolerance)


def test_printed_gain_is_57_of_95_mbit() -> None:
    """When capacity grows by 95 Mbit/s, (4.2) gives the connections 57 more; the text says 64."""
    sums = []
    for rate in (60, 155):
        forms = printed("kalampoukas", _setup(f"kalampoukas-4.1@rate={rate}"))
        sums.append(forms["throughput.left"] + forms["throughput.right"])
    assert sums[1] - sums[0] == pytest.approx(57, abs=0.5)


def test_start_up_ends_where_fixed_windows_begin() -> None:
    """At the ramp's last rate slow start acts like windows of 28; no queues are predicted."""
    ramp = predict("kalampoukas_ramp", _setup("kalampoukas-acr"))
    fixed = predict("kalampoukas", _setup("kalampoukas-5.2"))
    assert ramp["efficiency.left"] == pytest.approx(fixed["efficiency.left"], rel=3e-4)
    assert ramp["throughput.left"] > fixed["throughput.left"]
    assert ramp["busy_period_segments.forward"] == 28
    assert ramp["busy_period_growth.forward"] == 2
    assert not [name for name in ramp if name.startswith("queue")]


def test_lemma_5_has_room_for_the_segment_in_transmission() -> None:
    """The bound is Lemma 5's plus one segment; the model stays below it and reaches it once."""
    room = []
    for window in (6, 14, 30):
        for rate in (24.48, 73.44, 220.32):
            name = f"kalampoukas-theorems@ack_bytes=40,window={window},rate={rate},delay=2"
            setup = _setup(name)
            bounds, model = predict("kalampoukas_bound", setup), predict("kalampoukas", setup)
            assert set(bounds) == {"queue_peak_data.forward", "queue_peak_data.reverse"}
            room += [bounds[metric] - model[metric] for metric in bounds]
    assert min(room) == pytest.approx(0, abs=0.01)


def test_ack_queues_bring_one_way_efficiency_back() -> None:
    """If ACKs have their own queue, efficiency is nearly that of a single connection."""
    name = "kalampoukas-remedies@window=28,acks={},opposite={}"
    shared = predict("kalampoukas", _setup(name.format("shared", 1)))["efficiency.left"]
    alone = predict("kalampoukas", _setup(name.format("shared", 0)))["efficiency.left"]
    for acks in ("own", "priority"):
        apart = predict("kalampoukas", _setup(name.format(acks, 1)))["efficiency.left"]
        assert (shared < 0.66, apart > 0.9, apart < alone) == (True, True, True)
        assert apart == pytest.approx(alone, abs=0.002)
        assert "efficiency.left" not in printed("kalampoukas", _setup(name.format(acks, 1)))


def test_a_cluster_of_acks_is_23_four_segments_out_of_phase() -> None:
    """Four segments out of phase 23 of 28 ACKs leave in a bunch; in phase 19 do (section 5.4)."""
    for phase, expected in (("0.006738", 23), ("0", 19)):
        values = predict("kalampoukas", _setup(f"kalampoukas-5.4@phase={phase},probe=off"))
        assert values["queue_ack_bunch_max.long-reverse-1"] == expected


def test_predictions_carry_the_printed_form() -> None:
    """Each prediction has the value that the paper prints as well as the one computed here."""
    said = load_point("kalampoukas-5.2").predictions
    first = next(each for each in said if each.metric == "efficiency.left")
    assert first.printed == pytest.approx(0.65098, abs=1e-5)
    assert first.value == pytest.approx(0.65091, abs=1e-5)
