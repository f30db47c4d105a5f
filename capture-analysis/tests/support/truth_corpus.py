"""Captures of many kinds of simulated paths, with the truth about their ACKs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from capture_analysis.ack_compression import COMPRESSED_BELOW
from measured_captures import ColumnCapture
from simulated_path import Connection, Link, Place, Simulation, Truth

Random = np.random.Generator

RATES_BIT = (1e5, 1e6, 1e7, 1e8, 1e9)
PLACES: tuple[Place, ...] = ("near", "middle", "far")
TICKS_NS = (0, 1_000, 1_000_000, 1_000_000, 4_000_000)
# Shares of shrunken ACKs: a direction is compressed from the first on, and spaced below the second.
COMPRESSED, SPACED = 0.05, 0.01


@dataclass(frozen=True)
class SimulatedCapture:
    """A capture, with the truth about its directions.

    Attributes:
        kind: its kind.
        place: the tap's place.
        shares: by direction (2 * connection + half), the share of the ACKs that shrank between
            receiver and tap, in runs of three at least; connections of fewer than 30 left out.
        stamped: by direction, the share of the ACKs in such runs that the receiver sent over more
            than two ticks of its time stamps; 0 without time stamps.
        rates_bit: by direction, the rate of the link on its data's path.
    """

    kind: str
    place: Place
    capture: ColumnCapture
    shares: dict[int, float]
    stamped: dict[int, float]
    rates_bit: dict[int, float]


def compressed_share(truth: Truth, longer_than_ns: float = -1) -> float:
    """Return the share of ACKs in runs of three or more whose gaps shrank below 0.75.

    Runs that were sent over less than a time do not count.
    """
    sent, seen = np.diff(truth.sent_ns), np.diff(truth.seen_ns)
    shrank = np.concatenate(([False], (sent > 0) & (seen < COMPRESSED_BELOW * sent), [False]))
    edges = np.flatnonzero(np.diff(shrank.astype(np.int8)))
    first, last = edges[::2], edges[1::2]
    counts = (last - first >= 2) & (truth.sent_ns[last] - truth.sent_ns[first] > longer_than_ns)
    return float((last - first + 1)[counts].sum() / max(len(sent) + 1, 1))


def corpus(count: int, seed: int = 1, kinds: Iterable[str] = ()) -> Iterator[SimulatedCapture]:
    """Yield a number of captures of some kinds, by default of each."""
    for kind in kinds or KINDS:
        for number in range(count):
            random = np.random.default_rng([seed, number, *kind.encode()])
            yield make_capture(kind, KINDS[kind], random)


def make_capture(kind: str, make: Callable[[Random], "Plan"], random: Random) -> SimulatedCapture:
    """Simulate one capture."""
    plan = make(random)
    place = PLACES[int(random.choice(3, p=(0.6, 0.2, 0.2)))] if plan.place is None else plan.place
    simulation = Simulation(plan.links, plan.connections, place, int(random.integers(1 << 30)))
    simulation.run(plan.packets)
    seen = sorted({row[1] for row in simulation.rows})
    shares, stamped, rates = {}, {}, {}
    for flow, number in enumerate(seen):
        truth = simulation.truth(number)
        if len(truth.sent_ns) > 30:
            tick_ns = plan.connections[number].tick_ns
            shares[2 * flow] = compressed_share(truth)
            stamped[2 * flow] = compressed_share(truth, 2 * tick_ns) if tick_ns else 0
            rates[2 * flow] = plan.links[plan.connections[number].sender].rate_bit
    return SimulatedCapture(
        kind, place, simulation.captured(plan.clock_ns, plan.merge), shares, stamped, rates
    )


@dataclass
class Plan:
    """The simulation, and the settings of its capture."""

    links: tuple[Link, Link]
    connections: list[Connection]
    packets: int = 4000
    clock_ns: int = 1000
    merge: int = 1
    place: Place | None = None


def _links(random: Random, **settings: float) -> tuple[Link, Link]:
    """Draw a symmetric path: rate, and a delay of 1 to 50 ms, more for slow links."""
    rate = float(random.choice(RATES_BIT)) * random.uniform(1, 3)
    delays = np.round(random.uniform(0.05e6, 25e6, 2)).astype(int)
    made = [
        Link(rate, int(delays[direction]), int(delays[1 - direction]), **settings)  # type: ignore[arg-type]
        for direction in (0, 1)
    ]
    return made[0], made[1]


def _pipe(links: tuple[Link, Link]) -> int:
    """Return the number of segments that fill the path."""
    round_trip = sum(each.before_ns + each.behind_ns for each in links)
    return max(2, round(links[0].rate_bit * round_trip / 1e9 / 12112))


def _connections(
    random: Random, count: int, links: tuple[Link, Link], **settings: Any
) -> list[Connection]:
    """Draw connections of one sender that fill the link, or nearly."""
    tick = int(random.choice(TICKS_NS))
    window = max(2, round(_pipe(links) * random.uniform(0.5, 2.5) / count))
    fixed: dict[str, Any] = {
        "every": int(random.choice((1, 2))),
        "tick_ns": tick,
        "window": min(window, 400),
    }
    return [
        Connection(begin_ns=int(random.integers(0, 200_000_000)), **(fixed | settings))
        for _ in range(count)
    ]


def bulk(random: Random) -> Plan:
    """Make one to fifty connections in one direction over one link."""
    links = _links(random)
    count = int(random.choice((1, 1, 2, 5, 20, 50)))
    made = _connections(random, count, links)
    for number, each in enumerate(made):
        each.hosts = 1 + number * int(random.choice((0, 1)))
    return Plan(links, made, 4000 + 600 * count)


def two_way(random: Random) -> Plan:
    """Make connections in both directions, which share both queues."""
    links = _links(random)
    there, back = (_connections(random, int(random.choice((1, 1, 3))), links) for _ in (0, 1))
    for each in back:
        each.sender = 1
        each.window = max(each.window, _pipe(links))
    return Plan(links, there + back, 8000)


def asymmetric(random: Random) -> Plan:
    """Make two-way traffic whose links differ tenfold."""
    plan = two_way(random)
    plan.links[int(random.integers(2))].rate_bit *= 10
    return plan


def wifi_data(random: Random) -> Plan:
    """Make a data medium that sends in bursts, which the ACKs then follow."""
    plan = bulk(random)
    plan.links[0].burst = int(random.choice((4, 16, 32)))
    return plan


def wifi_acks(random: Random) -> Plan:
    """Make an ACK medium that sends in bursts: long waits compress ACKs."""
    plan = bulk(random)
    plan.links[1].burst = int(random.choice((4, 16, 32)))
    return plan


def application(random: Random) -> Plan:
    """Make an application that writes less than the link can carry."""
    links = _links(random)
    write = int(random.choice((1, 2, 8, 40)))
    every_ns = round(write * 12112e9 / links[0].rate_bit * random.uniform(1.2, 20))
    made = _connections(random, 1, links, write=write, write_ns=every_ns)
    made[0].window = 400
    return Plan(links, made)


def receiver(random: Random) -> Plan:
    """Make a small window, so that nothing ever waits."""
    links = _links(random)
    made = _connections(random, int(random.choice((1, 2, 5))), links)
    for each in made:
        each.window = int(random.choice((2, 4, 10)))
    return Plan(links, made)


def coarse(random: Random) -> Plan:
    """Make a capture with a coarse clock."""
    plan = (bulk, two_way, application)[int(random.integers(3))](random)
    plan.clock_ns = int(random.choice((1_000_000, 10_000_000)))
    return plan


def held(random: Random) -> Plan:
    """Make a receiver that reads now and then and answers segment by segment."""
    plan = bulk(random)
    segment_ns = 12112e9 / plan.links[0].rate_bit
    for each in plan.connections:
        each.held_ns = round(segment_ns * random.uniform(2, 20))
    return plan


def merged(random: Random) -> Plan:
    """Make a receiver that merges segments (GRO) and answers them with one ACK."""
    plan = held(random)
    for each in plan.connections:
        each.merged = True
    return plan


def offload(random: Random) -> Plan:
    """Make a capture with merged segments."""
    plan = (bulk, two_way)[int(random.integers(2))](random)
    plan.merge = int(random.choice((4, 16, 44)))
    return plan


def echo(random: Random) -> Plan:
    """Make small messages with pauses between."""
    links = _links(random)
    every_ns = int(random.integers(1, 200)) * 1_000_000
    made = _connections(
        random, int(random.choice((1, 5))), links, write=1, write_ns=every_ns, payload=80
    )
    return Plan(links, made)


def losses(random: Random) -> Plan:
    """Make losses, at random or by a full queue."""
    plan = (bulk, two_way)[int(random.integers(2))](random)
    for link in plan.links:
        link.loss = float(random.choice((0, 0.001, 0.01)))
        link.buffer_bytes = int(random.choice((1 << 40, 30_000, 100_000)))
    return plan


def jitter(random: Random) -> Plan:
    """Make delays that vary from packet to packet."""
    plan = bulk(random)
    for link in plan.links:
        link.jitter_ns = round(12112e9 / link.rate_bit * random.uniform(0.1, 3))
    return plan


_KINDS = (
    *(bulk, two_way, asymmetric, wifi_data, wifi_acks, application, receiver),
    *(coarse, held, merged, offload, echo, losses, jitter),
)
KINDS = {each.__name__: each for each in _KINDS}
