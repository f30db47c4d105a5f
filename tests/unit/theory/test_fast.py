"""The closed forms of two-way FAST against the paper's printed numbers and against their limits."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.connections import bottleneck, connection, datagram_flow

from twoway.contract.network import START_NS, Connection
from twoway.theory.fast import (
    Direction,
    Equilibrium,
    Flow,
    correct_for_bunches,
    equilibrium,
    persistent_congestion,
    slope,
)
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.packet_model import Sender, simulate
from twoway.theory.registry import predict

FORWARD, BACKWARD = Direction
DATA_BIT, ACK_BIT = 8000, 320  # section 5.1: packets of 1000 bytes, ACKs of 40


def _flow(direction: Direction, alpha: float) -> Flow:
    return Flow(direction, alpha, DATA_BIT, ACK_BIT)


def _mbit(settled: Equilibrium) -> list[float]:
    return [rate * DATA_BIT / 1e6 for rate in settled.rates]


# Tables 1 and 2: alphas of F and of B, capacities in Mbit/s, throughputs in the order of the flows,
# bottlenecks and utilisations by data. Printed to 0.1 Mbit/s or better, and to 0.1 % except example
# 1 (25 %) and 3 (88 %). Example 4's order there is flow 1, flow 2, flow 3: F, B, F.
EXAMPLES = [
    (([100, 200], []), (100, 1), [8.3, 16.7], (False, True), (0.25, 0)),
    (([300, 200], [100]), (100, 100), [59.5, 39.7, 19.84], (True, False), (0.992, 0.198)),
    (([100], [30]), (100, 10), [29.4, 8.82], (False, True), (0.294, 0.88)),
    (([100, 200], [30]), (100, 10), [23.8, 47.6, 7.14], (False, True), (0.714, 0.714)),
    (([30], [30]), (10, 10), [9.62, 9.62], (True, True), (0.962, 0.962)),
]


@pytest.mark.parametrize(("alphas", "mbit", "rates", "where", "data"), EXAMPLES)
def test_examples_of_the_paper(
    alphas: tuple[list[float], list[float]],
    mbit: tuple[float, float],
    rates: list[float],
    where: tuple[bool, bool],
    data: tuple[float, float],
) -> None:
    """Theorem 1 gives each printed rate, bottleneck and utilisation to the last printed digit."""
    flows = [_flow(direction, alpha) for direction in Direction for alpha in alphas[direction]]
    settled = equilibrium(flows, (mbit[0] * 1e6, mbit[1] * 1e6))
    assert _mbit(settled) == pytest.approx(rates, abs=0.05)
    assert settled.is_bottleneck == where
    assert settled.data_share == pytest.approx(data, abs=0.005)


@given(
    forward=st.lists(st.integers(1, 500), min_size=1, max_size=6),
    backward=st.lists(st.integers(1, 500), max_size=6),
    mbit=st.tuples(st.integers(1, 1000), st.integers(1, 1000)),
    ack_bit=st.integers(0, 9000),
)
def test_a_bottleneck_is_full_and_nothing_is_overfull(
    forward: list[int], backward: list[int], mbit: tuple[int, int], ack_bit: int
) -> None:
    """Every bottleneck and no other link is full, for any flows, rates and ACK sizes."""
    flows = [
        *(Flow(FORWARD, alpha, DATA_BIT, ack_bit) for alpha in forward),
        *(Flow(BACKWARD, alpha, DATA_BIT, ack_bit) for alpha in backward),
    ]
    settled = equilibrium(flows, (mbit[0] * 1e6, mbit[1] * 1e6))
    for direction in Direction:
        used = settled.data_share[direction] + settled.ack_share[direction]
        assert used <= 1 + 1e-9
        assert settled.is_bottleneck[direction] == (used > 1 - 1e-9)
    assert any(settled.is_bottleneck)
    queued = [rate * settled.queueing_s for rate in settled.rates]
    assert queued == pytest.approx([*forward, *backward])


@given(alphas=st.lists(st.integers(1, 500), min_size=1, max_size=6))
def test_free_acks_leave_one_way_traffic_alone(alphas: list[int]) -> None:
    """If ACKs take no time, flows in one direction share the link in proportion to their alphas."""
    settled = equilibrium([Flow(FORWARD, a, DATA_BIT, 0) for a in alphas], (10e6, 1e6))
    assert _mbit(settled) == pytest.approx([10 * a / sum(alphas) for a in alphas])


@given(alpha=st.integers(1, 500), count=st.integers(1, 8))
def test_mirrored_flows_are_equal(alpha: int, count: int) -> None:
    """Equal flows get c / (1 + b) together in each direction (example 5's form)."""
    flows = [_flow(direction, alpha) for direction in Direction for _ in range(count)]
    settled = equilibrium(flows, (10e6, 10e6))
    assert settled.is_bottleneck == (True, True)
    assert settled.data_share == pytest.approx([1 / 1.04] * 2)
    assert _mbit(settled) == pytest.approx([10 / 1.04 / count] * 2 * count)


@given(n=st.integers(0, 30), m=st.integers(0, 30))
def test_the_dividing_line_is_theorem_1s(n: int, m: int) -> None:
    """F is the bottleneck of equal flows if n is at least theta m: equation (17)."""
    if n + m == 0:
        return
    capacity = (10e6, 20e6)
    flows = [*(_flow(FORWARD, 10),) * n, *(_flow(BACKWARD, 10),) * m]
    assert slope(capacity, 0.04) == pytest.approx(23 / 49)
    assert equilibrium(flows, capacity).is_bottleneck[FORWARD] == (49 * n >= 23 * m)


def test_the_dividing_line_needs_small_acks() -> None:
    """If ACKs have half a packet or more, no dividing line exists, and `slope` refuses them."""
    assert slope((1e6, 2e6), 0) == 0.5
    assert slope((2e6, 1e6), 0.25) == pytest.approx(1.75 / 0.5)
    for capacity in ((1e6, 2e6), (2e6, 1e6)):
        for ack_share in (0.5, 0.6, -0.1):
            with pytest.raises(ValueError, match=f"an ACK of {ack_share} of a packet"):
                slope(capacity, ack_share)


# Columns: the number of flows that started one after another, the queue in units of alpha, and each
# flow's share of the link. Two flows follow the golden ratio; more solve the equation sum 1 / (q -
# e) = 1.
LATE = [
    (1, 1.0, [1.0]),
    (2, 2.618, [0.382, 0.618]),
    (3, 4.599, [0.217, 0.278, 0.505]),
    (4, 6.842, [0.146, 0.171, 0.237, 0.446]),
]


@pytest.mark.parametrize(("count", "queue", "shares"), LATE)
def test_late_flows_take_more(count: int, queue: float, shares: list[float]) -> None:
    """A late flow counts others' queue as propagation, queues more and gets a larger share."""
    settled = persistent_congestion([[Flow(FORWARD, 100, DATA_BIT, 0)]] * count, (10e6, 10e6))
    assert settled.queueing_s * 10e6 / DATA_BIT / 100 == pytest.approx(queue, abs=5e-4)
    assert [mbit / 10 for mbit in _mbit(settled)] == pytest.approx(shares, abs=6e-4)


def test_second_of_two_late_is_the_golden_ratio() -> None:
    """A late second flow has the golden ratio times the first's rate; the queue is its square."""
    golden = (1 + math.sqrt(5)) / 2
    settled = persistent_congestion([[Flow(FORWARD, 100, DATA_BIT, 0)]] * 2, (10e6, 10e6))
    assert settled.rates[1] / settled.rates[0] == pytest.approx(golden, rel=1e-12)
    assert settled.queueing_s == pytest.approx(golden**2 * 100 * DATA_BIT / 10e6, rel=1e-12)


def test_starting_together_is_theorem_1() -> None:
    """Flows that start at once measure an empty link and get equal shares."""
    flows = [_flow(FORWARD, 100), _flow(BACKWARD, 30)]
    assert persistent_congestion([flows], (100e6, 10e6)) == equilibrium(flows, (100e6, 10e6))


@pytest.mark.parametrize("capacity", [(0, 1e6), (1e6, -1)])
def test_refuses_no_capacity(capacity: tuple[float, float]) -> None:
    """A direction without capacity is an error, and so is a network without flows."""
    with pytest.raises(ValueError, match="must have capacity"):
        equilibrium([_flow(FORWARD, 100)], capacity)
    with pytest.raises(ValueError, match="without flows"):
        equilibrium([], (1e6, 1e6))


@pytest.mark.parametrize(
    ("propagation_s", "third", "share"),
    [(0.02, 200, 1), (0.08, 20, 1), (0.08, 340, 0.8705), (0.16, 20, 0.9560), (0.16, 340, 0.7918)],
)
def test_bunches_cost_more_on_longer_and_more_balanced_links(
    propagation_s: float, third: int, share: float
) -> None:
    """Bunches cost example 4 nothing; they cost more on longer and more balanced paths.

    A third flow with a larger alpha balances the two directions.
    """
    flows = [_flow(FORWARD, 100), _flow(BACKWARD, 30), _flow(FORWARD, third)]
    settled = equilibrium(flows, (100e6, 10e6))
    found = correct_for_bunches(settled, flows, (100e6, 10e6), propagation_s)
    assert [a / b for a, b in zip(found.rates, settled.rates, strict=True)] == pytest.approx(
        [share] * 3, abs=5e-5
    )
    assert found.is_bottleneck == (settled.is_bottleneck if share == 1 else (False, False))
    for part in ("data_share", "ack_share"):
        expected = [share * each for each in getattr(settled, part)]
        assert getattr(found, part) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("alpha", [30, 100])
def test_bunches_are_those_of_fixed_windows(alpha: int) -> None:
    """Two opposite fixed windows as large as FAST's keep the link as busy, packet by packet.

    Cycles 10 to 20 count. A window is a whole number, so it is off by up to half a packet in 96.
    """
    capacity, propagation_s = 10_000_000, Fraction(8, 100)
    flows = [_flow(FORWARD, alpha), _flow(BACKWARD, alpha)]
    settled = equilibrium(flows, (capacity, capacity))
    found = correct_for_bunches(settled, flows, (capacity, capacity), float(propagation_s))
    round_trip = float(propagation_s) + found.queueing_s
    window = round(alpha * round_trip / found.queueing_s)
    sender = Sender(
        window, Fraction(DATA_BIT, capacity), Fraction(ACK_BIT, capacity), propagation_s / 2
    )
    cycle = Fraction(round_trip)
    outcome, _ = simulate((sender, sender), (10 * cycle, 20 * cycle))
    busy = float(outcome.busy / (10 * cycle))
    assert busy == pytest.approx(sum((found.data_share[0], found.ack_share[0])), rel=0.5 / window)


def test_one_way_has_no_bunches_to_meet() -> None:
    """Without opposite data ACKs are not delayed, however long the path."""
    flows = [_flow(FORWARD, 30)]
    settled = equilibrium(flows, (10e6, 10e6))
    assert correct_for_bunches(settled, flows, (10e6, 10e6), 1.0) is settled


def _link(mbit: float, delay_s: float) -> Bottleneck:
    rate = mbit * 1e6
    return bottleneck(
        rate, round(delay_s * 1e9), 10_000, DATA_BIT / rate, ACK_BIT / rate, share=0.96
    )


def _connection(name: str, direction: str, alpha: int | None, **fields: Any) -> Connection:
    other = "reverse" if direction == "forward" else "forward"
    return connection(
        name, (direction,), (other,), **{"congestion": "fast", "alpha_packets": alpha, **fields}
    )


def _setup(links: dict[str, Bottleneck], connections: list[Connection], base_us: int) -> Setup:
    modules = {"tcp_fast": {"base_rtt_us": base_us}} if base_us else {}
    return Setup(links, tuple(connections), 960, True, 5, 15, modules, {})


EXAMPLE_3 = {"forward": _link(100, 0.010), "reverse": _link(10, 0.010)}
FIRST, SECOND = _connection("first", "forward", 100), _connection("second", "reverse", 30)


def test_prediction_for_example_3() -> None:
    """The theory of fast-ex3 gives 29.412 and 8.8235 Mbit/s, the slow direction full."""
    values = predict("fast", _setup(EXAMPLE_3, [FIRST, SECOND], 20_000))
    assert values["throughput.first"] == pytest.approx(29.412, abs=5e-4)
    assert values["throughput.second"] == pytest.approx(8.8235, abs=5e-5)
    assert values["utilisation.reverse"] == pytest.approx(1)
    assert values["utilisation.forward"] == pytest.approx(0.29412 + 0.00353, abs=1e-5)
    assert values["utilisation_data.reverse"] == pytest.approx(0.88235, abs=1e-5)
    assert values["utilisation_data.forward"] == pytest.approx(0.29412, abs=1e-5)
    assert (values["bottleneck_time.forward"], values["bottleneck_time.reverse"]) == (0, 1)
    assert values["jain_index"] == pytest.approx(130**2 / (2 * (100**2 + 30**2)))
    assert values["goodput.first"] == pytest.approx(0.96 * values["throughput.first"])
    assert not any(name.startswith("queued_mean") for name in values)


def test_prediction_for_example_5() -> None:
    """The theory of fast-ex5 gives 9.6154 Mbit/s, 15.46 packets each, both directions full."""
    links = {"forward": _link(10, 0.001), "reverse": _link(10, 0.001)}
    first = FIRST.model_copy(update={"alpha_packets": 30})
    values = predict("fast", _setup(links, [first, SECOND], 2_000))
    for name in ("first", "second"):
        assert values[f"throughput.{name}"] == pytest.approx(9.6154, abs=5e-5)
        assert values[f"queued_mean.{name}"] == pytest.approx(15.46, abs=5e-3)
    assert values["utilisation.forward"] == values["utilisation.reverse"] == pytest.approx(1)


def test_prediction_for_one_way() -> None:
    """In one direction the queue is alpha packets less those whose ACKs are in transmission."""
    links = {"forward": _link(10, 0.010), "reverse": _link(10, 0.010)}
    values = predict("fast", _setup(links, [FIRST], 20_000))
    assert values["throughput.first"] == pytest.approx(10)
    assert values["queued_mean.first"] == pytest.approx(100 - 0.04)


@pytest.mark.parametrize(
    ("starts", "rates"), [((0, 5), (23.217, 9.0713)), ((5, 0), (76.129, 6.9548))]
)
def test_prediction_where_base_rtt_is_measured(
    starts: tuple[int, int], rates: tuple[float, float]
) -> None:
    """If example 3's later flow measures its base RTT, it gets more than Theorem 1 gives it."""
    late = [
        each.model_copy(update={"start_ns": START_NS + start * 10**9})
        for each, start in zip((FIRST, SECOND), starts, strict=True)
    ]
    values = predict("fast", _setup(EXAMPLE_3, late, 0))
    assert values["throughput.first"] == pytest.approx(rates[0], abs=5e-4)
    assert values["throughput.second"] == pytest.approx(rates[1], abs=5e-5)


@pytest.mark.parametrize(("pacing", "full"), [(True, 1), (False, 0.7918)])
def test_prediction_depends_on_pacing(pacing: bool, full: float) -> None:
    """Over 160 ms and near balance the slow direction idles a fifth, unless windows are paced."""
    third = _connection("third", "forward", 340)
    links = {"forward": _link(100, 0.080), "reverse": _link(10, 0.080)}
    setup = replace(_setup(links, [FIRST, SECOND, third], 160_000), pacing=pacing)
    assert predict("fast", setup)["utilisation.reverse"] == pytest.approx(full, abs=5e-5)


def test_constant_rates_come_off_the_link() -> None:
    """1.3 Mbit/s of other traffic leave 8.7 Mbit/s for Theorem 1, still full (section 5.2)."""
    crossing = _connection("film", "reverse", None, congestion="reno", rate_mbit=1.3)
    values = predict("fast", _setup(EXAMPLE_3, [FIRST, SECOND, crossing], 20_000))
    assert values["throughput.second"] == pytest.approx(8.8235 * 0.87, abs=5e-5)
    assert values["utilisation.reverse"] == pytest.approx(1)


def test_udp_comes_off_the_link() -> None:
    """1.3 Mbit/s of UDP reduce the link by themselves and by their Ethernet headers alone."""
    film = datagram_flow("film", "reverse", 1.3, frames_per_s=12.97)
    setup = replace(_setup(EXAMPLE_3, [FIRST, SECOND], 20_000), datagrams=(film,))
    values, taken = predict("fast", setup), 0.13 * 1.014
    assert values["throughput.second"] == pytest.approx(8.8235 * (1 - taken), abs=5e-5)
    # The other direction has the first flow's data and the second's ACKs, and nothing of the film.
    left = values["throughput.first"] / 100 + values["throughput.second"] * 0.04 / 100
    assert values["utilisation.forward"] == pytest.approx(left, abs=1e-9)
    utilisation = 0.8824 * (1 - taken) + taken
    assert values["utilisation_data.reverse"] == pytest.approx(utilisation, abs=5e-5)
    assert values["utilisation.reverse"] == pytest.approx(1)


def test_refuses_what_is_not_fast() -> None:
    """Other congestion controls, and paths of several links, are named in the error."""
    other = _connection("bulk", "forward", None, congestion="reno")
    with pytest.raises(ValueError, match="not bulk"):
        predict("fast", _setup(EXAMPLE_3, [FIRST, other], 0))
    long = SECOND.model_copy(update={"directions": ("access", "reverse")})
    with pytest.raises(ValueError, match="second does not pass it alone"):
        predict("fast", _setup(EXAMPLE_3, [FIRST, long], 0))
