"""Compare the causes named for transfers with the truth of simulated captures.

    python limits_confusion.py [CASES [SEED]]

Prints docs/how-true.md's table for that number of cases of each kind.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from capture_analysis.one_capture.limit import CANNOT_TELL, FULL, LINK, limit_of
from capture_analysis.one_capture.single import measure
from kept_simulations import kept
from measured_captures import ColumnCapture, values
from simulated_controls import Bbr, Cubic
from simulated_path import Link, Place, Simulation
from simulated_queues import Codel, FairQueues
from truth_corpus import KINDS, PLACES, Plan, Random, _connections, _links, _pipe, bulk

# With fewer segments the analysis may leave the cause open.
LEAST_SEGMENTS = 100
# Causes whose shares differ by less are all right; so is a link just below or above FULL.
EITHER = 0.05
WIDE = 1 << 20
# Causes in which the sender holds back; from afar they look alike.
SENDER = {"congestion window", "application", "ACK compression"}


@dataclass(frozen=True)
class Said:
    """The true limit of a direction, and the one that the capture gives.

    Attributes:
        true: the causes that are right, the first the true one.
        said: a cause, or CANNOT_TELL.
    """

    kind: str
    place: str
    true: tuple[str, ...]
    said: str
    sentence: str


@dataclass(frozen=True)
class SimulatedLimits:
    """A capture, with the true limits of its directions (2 * connection), the largest first."""

    kind: str
    place: Place
    capture: ColumnCapture
    true: dict[int, tuple[str, ...]]


def truth(simulation: Simulation, number: int) -> tuple[str, ...]:
    """Return the true limits of a connection, the largest first; several if they hardly differ."""
    each = simulation.connections[number]
    spent = Counter({k: n for k, n in each.waited_ns.items() if k not in ("", "pause")})
    whole = max(sum(spent.values()), 1)
    shares = {cause: ns / whole for cause, ns in spent.items()}
    acks = simulation.truth(number)
    held = float(np.maximum(np.diff(acks.seen_ns) - np.diff(acks.sent_ns), 0).sum()) / whole
    if simulation.place == "near" and each.tick_ns and "congestion window" in shares:
        held = min(held, shares["congestion window"])
        shares |= {"ACK compression": held, "congestion window": shares["congestion window"] - held}
    most = max(shares.values(), default=0)
    near = sorted((c for c, s in shares.items() if s >= most - EITHER), key=lambda c: -shares[c])
    link, other = simulation.links[each.sender], simulation.links[1 - each.sender]
    busy, either = _busy(each.data_ns, link), _busy(each.data_ns, link, other)
    if busy >= FULL:
        # A full link is the only reason for a small congestion window.
        others = [cause for cause in near[:1] if cause != "congestion window"]
        return (LINK, *(near if busy < FULL + EITHER else others))
    # ACKs wait for either link.
    return (*near, *((LINK,) if either >= FULL - EITHER else ()))


def _busy(data_ns: tuple[int, int], *links: Link) -> float:
    """Return the share of a time in which at least one of these links was busy."""
    begin, end = np.concatenate([np.array(link.busy_ns).T for link in links], axis=1)
    order = np.argsort(begin)
    until = np.concatenate(([data_ns[0]], np.maximum.accumulate(end[order])[:-1]))
    both = np.minimum(end[order], data_ns[1]) - np.maximum(
        begin[order], np.maximum(until, data_ns[0])
    )
    return float(np.maximum(both, 0).sum() / max(data_ns[1] - data_ns[0], 1))


def window(random: Random) -> Plan:
    """Make a transfer whose receiver's window is smaller than the pipe, or larger."""
    links = _links(random)
    made = _connections(random, int(random.choice((1, 1, 2))), links)
    for each in made:
        each.announced = max(2, round(_pipe(links) * random.uniform(0.1, 1.5)))
        each.window = WIDE
    return Plan(links, made)


def short(random: Random) -> Plan:
    """Make a transfer that ends in slow start, or soon after."""
    links = _links(random)
    made = _connections(random, 1, links, window=WIDE, segments=int(random.integers(101, 300)))
    return Plan(links, made)


def shared(random: Random) -> Plan:
    """Make transfers that share a drop-tail queue and lose packets at its end."""
    links = _links(random)
    links[0].buffer_bytes = round(1514 * max(8, _pipe(links) * random.uniform(0.3, 2)))
    made = _connections(random, int(random.choice((2, 4, 8))), links, window=WIDE)
    return Plan(links, made, 8000)


