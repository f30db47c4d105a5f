"""The packet-level model of Zhang's network: its table, its parts, and its timers."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import ModuleType

import pytest

from twoway.description.point import point_names
from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory import tables
from twoway.theory.network import Setup
from twoway.theory.predictions import tahoe, tahoe_starts, zhang
from twoway.theory.tahoe.outcome import Outcome, clusters
from twoway.theory.tahoe.receiver import HELD_NS, QUICK, Receiver
from twoway.theory.tahoe.sender import Tahoe
from twoway.theory.tahoe.setting import outcome_of, random_starts
from twoway.theory.tahoe.timers import MS, BsdTimer, LinuxTimer, S

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


def setup(name: str) -> Setup:
    """Return the setup that theories get for an experiment's point."""
    point = load_point(name)
    return setup_of(point.experiment, point.profile, point.graph, list(point.connections))


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
        if not tables.look_up(theory.NAME, theory.parameters(setup(name)))
    ]
    assert missing == [], "run `twoway compute`"


@pytest.mark.parametrize(("theory", "name"), SAMPLE)
def test_a_table_is_what_the_model_computes(theory: ModuleType, name: str) -> None:
    """The model reproduces each value of these rows, to the digits kept."""
    given = setup(name)
    kept = tables.look_up(theory.NAME, theory.parameters(given))
    assert kept == pytest.approx(theory.compute(given), rel=1e-5)


@pytest.mark.slow
def test_the_mean_of_starts_has_its_first_start() -> None:
    """The table's first random start equals what the model computes from it."""
    given = setup("zhang-fig3@buffer=30")
    starts = random_starts(given, 0, tahoe_starts.WITHIN_S)
    assert tahoe_starts.first_start(given) == pytest.approx(
        outcome_of(given, starts).metrics(), rel=1e-5
    )


@pytest.mark.parametrize("name", POINTS[tahoe_starts])
def test_tolerances_are_three_deviations(name: str) -> None:
    """With random starts, a prediction's tolerance is three deviations, rounded up."""
    deviations = tahoe_starts.deviations(setup(name))
    for each in load_point(name).predictions:
        assert each.tolerance is not None
        three = 3 * deviations[each.metric]
        assert three <= each.tolerance <= 1.2 * three, f"{each.metric}: {three:.4g}"


def test_a_table_is_found_by_its_parameters() -> None:
    """A setup with another delay, window or module parameter is not in the table."""
    given = setup("zhang-fig4-5@buffer=20")
    assert tables.look_up("tahoe", tahoe.parameters(given))
    for other in (
        replace(given, duration_s=1999),
        replace(given, modules={"tcp_tahoe": {"timer": "neither", "slow_start": "bsd"}}),
        replace(given, acks_every_segment=False),
    ):
        assert tables.look_up("tahoe", tahoe.parameters(other)) is None


def test_pairs_of_drops_by_turns() -> None:
    """With Linux's timer each epoch drops two packets of one connection; the two alternate."""
    found = victims(outcome_of(setup("zhang-fig4-5@buffer=20")))
    assert all(epoch in ([0, 0], [1, 1]) for epoch in found)
    assert all(a != b for a, b in pairwise(found))


def test_bsd_timer_gives_the_papers_utilisation_but_not_its_pattern() -> None:
    """With 4.3BSD's timer links are 70 % busy, and 132 of 207 epochs have two drops."""
    given = replace(setup("zhang-fig4-5@buffer=20"), modules={"tcp_tahoe": {"timer": "bsd"}})
    outcome = outcome_of(given)
    busy = [outcome.metrics()[f"utilisation.{direction}"] for direction in ("forward", "reverse")]
    assert busy == pytest.approx([0.7023, 0.7044], abs=0.0001)
    found = victims(outcome)
    assert Counter(map(len, found)) == {2: 132, 3: 75}
    assert all(len(set(epoch)) == 1 for epoch in found)


def test_timers_of_steady_round_trips() -> None:
    """After many round trips of 1 s Linux waits 1.2 s, and 4.3BSD four ticks of half a second."""
    linux, bsd = LinuxTimer(), BsdTimer()
    for segment in range(400):
        for timer in (linux, bsd):
            timer.sent(segment, segment * S)
            timer.acked(segment, segment + 1, segment + 1, (segment + 1) * S)
    assert linux.expires(0) == pytest.approx(1200 * MS, rel=1e-5)
    assert bsd.expires(0) == 2000 * MS
    for timer in (linux, bsd):
        once = timer.expires(0)
        timer.timed_out()
        assert timer.expires(0) == 2 * once


@pytest.mark.parametrize(
    ("cwnd", "offered", "paper", "bsd"),
    [(30, 1000, 15, 15), (31, 1000, 15, 15), (100, 20, 20, 10), (100, 60, 50, 30), (3, 9, 2, 2)],
)
def test_thresholds_of_two_rules(cwnd: int, offered: int, paper: int, bsd: int) -> None:
    """After a timeout ssthresh is max(min(cwnd/2, maxwnd), 2); BSD halves min(cwnd, maxwnd)."""
    for halves_sent, expected in ((False, paper), (True, bsd)):
        sender = Tahoe(offered, fast_retransmit=True, bsd=False, halves_sent=halves_sent)
        sender.cwnd = Fraction(cwnd)
        sender.time_out()
        assert sender.ssthresh == expected


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
    assert zhang.printed(setup("zhang-fig8")) == {
        "cluster_mean.first": 30,
        "cluster_mean.second": 25,
        "queue_peak.forward": 55,
        "queue_peak.reverse": 23,
    }
    assert "queue_peak.forward" not in zhang.printed(setup("zhang-fig9"))
    one_way = zhang.printed(setup("zhang-one-way-queue@tau_ms=1000,windows=10+10+10"))
    assert one_way["queue_peak.forward"] == 6


def test_undefined_values_are_left_out() -> None:
    """A model without drops predicts no epochs, and no value is NaN."""
    values = outcome_of(replace(setup("zhang-fig8"), duration_s=200)).metrics()
    assert "drops_per_epoch" not in values
    assert all(math.isfinite(value) for value in values.values())
