"""FAST's Markov chain against queues with known answers, a simulation, and its error bounds."""

import random
from dataclasses import replace

import numpy as np
import pytest
from support.connections import bottleneck, connection

from twoway.theory.fast import Direction, slope
from twoway.theory.network import Setup
from twoway.theory.predictions.fast_markov import Arrivals, fractions
from twoway.theory.predictions.fast_transfers import Stretch, Transfer, delays, stretches
from twoway.theory.registry import predict

MBIT = 1e6


def _figure_5(rate: float) -> Arrivals:
    """Make the traffic of the paper's figure 5, flows of 1 Mbit on links of 1 and 2 Mbit/s."""
    return Arrivals(rate, rate, MBIT, MBIT, 2 * MBIT, 0.04)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_one_way_is_a_processor_sharing_queue(load: float) -> None:
    """With flows on F alone the chain is M/M/1: busy for the load, with load / (1 - load) flows."""
    solved = fractions(Arrivals(load, 0, MBIT, MBIT, 2 * MBIT, 0.04), 100)
    assert solved.forward == pytest.approx(load, abs=1e-8)
    assert solved.backward == 0
    assert solved.empty == pytest.approx(1 - load, abs=1e-8)
    assert solved.mean_forward == pytest.approx(load / (1 - load), abs=1e-6)


def test_acks_as_large_as_data_make_one_queue() -> None:
    """If ACKs are as large as data and rates equal, all flows share one M/M/1 processor."""
    solved = fractions(Arrivals(0.3, 0.2, MBIT, MBIT, MBIT, 1), 100)
    assert solved.empty == pytest.approx(0.5, abs=1e-12)
    assert solved.mean_forward == pytest.approx(0.6, abs=1e-12)
    assert solved.mean_backward == pytest.approx(0.4, abs=1e-12)


def test_directions_are_names() -> None:
    """Swapping the link's directions swaps the two fractions and the two means."""
    one = fractions(Arrivals(0.4, 0.3, MBIT, MBIT, 2 * MBIT, 0.04), 40)
    other = fractions(Arrivals(0.3, 0.4, MBIT, 2 * MBIT, MBIT, 0.04), 40)
    # None of these states lies on the dividing line.
    assert one.forward == pytest.approx(other.backward)
    assert one.backward == pytest.approx(other.forward)
    assert one.mean_forward == pytest.approx(other.mean_backward)
    assert one.empty == pytest.approx(other.empty)
    assert one.forward + one.backward + one.empty == pytest.approx(1)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.65])
def test_error_bounds_what_truncation_does(rate: float) -> None:
    """Truncating at 25 and at 40 flows changes no fraction by more than the bound."""
    exact = fractions(_figure_5(rate), 100)
    for largest in (25, 40):
        cut = fractions(_figure_5(rate), largest)
        assert cut.is_proved
        for name in ("forward", "backward", "empty"):
            difference = abs(getattr(cut, name) - getattr(exact, name))
            assert difference <= cut.error + exact.error + 1e-12


def test_bound_says_where_it_is_no_theorem() -> None:
    """The bound is an estimate where lambda (1/c_F + 1/c_B) / mu is 1 or more: 2/3 in figure 5."""
    assert fractions(_figure_5(0.66), 40).is_proved
    assert not fractions(_figure_5(0.67), 40).is_proved


def test_figure_5_has_the_papers_shape() -> None:
    """As load rises the empty share falls, F's share passes 0.9, and B's rises, then falls."""
    solved = [fractions(_figure_5(rate), 100) for rate in (0.02, 0.3, 0.6, 0.8, 0.9)]
    empty = [each.empty for each in solved]
    forward = [each.forward for each in solved]
    backward = [each.backward for each in solved]
    assert empty == sorted(empty, reverse=True)
    assert forward == sorted(forward)
    assert forward[-1] > 0.9
    assert max(backward) == backward[2]
    assert backward[0] < 0.02


