"""Barakat and Altman's nodes and their flow's cycle, against printed numbers and limits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.connections import bottleneck, connection

from twoway.theory.barakat import (
    Node,
    filling_bursts,
    is_safe,
    largest_window,
    least_buffers,
    loses_in_slow_start,
    loss_cycle,
    loss_window,
    slow_nodes,
)
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.registry import predict
from twoway.theory.window_cycle import Cycle, Path, reno_cycle, tahoe_cycle

PACKET_BIT = 512 * 8
MU = 1.5e6 / PACKET_BIT  # packets/s
TRIP_S = 0.560
PIPE = MU * TRIP_S  # 205.1


def _uniform_chain(count: int, buffer_packets: float, main: Node) -> list[Node]:
    """Make figure 4's nodes, mu_i = 2 mu - i mu / (n + 1)."""
    step = main.rate / (count + 1)
    return [Node(2 * main.rate - i * step, buffer_packets) for i in range(1, count + 1)]


@given(count=st.integers(1, 10), buffer=st.integers(1, 200), own=st.integers(1, 200))
def test_bursts_of_a_uniform_chain(count: int, buffer: int, own: int) -> None:
    """The paper's simple calculation: S = B (n + 2) and S_i = B_i (2 (n + 1) - (i - 1))."""
    main = Node(MU, own)
    bursts = filling_bursts(_uniform_chain(count, buffer, main), main)
    expected = [buffer * (2 * (count + 1) - (i - 1)) for i in range(1, count + 1)]
    assert bursts == pytest.approx([*expected, own * (count + 2)])


@pytest.mark.parametrize("count", range(1, 11))
def test_figure_4_overflows_upstream_from_four_nodes_on(count: int) -> None:
    """From 4 nodes of 17 packets on, the last node overflows before the bottleneck of 20."""
    main = Node(MU, 20)
    bursts = filling_bursts(_uniform_chain(count, 17, main), main)
    smallest = bursts.index(min(bursts))
    assert smallest == (count - 1 if count >= 4 else count)


def test_figure_4_jumps_once_and_by_little() -> None:
    """Slow start's losses end at n = 3, where 2 W_B = 228 exceeds the largest window of 225.

    The paper has its jump near n = 5. If S_B were two packets less, our jump would be at n = 4.
    """
    main = Node(MU, 20)
    chains = [_uniform_chain(n, 17, main) for n in range(11)]
    loses = [loses_in_slow_start(PIPE, chain, main) for chain in chains]
    assert loses == [True] * 3 + [False] * 8
    assert 2 * loss_window(min(filling_bursts(chains[3], main))) == pytest.approx(228)
    assert largest_window(PIPE, main) == pytest.approx(225.08, abs=5e-3)


@given(burst=st.floats(1, 1e6))
def test_loss_window_lies_in_its_cycle(burst: float) -> None:
    """2^(n_B - 1) < S_B <= 2^n_B, and W_B is between three quarters and all of 2^n_B."""
    cycle = loss_cycle(burst)
    assert 2 ** (cycle - 1) < burst * (1 + 1e-6)
    assert burst <= 2**cycle * (1 + 1e-6)
    assert 0.75 * 2**cycle * (1 - 1e-6) <= loss_window(burst) <= 2**cycle * (1 + 1e-6)


def test_a_power_of_two_is_its_own_cycle() -> None:
    """A burst of exactly 2^k overflows in cycle k, however its quotient was rounded."""
    assert loss_cycle(128.0) == loss_cycle(128.00000000000003) == 7
    assert loss_cycle(129) == 8
    assert loss_cycle(1) == 0


def test_fast_nodes_do_not_count() -> None:
    """Nodes of 2 mu and more, nodes after a slower one and nodes of mu are left out."""
    nodes = [Node(2, 9), Node(1.5, 9), Node(1.7, 9), Node(1.2, 9), Node(1, 9)]
    assert slow_nodes(nodes, Node(1, 9)) == [nodes[1], nodes[3]]
    with pytest.raises(ValueError, match="must fall from twice the last"):
        filling_bursts(nodes, Node(1, 9))


def test_slow_upstream_nodes_only_help() -> None:
    """A slower upstream node raises the burst that fills the bottleneck; with no node it is 2B."""
    main = Node(MU, 20)
    assert filling_bursts([], main) == [40]
    bursts = [filling_bursts([Node(MU * r, 20)], main)[-1] for r in (1.99, 1.5, 1.1)]
    assert bursts == sorted(bursts)
    assert bursts[0] > 40


