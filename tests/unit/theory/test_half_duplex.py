"""Fixed windows: over a half-duplex link, and the papers' closed forms against the model."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.connections import setup_at

from twoway.links.half_duplex import Medium
from twoway.theory.kalampoukas import cycle
from twoway.theory.packet_model import Sender, simulate
from twoway.theory.registry import predict

US = 1e-6
DATA, ACK, GAP = 600 * US, 16 * US, 200 * US


def _predicted(name: str, **changes: Any) -> dict[str, float]:
    return predict("half_duplex", replace(setup_at(name), **changes))


@pytest.mark.parametrize(("acks", "share"), [("every-segment", 1), ("delayed", 0.5)])
def test_each_packet_pays_a_gap(acks: str, share: float) -> None:
    """Each data packet and each ACK pays a gap; delayed ACKs halve the ACKs' part."""
    found = _predicted(f"half-duplex@gap_us=200,acks={acks},traffic=one-way")
    both = DATA + GAP + share * (ACK + GAP)
    assert found["throughput.download"] == pytest.approx(0.012 / both)
    assert found["medium_busy.reverse"] == pytest.approx(share * (ACK + GAP) / both)
    assert found["medium_busy.forward"] + found["medium_busy.reverse"] == pytest.approx(1)


def test_two_way_traffic_shares_what_one_way_traffic_has() -> None:
    """Two opposite connections together have the throughput of one alone."""
    name = "half-duplex@gap_us=200,acks=delayed,traffic="
    alone, found = _predicted(f"{name}one-way"), _predicted(f"{name}two-way")
    assert found["throughput.download"] == found["throughput.upload"]
    total = found["throughput.download"] + found["throughput.upload"]
    assert total == pytest.approx(alone["throughput.download"])
    assert found["medium_busy.forward"] == pytest.approx(0.5)


@pytest.mark.parametrize("window", [20, 60])
@pytest.mark.parametrize("delay_ms", [0.1, 0.8, 2, 8])
@pytest.mark.parametrize("gap_us", [0, 50])
@pytest.mark.parametrize(("acks", "share"), [("every-segment", 1), ("delayed", 0.5)])
def test_the_model_meets_the_closed_form_at_a_common_start(
    window: int, delay_ms: float, gap_us: int, acks: str, share: float
) -> None:
    """A round is the data of both ends, then all ACKs, or the first ACK's propagation if longer."""
    setup = setup_at(f"half-duplex@gap_us=0,acks={acks},traffic=two-way")
    found = predict(
        "half_duplex",
        replace(
            setup,
            medium=Medium(gap_us * 1000, 1),
            links={n: e.with_fields(delay_ms=delay_ms) for n, e in setup.links.items()},
            connections=tuple(
                c.model_copy(update={"window_packets": window}) for c in setup.connections
            ),
        ),
    )
    data, ack = DATA + gap_us * US, ACK + gap_us * US
    acks_s = 2 * share * window * ack
    period = 2 * window * data + max(acks_s, delay_ms / 1000 + ack)
    assert found["throughput.download"] == pytest.approx(window * 0.012 / period, rel=1e-6)
    assert found["throughput.upload"] == pytest.approx(window * 0.012 / period, rel=1e-6)
    busy = (2 * window * data + acks_s) / period
    assert found["medium_busy.forward"] == pytest.approx(busy / 2, rel=1e-5)


@pytest.mark.parametrize(("start_ms", "busy"), [(0, 0.4929), (1, 0.4968), (3, 0.4929)])
def test_the_first_acks_decide_who_is_ahead(start_ms: float, busy: float) -> None:
    """With Linux's first ACKs, ends that start 3 ms apart fall into step; with 1 ms they do not."""
    setup = setup_at("half-duplex@gap_us=0,acks=delayed,traffic=two-way")
    first, second = setup.connections
    later = second.model_copy(update={"start_ns": first.start_ns + round(start_ms * 1e6)})
    found = predict("half_duplex", replace(setup, connections=(first, later)))
    assert found["medium_busy.forward"] == pytest.approx(busy, abs=0.0001)


