"""The packet-level model of Tahoe, on Zhang's network and over several queues."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import pytest
from support.connections import bottleneck, connection, setup_at

from twoway.description.point import point_names
from twoway.runs.points import load_point
from twoway.theory import tables
from twoway.theory.barakat import Node, filling_bursts, loss_window
from twoway.theory.network import Setup
from twoway.theory.predictions import tahoe, tahoe_chain, tahoe_starts, zhang
from twoway.theory.predictions.tahoe_chain import Hop, simulate
from twoway.theory.registry import predict, printed_values
from twoway.theory.tahoe.network import HELD_NS, QUICK, Receiver
from twoway.theory.tahoe.outcome import Outcome, clusters
from twoway.theory.tahoe.setting import outcome_of, random_starts

POINTS = {
    theory: [point for name in names for point in point_names(name)]
    for theory, names in {
        tahoe: ("zhang-fig2", "zhang-fig4-5", "zhang-fig6-7", "zhang-one-way-buffer"),
        tahoe_starts: ("zhang-fig3",),
        zhang: (
            *("zhang-fig8", "zhang-fig9", "zhang-criterion", "zhang-criterion-tie"),
            *("zhang-delayed-ack", "zhang-one-way-queue"),
        ),
    }.items()
}
SAMPLE = [
    (tahoe, "zhang-fig2@tau_ms=1000.74,slow_start=bsd,buffer=21"),
    (tahoe, "zhang-fig6-7@start_s=1.2,slow_start=paper"),
    (zhang, "zhang-fig9"),
    (zhang, "zhang-criterion@tau_ms=200,w1=15"),
    (zhang, "zhang-delayed-ack@acks=delayed,windows=30+25,profile=zhang-10ms"),
]


def victims(outcome: Outcome) -> list[list[int]]:
    """Return the connections that lose in each epoch, drop by drop."""
    network = outcome.network
    gap = sum(s.link.delay_ns + s.link.limit * s.link.data_ns for s in network.directions)
    drops = sorted((d for s in network.directions for d in s.drops), key=lambda drop: drop[0])
    epochs = clusters(drops, gap, network.watch_ns)
    return [[packet.connection for _, packet in epoch] for epoch in epochs]


def test_tables_have_every_point() -> None:
    """Loading Zhang's experiments runs no model, because a table has the values of each point."""
    missing = [
        name
        for theory, names in POINTS.items()
        for name in names
        if not tables.look_up(theory.NAME, theory.parameters(setup_at(name)))
    ]
    assert missing == [], "run `twoway compute`"


@pytest.mark.parametrize(("theory", "name"), SAMPLE)
def test_a_table_is_what_the_model_computes(theory: ModuleType, name: str) -> None:
    """The model reproduces each value of these rows, to the digits kept."""
    given = setup_at(name)
    kept = tables.look_up(theory.NAME, theory.parameters(given))
    assert kept == pytest.approx(theory.compute(given), rel=1e-5)


@pytest.mark.slow
def test_the_mean_of_starts_has_its_first_start() -> None:
    """The table's first random start equals what the model computes from it."""
    given = setup_at("zhang-fig3@buffer=30")
    starts = random_starts(given, 0, tahoe_starts.WITHIN_S)
    assert tahoe_starts.first_start(given) == pytest.approx(
        outcome_of(given, starts).metrics(), rel=1e-5
    )


@pytest.mark.parametrize("name", POINTS[tahoe_starts])
def test_tolerances_are_three_deviations(name: str) -> None:
    """With random starts, a prediction's tolerance is three deviations, rounded up."""
    deviations = tahoe_starts.deviations(setup_at(name))
    for each in load_point(name).predictions:
        assert each.tolerance is not None
        three = 3 * deviations[each.metric]
        assert three <= each.tolerance <= 1.2 * three, f"{each.metric}: {three:.4g}"