def bloated(random: Random) -> Plan:
    """Make a transfer with a small window through a queue that others fill."""
    plan = bulk(random)
    others = plan.connections
    for each in others:
        each.window = max(each.window, 3 * _pipe(plan.links))
    plan.connections = [*others, *_connections(random, 1, plan.links)]
    plan.connections[-1].announced = int(random.choice((4, 10, 20)))
    plan.connections[-1].window = WIDE
    return plan


def lossy(random: Random) -> Plan:
    """Make a transfer that loses few or many packets at random."""
    links = _links(random, loss=float(random.choice((0.002, 0.01, 0.05))))
    return Plan(links, _connections(random, 1, links, window=WIDE))


def drop_tail(random: Random) -> Plan:
    """Make a transfer through a queue of a third to three times the pipe."""
    links = _links(random)
    links[0].buffer_bytes = round(1514 * max(8, _pipe(links) * random.uniform(0.3, 3)))
    return Plan(links, _connections(random, 1, links, window=WIDE), 8000)


def policer(random: Random) -> Plan:
    """Make one transfer in congestion avoidance through a policer with a bucket of 20 to 200 ms."""
    links = _links(random)
    links[0].polices = True
    held_s = random.uniform(0.02, 0.2)
    links[0].buffer_bytes = round(max(8 * 1514, links[0].rate_bit / 8 * held_s))
    return Plan(links, _connections(random, 1, links, window=WIDE, avoids=True), 8000)


def codel(random: Random) -> Plan:
    """Make one or two transfers in congestion avoidance through CoDel of 5 ms or two packets."""
    links = _links(random)
    links[0].codel = Codel(_target_ns(links[0]))
    made = _connections(random, int(random.choice((1, 2))), links, window=WIDE, avoids=True)
    return Plan(links, made, 8000)


def _target_ns(link: Link) -> int:
    """Return CoDel's target: 5 ms, or two packets of a slow link."""
    return round(max(5e6, 2 * 12112e9 / link.rate_bit))


def fq_codel(random: Random) -> Plan:
    """Make one to four transfers in congestion avoidance through FQ-CoDel."""
    links = _links(random)
    links[0].fair = FairQueues(_target_ns(links[0]))
    count = int(random.choice((1, 2, 4)))
    return Plan(links, _connections(random, count, links, window=WIDE, avoids=True), 8000)


def cubic(random: Random) -> Plan:
    """Make one or two CUBIC transfers with SACK through a queue of a third to three pipes."""
    plan = _own_windows(random, 8, (0.3, 3))
    for each in plan.connections:
        each.cubic = Cubic()
    return plan


def bbr(random: Random) -> Plan:
    """Make one or two BBR transfers with SACK through a queue of two to eight pipes."""
    plan = _own_windows(random, 16, (2, 8))
    for each in plan.connections:
        each.bbr = Bbr()
    return plan


def _own_windows(random: Random, least: int, pipes: tuple[float, float]) -> Plan:
    """Make one or two transfers with SACK through a queue, sized in pipes or in packets."""
    links = _links(random)
    links[0].buffer_bytes = round(1514 * max(least, _pipe(links) * random.uniform(*pipes)))
    made = _connections(random, int(random.choice((1, 2))), links, window=WIDE, sacks=True)
    return Plan(links, made, 8000)


def others(random: Random) -> Plan:
    """Make a small window through a queue that one to four unseen CUBIC transfers fill.

    The link has at most 5 Mbit/s: on a faster one the unseen packets would take minutes.
    """
    links = _links(random)
    for link in links:
        link.rate_bit = min(link.rate_bit, 5e6)
    links[0].buffer_bytes = round(1514 * max(8, _pipe(links) * random.uniform(1, 4)))
    count = int(random.choice((1, 2, 4)))
    unseen = _connections(random, count, links, window=WIDE, sacks=True, hidden=True)
    for each in unseen:
        each.segments, each.cubic = 100_000, Cubic()
    mine = _connections(random, 1, links, window=WIDE, segments=150)
    mine[0].announced = int(random.choice((4, 10, 20)))
    return Plan(links, [*mine, *unseen])


def handover(random: Random) -> Plan:
    """Make a link whose rate changes up to fivefold during a transfer, with a longer delay."""
    links = _links(random)
    made = _connections(random, 1, links, segments=3000)
    segments_ns = 3000 * 12112e9 / links[0].rate_bit
    for link in links:
        link.change_ns = round(segments_ns * random.uniform(0.3, 0.7))
        link.changed_bit = link.rate_bit * 5 ** random.uniform(-1, 1)
        link.changed_ns = round(random.uniform(0, 50e6))
    return Plan(links, made, 8000)