def test_a_turn_pays_a_gap_and_compresses_acks() -> None:
    """A turn of eight packets pays two gaps, its ACKs' gap included; the eight ACKs are a bunch."""
    found = _predicted("half-duplex-turns@turn=8")
    assert found["throughput.download"] == pytest.approx(0.012 / (DATA + ACK + 2 * GAP / 8))
    assert found["ack_bunch_max.download"] == 8
    assert found["compression_factor.download"] == pytest.approx(37.5)


TWO_WAY = "half-duplex@gap_us=200,acks=every-segment,traffic=two-way"
ONE_WAY = "half-duplex@gap_us=200,acks=delayed,traffic=one-way"


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        (ONE_WAY, {"medium": None}, "is about a medium that both directions share"),
        (ONE_WAY, {"medium": Medium(0, 2)}, "needs an ACK for each segment"),
        (TWO_WAY, {"medium": Medium(0, 2)}, "two connections, and turns of one"),
        (ONE_WAY, {"medium": Medium(0, 1), "datagrams": (None,)}, "without UDP flows"),
        ("half-duplex-turns@turn=8", {"medium": Medium(0, 40)}, "may leave the medium idle"),
    ],
)
def test_what_is_not_predicted(name: str, changes: dict[str, Any], sentence: str) -> None:
    """The theory refuses setups that it does not cover, with a sentence."""
    with pytest.raises(ValueError, match=sentence):
        _predicted(name, **changes)


def test_other_theories_have_no_shared_medium() -> None:
    """Theories of links with separate directions predict nothing for a half-duplex link."""
    with pytest.raises(ValueError, match="half_duplex covers a shared one"):
        predict("ack_clock", setup_at(ONE_WAY))


def test_windows_that_queues_do_not_hold() -> None:
    """Windows larger than a queue are not predicted, because packets are dropped."""
    setup = setup_at(ONE_WAY)
    links = {name: link.with_fields(queue_packets=59) for name, link in setup.links.items()}
    with pytest.raises(ValueError, match="windows of 60 packets overflow a queue"):
        predict("half_duplex", replace(setup, links=links))


# The closed forms behind predictions, against the model and against the files.


def _measured_cycle(one: Sender, two: Sender) -> list[Fraction]:
    """Return each node's mean cycle in the model, an exact fraction over pairs of cycles."""
    period = cycle(one, two)
    outcomes = simulate((one, two), (20 * period, 60 * period))
    cycles = []
    for outcome in outcomes:
        starts = outcome.cluster_starts
        count = (len(starts) - 1) // 2 * 2
        cycles.append((starts[count] - starts[0]) / count)
    return cycles


@pytest.mark.parametrize(
    ("theory", "name", "peaks"),
    [
        ("kalampoukas", "kalampoukas-5.2", [13, 13]),
        ("kalampoukas", "kalampoukas-5.2-staggered", [16, 16]),
        ("zhang", "zhang-fig8", [55, 23]),
        ("zhang", "zhang-fig9", [23, 23]),
    ],
)
def test_model_reaches_the_queues_that_experiments_expect(
    theory: str, name: str, peaks: list[int]
) -> None:
    """The model's queue peaks are the papers' to within one packet."""
    values = predict(theory, setup_at(name))
    metric = "queue_peak_data" if theory == "kalampoukas" else "queue_peak"
    found = [values[f"{metric}.{direction}"] for direction in ("forward", "reverse")]
    assert found == pytest.approx(peaks, abs=1)


@given(
    window=st.integers(2, 40),
    delay=st.integers(1, 30),
    ack=st.sampled_from([Fraction(1, 200), Fraction(1, 50)]),
)
def test_symmetric_form_holds_everywhere(window: int, delay: int, ack: Fraction) -> None:
    """For equal windows that fill the pipe, the model's cycle is exactly the closed form's."""
    assume(window > delay + 1)  # otherwise the paper's condition for ACK compression (2.1) fails
    sender = Sender(window, Fraction(1), ack, Fraction(delay) + Fraction(1, 7))
    assert _measured_cycle(sender, sender) == [cycle(sender, sender)] * 2