def _loses(main_packets: float, upstream_packets: float) -> list[bool]:
    """Tell whether slow start loses, at mu' from 1.02 to 1.98 mu."""
    main = Node(MU, main_packets)
    return [
        loses_in_slow_start(PIPE, [Node(MU * ratio, upstream_packets)], main)
        for ratio in np.linspace(1.02, 1.98, 49)
    ]


def test_figure_7_has_the_papers_three_shapes() -> None:
    """As mu' falls from 2 mu, losses end at B' = 80, end and restart at 45, and stay at 20.

    The paper does not give B; we use 50, which is below mu T / 3 = 68 as the paper demands.
    """
    large, medium, small = (_loses(50, upstream)[::-1] for upstream in (80, 45, 20))
    for shape, turns in ((large, 1), (medium, 2), (small, 0)):
        assert shape[0]
        assert sum(a != b for a, b in itertools.pairwise(shape)) == turns


@given(main=st.integers(1, 400), upstream=st.integers(1, 400))
def test_safe_buffers_are_safe_at_every_rate(main: int, upstream: int) -> None:
    """Inside figure 6's exact region slow start loses nothing at any mu'."""
    assume(is_safe(PIPE, main, upstream))
    assert not any(_loses(main, upstream))


def test_figure_6_region() -> None:
    """Both minima are equal at B = mu T / 3; B' falls by 5 packets as B falls by 20."""
    least_main, least_upstream = least_buffers(PIPE, PIPE / 3)
    assert least_main == pytest.approx(68.36, abs=5e-3)
    assert least_upstream == pytest.approx(least_main)
    assert least_buffers(PIPE, 100)[1] - least_buffers(PIPE, 80)[1] == pytest.approx(5)


def test_figure_2_moves_the_queue() -> None:
    """W_max is 305 for a buffer of 100 packets and 255 for one of 50."""
    assert largest_window(PIPE, Node(MU, 100)) == pytest.approx(305.1, abs=0.05)
    assert largest_window(PIPE, Node(MU, 50)) == pytest.approx(255.1, abs=0.05)


def test_figure_2_throughput() -> None:
    """The cycle's throughput is above that of the paper's ns runs: 1.401 and 1.288 Mbit/s.

    ns had 1.371 and 1.247. Its runs begin with a slow start to an unknown threshold, which lowers
    their mean; our cycle repeats. The second buffer costs 9.0 % in ns and 8.1 % in our cycle.
    """
    first, second = (
        tahoe_cycle(Path(MU, TRIP_S, buffer)).rate * PACKET_BIT / 1e6 for buffer in (100, 50)
    )
    assert (first, second) == pytest.approx((1.4013, 1.2885), abs=5e-5)
    assert first > 1.371
    assert second > 1.247
    assert 1 - second / first == pytest.approx(0.081, abs=5e-4)


def test_slow_start_loss_costs_throughput() -> None:
    """The single-node model of figure 4 underestimates: 0.856 against 1.177 Mbit/s.

    Its second slow start also loses: 56 packets are still more than W_B = 52.
    """
    path = Path(MU, TRIP_S, 20)
    lossy = tahoe_cycle(path, loss_window(40)).rate * PACKET_BIT / 1e6
    clean = tahoe_cycle(path).rate * PACKET_BIT / 1e6
    assert lossy == pytest.approx(0.856, abs=5e-4)
    assert clean == pytest.approx(1.177, abs=5e-4)


def test_a_timer_after_slow_start_costs_more() -> None:
    """With a threshold of 2, avoidance starts at once, and the cycle is 28 s longer.

    From 2 to 56.3 takes 54.3 round trips of 0.56 s, minus slow start's log2(28.1) = 4.8.
    """
    path = Path(MU, TRIP_S, 20)
    again, waiting = (tahoe_cycle(path, 57, timer_s) for timer_s in (None, 0.76))
    assert waiting.duration_s - again.duration_s == pytest.approx(49.45 * 0.56 + 0.76, abs=0.02)
    assert waiting.rate < again.rate


