"""Transfers that come and go, by hand and against the chain that averages over them."""

import random
from dataclasses import replace

import pytest
from support.connections import bottleneck, connection

from twoway.theory.fast import Direction
from twoway.theory.fast_markov import Arrivals, fractions
from twoway.theory.fast_transfers import Stretch, Transfer, delays, stretches
from twoway.theory.network import Setup
from twoway.theory.registry import predict

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
    """Over 40 000 transfers the fractions of time are the chain's, within three deviations."""
    load, seconds = 0.5, 40_000.0
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
