"""The packet-level model of Tahoe over several queues, against formulas and its own file."""

from dataclasses import replace
from itertools import pairwise

import pytest
from support.connections import bottleneck, connection

from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory import tables
from twoway.theory.barakat import Node, filling_bursts, loss_window
from twoway.theory.network import Setup
from twoway.theory.predictions import tahoe_chain
from twoway.theory.registry import predict, printed
from twoway.theory.tahoe_chain import Hop, simulate

PACKET_BITS = 512 * 8


def _service_ns(mbit: float) -> int:
    return round(PACKET_BITS * 1000 / mbit)


@pytest.mark.parametrize("rate", [1.65, 1.8, 2.1, 2.25])
def test_first_loss_is_at_the_papers_window(rate: float) -> None:
    """W_B is the window before the first loss to within a packet, whichever queue is small."""
    for small, large in ((20, 400), (400, 20)):
        bursts = filling_bursts([Node(rate, large)], Node(1.5, small))
        hops = [Hop(_service_ns(rate), large + 1), Hop(_service_ns(1.5), small + 1)]
        course = simulate(hops, 555_000_000, 8_000_000_000)
        assert course.first_loss_window == pytest.approx(loss_window(min(bursts)), abs=1.01)
        assert course.lost_at[0] == bursts.index(min(bursts))


def test_a_window_of_one_more_in_each_round_trip() -> None:
    """Without losses all data arrives in order, and avoidance ends with a full pipe and queue."""
    course = simulate([Hop(_service_ns(1.5), 51)], 557_269_333, 200_000_000_000)
    assert course.arrived_ns == sorted(course.arrived_ns)
    after_start = [window for time, window in course.windows if time > 60_000_000_000]
    assert max(after_start) == int(560 / 2.7306667) + 50 + 1


@pytest.mark.parametrize("fast", [False, True])
def test_three_duplicates_are_sooner_than_the_timer(fast: bool) -> None:
    """Fast retransmit repairs a loss within three round trips of 31 ms, a timer after 200 ms."""
    course = simulate([Hop(1_000_000, 11)], 20_000_000, 2_000_000_000, fast_retransmit=fast)
    in_slow_start_ns = course.lost_ns[0] + 100_000_000
    lost_ns = next(at for at in course.lost_ns if at > in_slow_start_ns)
    sent_ns = [time for time, _ in course.windows if time > lost_ns]
    silence_ms = max(b - a for a, b in pairwise([lost_ns, *sent_ns[:60]])) / 1e6
    assert (silence_ms < 3 * 31) is fast
    assert (silence_ms > 200) is not fast


def _chain(congestion: str = "tahoe_rto") -> Setup:
    """Make figure 4 with three nodes of 17 packets before a bottleneck of 20."""
    names = [*(f"node{i}" for i in (1, 2, 3)), "bottleneck"]
    rates = [2.625, 2.25, 1.875, 1.5]
    links = {
        name: bottleneck(
            rate * 1e6, 0, 21 if rate == 1.5 else 18, PACKET_BITS / rate / 1e6, 0, share=0.92
        )
        for name, rate in zip(names, rates, strict=True)
    }
    links["return"] = bottleneck(10e6, 551_672_000, 1000, PACKET_BITS / 10e6, 32e-6, share=0.92)
    flow = connection("flow", tuple(names), ("return",), congestion)
    return Setup(links, (flow,), 472, True, 100, 270, {}, {})


def test_three_nodes_lose_where_the_inequality_says_they_do_not() -> None:
    """At n = 3 the paper's inequality has no loss in slow start, and the packet model has four."""
    values, forms = predict("tahoe_chain", _chain()), printed("tahoe_chain", _chain())
    assert forms["sawtooth_efficiency.flow"] == pytest.approx(0.785, abs=1e-3)
    assert forms["first_loss_window.flow"] == pytest.approx(114)
    assert values["sawtooth_efficiency.flow"] == pytest.approx(0.631, abs=1e-3)
    assert values["drops_per_epoch"] == 2.5


def test_it_is_about_one_tahoe() -> None:
    """The theory refuses two flows, and another congestion control."""
    setup = _chain()
    with pytest.raises(ValueError, match="one flow"):
        predict("tahoe_chain", replace(setup, connections=setup.connections * 2))
    with pytest.raises(ValueError, match="not cubic"):
        predict("tahoe_chain", _chain("cubic"))


def test_the_file_has_what_the_model_computes() -> None:
    """The values kept for figure 4 with three nodes are those of the present model."""
    point = load_point("barakat-fig4@nodes=3")
    given = setup_of(point.experiment, point.profile, point.graph, list(point.connections))
    kept = tables.look_up(tahoe_chain.NAME, tahoe_chain.parameters(given))
    assert kept == pytest.approx(tahoe_chain.compute(given), rel=1e-5)