@given(buffer=st.floats(0, 2000))
def test_reno_fills_the_link_from_a_pipe_of_buffer_on(buffer: float) -> None:
    """Reno never idles if and only if B covers mu T; Tahoe always gets less."""
    path = Path(MU, TRIP_S, buffer)
    rate = reno_cycle(path).rate
    assert (rate > MU * (1 - 1e-9)) == (buffer >= PIPE * (1 - 1e-6))
    assert tahoe_cycle(path).rate < rate


@pytest.mark.parametrize(
    "cycle",
    [
        reno_cycle(Path(MU, TRIP_S, 20)),
        tahoe_cycle(Path(MU, TRIP_S, 20)),
        tahoe_cycle(Path(MU, TRIP_S, 20), 52),
        tahoe_cycle(Path(MU, TRIP_S, 20), 52, 0.76),
        tahoe_cycle(Path(MU, TRIP_S, 400)),
    ],
)
def test_sampled_rates_average_to_the_cycles(cycle: Cycle) -> None:
    """The packets delivered in a cycle's steps add up, and never exceed the bottleneck's rate."""
    edges = np.linspace(0, 3 * cycle.duration_s, 301)
    rates = cycle.rates(edges)
    assert rates.mean() == pytest.approx(cycle.rate)
    assert rates.min() >= 0
    assert rates.max() <= cycle.path.rate * (1 + 1e-9)
    assert all(phase.duration_s >= 0 for phase in cycle.phases)


def test_delivery_of_each_phase_ends_with_its_packets() -> None:
    """At its end each phase has delivered all its packets."""
    path = Path(MU, TRIP_S, 20)
    for phase in tahoe_cycle(path, 52).phases:
        delivered = phase.packets_delivered(np.array([0.0, phase.duration_s]), path.trip_s)
        assert delivered == pytest.approx([0, phase.packets])


def _setup(congestion: str, upstream_mbit: float | None) -> Setup:
    """Make figure 2's path; a queue's limit is B plus one, for the packet in transmission."""

    def link(mbit: float, delay_s: float, limit: int) -> Bottleneck:
        rate = mbit * 1e6
        return bottleneck(
            rate, round(delay_s * 1e9), limit, PACKET_BIT / rate, 320 / rate, share=472 / 512
        )

    links = {"main": link(1.5, 0.28, 51), "return": link(1000, 0.28, 1000)}
    names: tuple[str, ...] = ("main",)
    if upstream_mbit:
        links["first"] = link(upstream_mbit, 0, 18)
        names = ("first", "main")
    flow = connection("flow", names, ("return",), congestion)
    return Setup(links, (flow,), 472, True, 100, 1000, {}, {})


def test_one_node_gives_cycle_and_trip() -> None:
    """A path of one node has the cycle of B = 50; its round trip has all transmission times."""
    values = predict("barakat", _setup("tahoe", None))
    trip_s = 0.56 + PACKET_BIT / 1.5e6 + 320 / 1e9
    lost = loss_window(100)
    assert (MU * trip_s + 50) / 2 > lost
    rate = tahoe_cycle(Path(MU, trip_s, 50), lost, trip_s + 0.2).rate * PACKET_BIT / 1e6
    assert values["throughput.flow"] == pytest.approx(rate)
    assert values["goodput.flow"] == pytest.approx(rate * 472 / 512)
    assert values["utilisation.main"] == values["efficiency.flow"] == pytest.approx(rate / 1.5)


def test_prediction_with_nodes_upstream() -> None:
    """An upstream node of 17 packets makes Tahoe lose earlier; Reno has no slow start."""
    alone, behind = (
        predict("barakat", _setup("tahoe", mbit))["throughput.flow"] for mbit in (None, 1.6)
    )
    assert behind < alone
    reno = [predict("barakat", _setup("reno", m))["efficiency.flow"] for m in (None, 3000)]
    assert reno[0] == pytest.approx(reno[1], abs=1e-5)  # 3 Gbit/s adds 1.4 us to the round trip
    assert reno[0] > alone / 1.5


def test_refuses_other_traffic() -> None:
    """Other congestion controls and several flows are named."""
    setup = _setup("cubic", None)
    with pytest.raises(ValueError, match="not cubic"):
        predict("barakat", setup)
    with pytest.raises(ValueError, match="one flow, got 2"):
        predict("barakat", replace(setup, connections=setup.connections * 2))