def test_chain_agrees_with_a_simulation_of_it() -> None:
    """400,000 simulated jumps give figure 5's fractions at half load, within four deviations.

    One deviation is that of the means of 20 batches.
    """
    arrivals, random = _figure_5(0.5), np.random.default_rng(5)
    theta = slope((MBIT, 2 * MBIT), 0.04)
    chances = random.random(400_000).tolist()
    n = m = 0
    batches = np.zeros((20, 3))
    for jump, chance in enumerate(chances):
        each = 0.0
        if n + m:
            each = 1 / (n + 0.04 * m) if n >= theta * m else 2 / (0.04 * n + m)
        total = 1.0 + (n + m) * each
        where = 0 if n + m == 0 else 1 if n >= theta * m else 2
        batches[jump * 20 // len(chances), where] += 1 / total
        drawn = chance * total
        if drawn < 0.5:
            n += 1
        elif drawn < 1:
            m += 1
        elif drawn < 1 + n * each:
            n -= 1
        else:
            m -= 1
    shares = batches / batches.sum(axis=1, keepdims=True)
    deviation = shares.std(axis=0, ddof=1) / np.sqrt(20)
    solved = fractions(arrivals, 80)
    expected = np.array([solved.empty, solved.forward, solved.backward])
    assert (np.abs(shares.mean(axis=0) - expected) < 4 * deviation).all()


def test_bound_by_hand() -> None:
    """The bound for at most one flow on 1 and 2 bit/s equals the one computed by hand.

    Arrivals have 0.1 per second and direction; p is 0.1 and 0.05 over 1.15. A flow on F has height
    1, one on B 1/2, and V falls by 0.85.
    """
    one = fractions(Arrivals(0.1, 0.1, 1, 1, 2, 0), 1)
    steps = 0.05 * (0.1 * (1 + 1) + 0.1 * (1 + 1 / 2)) + 0.1 * (0.1 * (2 + 1) + 0.1 * (2 + 1 / 2))
    assert one.is_proved
    assert one.error == pytest.approx(steps / 1.15 / 0.85, rel=1e-12)
    turned = fractions(Arrivals(0.1, 0.1, 1, 2, 1, 0), 1)
    assert turned.error == pytest.approx(one.error, rel=1e-12)


def test_large_acks_have_an_estimate_for_a_bound() -> None:
    """With ACKs above half a packet, the ratio of the rates, the bound is an estimate."""
    assert fractions(Arrivals(0.1, 0.1, 1, 1, 2, 0.5), 1).is_proved
    one = fractions(Arrivals(0.1, 0.1, 1, 1, 2, 0.6), 1)
    steps = 0.06 * (0.1 * (1 + 1) + 0.1 * (1 + 1 / 2)) + 0.1 * (0.1 * (2 + 1) + 0.1 * (2 + 1 / 2))
    assert not one.is_proved
    assert one.error == pytest.approx(steps / 1.16 / (1 - 0.16), rel=1e-12)
    heavy = fractions(Arrivals(0.5, 1, 1, 1, 2, 0), 1)
    assert not heavy.is_proved  # the limit of the theorem: 1/2 + 1/2 is not below 1
    assert heavy.error == 1  # computed 3.25, cut to 1: no fraction errs by more


def test_loads_count_acks() -> None:
    """ACKs of 4 % add to loads: each direction carries its own data and the other's ACKs."""
    arrivals = Arrivals(0.3, 0.2, MBIT, MBIT, 2 * MBIT, 0.04)
    assert arrivals.loads == pytest.approx((0.308, 0.106), rel=1e-12)


def test_refuses_overload() -> None:
    """At and above a load of 1 there is no equilibrium."""
    with pytest.raises(ValueError, match=r"loads must be below 1, got 1\.000 forward"):
        fractions(Arrivals(1, 0, MBIT, MBIT, 2 * MBIT, 0), 10)
    with pytest.raises(ValueError, match=r"loads must be below 1, got 1\.040 forward"):
        fractions(_figure_5(1), 10)


# Transfers that come and go, by hand and against the chain that averages over them.

FORWARD, BACKWARD = Direction
FIGURE_5 = (1e6, 2e6)
ACK_SHARE = 0.04


def test_one_transfer_has_the_link() -> None:
    """One transfer of a megabit at a megabit per second takes one second."""
    found = list(stretches([Transfer(FORWARD, 2, 1e6)], FIGURE_5, ACK_SHARE))
    assert found == [Stretch(0, 2, (0, 0)), Stretch(2, 3, (1, 0))]


def test_two_share_until_one_is_done() -> None:
    """Two transfers in one direction have half the rate each; the second then has all of it."""
    transfers = [Transfer(FORWARD, 0, 1e6), Transfer(FORWARD, 0.5, 1e6)]
    found = [s for s in stretches(transfers, FIGURE_5, ACK_SHARE) if s.stop_s > s.start_s]
    assert found == [
        Stretch(0, 0.5, (1, 0)),
        Stretch(0.5, 1.5, (2, 0)),  # the rest of the first, at half the rate
        Stretch(1.5, 2, (1, 0)),
    ]


def test_opposite_transfers_have_the_slower_ones_rate() -> None:
    """Opposite transfers both send at c_F / (1 + b); the faster direction has capacity left."""
    transfers = [Transfer(FORWARD, 0, 1e6), Transfer(BACKWARD, 0, 2e6)]
    found = [s for s in stretches(transfers, FIGURE_5, ACK_SHARE) if s.stop_s > s.start_s]
    assert [s.flows for s in found] == [(1, 1), (0, 1)]
    assert found[0].stop_s == pytest.approx(1.04)
    assert found[1].stop_s == pytest.approx(1.04 + 0.5)
    forward, backward = delays((1, 1), FIGURE_5, ACK_SHARE)
    assert forward > backward


@pytest.mark.slow
def test_long_series_has_the_chains_fractions() -> None:
    """Over 10 000 transfers the fractions of time are the chain's, within three deviations."""
    load, seconds = 0.5, 10_000.0
    source = random.Random(5)
    transfers = []
    for direction in Direction:
        now = source.expovariate(load)
        while now < seconds:
            transfers.append(Transfer(direction, now, source.expovariate(1e-6)))
            now += source.expovariate(load)
    held = {"forward": 0.0, "backward": 0.0, "empty": 0.0}
    for stretch in stretches(transfers, FIGURE_5, ACK_SHARE):
        forward, backward = delays(stretch.flows, FIGURE_5, ACK_SHARE)
        name = (
            "empty" if not any(stretch.flows) else "backward" if backward > forward else "forward"
        )
        held[name] += stretch.stop_s - stretch.start_s
    chain = fractions(Arrivals(load, load, 1e6, *FIGURE_5, ACK_SHARE))
    # A fraction's deviation in 180 s is below 0.08 (experiments/ge-2011/fast-markov.yml).
    off = 3 * 0.08 * (180 / seconds) ** 0.5
    assert held["forward"] / seconds == pytest.approx(chain.forward, abs=off)
    assert held["backward"] / seconds == pytest.approx(chain.backward, abs=off)
    assert held["empty"] / seconds == pytest.approx(chain.empty, abs=off)


def _setup(*sizes: int) -> Setup:
    link = bottleneck(1e6, 4_000_000, 10_000, 0.008, 0.00032, share=0.96)
    links = {
        "forward": link,
        "reverse": bottleneck(2e6, 4_000_000, 10_000, 0.004, 0.00016, share=0.96),
    }
    ways = {"right-1": ("forward", "reverse"), "left-1": ("reverse", "forward")}
    connections = (
        connection(name, (direction,), (back,), "fast", alpha_packets=10, transfer_bytes=size)
        for (name, (direction, back)), size in zip(ways.items(), sizes, strict=False)
    )
    return Setup(links, tuple(connections), 960, True, 0.5, 4.5, {}, {})


def test_prediction_is_of_the_steady_window() -> None:
    """Of 4 s from 0.5 s on, forward is the bottleneck until 1.04 s, then reverse for 0.5 s.

    Payloads of 120 and 240 kB are one and two megabits on the link.
    """
    values = predict("fast_transfers", _setup(120_000, 240_000))
    assert values["bottleneck_time.forward"] == pytest.approx(0.54 / 4)
    assert values["bottleneck_time.reverse"] == pytest.approx(0.5 / 4)


def test_prediction_is_about_transfers_alone() -> None:
    """A flow without an end is refused by name."""
    setup = _setup(120_000, 240_000)
    endless = setup.connections[1].model_copy(update={"transfer_bytes": None})
    with pytest.raises(ValueError, match="left-1 is not"):
        predict("fast_transfers", replace(setup, connections=(setup.connections[0], endless)))