def timeouts(random: Random) -> Plan:
    """Make losses and a window of two or three segments, too few for a fast retransmission."""
    links = _links(random, loss=float(random.choice((0.01, 0.05))))
    made = _connections(random, 1, links, window=WIDE)
    made[0].announced = int(random.choice((2, 3)))
    return Plan(links, made)


def sack(random: Random) -> Plan:
    """Make random or drop-tail losses that SACK repairs."""
    plan = (lossy, shared, drop_tail)[int(random.integers(3))](random)
    for each in plan.connections:
        each.sacks = True
    return plan


# The kinds to simulate.
LIMITED: dict[str, Callable[[Random], Plan]] = {
    **{
        name: KINDS[name]
        for name in ("bulk", "two_way", "asymmetric", "wifi_data", "wifi_acks", "application")
    },
    **{each.__name__: each for each in (window, short, shared, bloated, lossy, drop_tail)},
    **{name: KINDS[name] for name in ("held", "merged", "jitter", "offload")},
    **{each.__name__: each for each in (policer, codel, handover, timeouts, sack)},
    **{each.__name__: each for each in (fq_codel, cubic, bbr, others)},
}


def cases(count: int, seed: int = 1) -> Iterator[Said]:
    """Determine the limits of some transfers of each kind at each place."""
    for each in kept(f"{__name__} {count} {seed}", partial(simulated, count, seed)):
        measured = measure(each.capture)
        for direction, true in each.true.items():
            found = limit_of(vars(values(measured, direction)))
            yield Said(each.kind, each.place, true, found.cause, found.sentence)


def simulated(count: int, seed: int) -> Iterator[SimulatedLimits]:
    """Simulate some cases of each kind at each place, with the true limits."""
    for kind, make in LIMITED.items():
        for number in range(count):
            for place in PLACES:
                random = np.random.default_rng([seed, number, *kind.encode()])
                plan = make(random)
                for each in plan.connections:
                    each.announced = each.announced or WIDE
                simulation = Simulation(
                    plan.links, plan.connections, place, int(random.integers(1 << 30))
                )
                simulation.run(plan.packets)
                if simulation.rows:  # else every packet was lost
                    yield _with_truth(kind, simulation, plan)


def _with_truth(kind: str, simulation: Simulation, plan: Plan) -> SimulatedLimits:
    seen = enumerate(sorted({row[1] for row in simulation.rows}))
    true = {
        2 * flow: truth(simulation, number)
        for flow, number in seen
        if simulation.connections[number].next > LEAST_SEGMENTS
    }
    capture = simulation.captured(plan.clock_ns, plan.merge)
    return SimulatedLimits(kind, simulation.place, capture, true)


def show(found: Sequence[Said]) -> None:
    """Print the matrix of truths and answers, and the agreement by kind and place."""
    words = list(dict.fromkeys((*(each.said for each in found), CANNOT_TELL)))
    sys.stdout.write(f"| truth | {' | '.join(words)} |\n|---|" + "--:|" * len(words) + "\n")
    for true in dict.fromkeys(each.true[0] for each in found):
        table = Counter(each.said for each in found if each.true[0] == true)
        sys.stdout.write(f"| {true} | {' | '.join(str(table[each]) for each in words)} |\n")
    sys.stdout.write("\n| captures | directions | said | right |\n|---|--:|--:|--:|\n")
    kinds = [(each, "kind") for each in LIMITED] + [(each, "place") for each in PLACES]
    for name, field in (*kinds, ("all", "")):
        mine = [each for each in found if not field or getattr(each, field) == name]
        said = [each for each in mine if each.said != CANNOT_TELL]
        right = sum(is_right(each) for each in said)
        sys.stdout.write(
            f"| {name} | {len(mine)} | {len(said) / max(len(mine), 1):.0%} |"
            f" {right / max(len(said), 1):.1%} |\n"
        )


def is_right(each: Said) -> bool:
    """Tell whether the named cause is one of the true ones."""
    right = {*each.true, *({"queue"} if LINK in each.true else ())}
    return each.said in right or (each.said == "sender" and each.true[0] in SENDER)


def main(count: int = 10, seed: int = 1) -> None:
    """Print the matrix."""
    show(list(cases(count, seed)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