def test_a_table_is_found_by_its_parameters() -> None:
    """A setup with another delay, window or module parameter is not in the table."""
    given = setup_at("zhang-fig4-5@buffer=20")
    assert tables.look_up("tahoe", tahoe.parameters(given))
    for other in (
        replace(given, duration_s=1999),
        replace(given, modules={"tcp_tahoe": {"timer": "neither", "slow_start": "bsd"}}),
        replace(given, acks_every_segment=False),
    ):
        assert tables.look_up("tahoe", tahoe.parameters(other)) is None


def test_pairs_of_drops_by_turns() -> None:
    """With Linux's timer each epoch drops two packets of one connection; the two alternate."""
    found = victims(outcome_of(setup_at("zhang-fig4-5@buffer=20")))
    assert all(epoch in ([0, 0], [1, 1]) for epoch in found)
    assert all(a != b for a, b in pairwise(found))


def test_bsd_timer_gives_the_papers_utilisation_but_not_its_pattern() -> None:
    """With 4.3BSD's timer links are 70 % busy, and 132 of 207 epochs have two drops."""
    given = replace(setup_at("zhang-fig4-5@buffer=20"), modules={"tcp_tahoe": {"timer": "bsd"}})
    outcome = outcome_of(given)
    busy = [outcome.metrics()[f"utilisation.{direction}"] for direction in ("forward", "reverse")]
    assert busy == pytest.approx([0.7023, 0.7044], abs=0.0001)
    found = victims(outcome)
    assert Counter(map(len, found)) == {2: 132, 3: 75}
    assert all(len(set(epoch)) == 1 for epoch in found)


def test_delayed_acks() -> None:
    """After the first 16 every second segment is acknowledged, a single one after 40 ms."""
    receiver = Receiver(delays=True)
    assert [receiver.take(n, n) for n in range(QUICK)] == list(range(1, QUICK + 1))
    assert [receiver.take(n, n) for n in range(QUICK, QUICK + 4)] == [None, 18, None, 20]
    assert receiver.take(20, 100) is None
    assert receiver.timed_out(99 + HELD_NS) is None
    assert receiver.timed_out(100 + HELD_NS) == 21
    assert receiver.take(22, 200) == 21  # a gap: a duplicate ACK at once
    assert receiver.take(21, 300) == 23


def test_printed_forms() -> None:
    """Printed forms give peaks of 55 and 23 for figure 8, none for figure 9, and q + 1 one way."""
    assert zhang.printed_values(setup_at("zhang-fig8")) == {
        "cluster_mean.first": 30,
        "cluster_mean.second": 25,
        "queue_peak.forward": 55,
        "queue_peak.reverse": 23,
    }
    assert "queue_peak.forward" not in zhang.printed_values(setup_at("zhang-fig9"))
    one_way = zhang.printed_values(setup_at("zhang-one-way-queue@tau_ms=1000,windows=10+10+10"))
    assert one_way["queue_peak.forward"] == 6


def test_of_one_instant_the_departure_counts_first() -> None:
    """A queue whose packet leaves as the next arrives never has two, as the paper's q + 1 says."""
    given = setup_at("zhang-one-way-queue@tau_ms=980,windows=8+8+8")
    printed = zhang.printed_values(given)["queue_peak.forward"]
    assert zhang.compute(given)["queue_peak.forward"] == printed == 1


def test_undefined_values_are_left_out() -> None:
    """A model without drops predicts no epochs, and no value is NaN."""
    values = outcome_of(replace(setup_at("zhang-fig8"), duration_s=200)).metrics()
    assert "drops_per_epoch" not in values
    assert all(math.isfinite(value) for value in values.values())


# The packet-level model of Tahoe over several queues, against formulas and its own file.

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
    values, forms = predict("tahoe_chain", _chain()), printed_values("tahoe_chain", _chain())
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
    given = setup_at("barakat-fig4@nodes=3")
    kept = tables.look_up(tahoe_chain.NAME, tahoe_chain.parameters(given))
    assert kept == pytest.approx(tahoe_chain.compute(given), rel=1e-5)
