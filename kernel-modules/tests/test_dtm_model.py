"""The arithmetic and the decisions of sch_dtm, in user space, against models of their own."""

import itertools
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from dtm_model import Config, Level, Link, Step, build, config

MS, S = 10**6, 10**9
SLOT_BIT = 512_000


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled model."""
    return build(tmp_path_factory.mktemp("dtm"))


# Service


@pytest.mark.parametrize(
    ("slots", "link_bytes", "service_ns"),
    [
        (1, 1514, 23_656_250),
        (4, 1514, 5_914_063),  # ... 062.5, rounded up to a whole ns
        (20, 1514, 1_182_813),  # ... 812.5
        (1, 66, 1_031_250),
        (8192, 1, 2),  # 1.9 ns
    ],
)
def test_service_time(library: Path, slots: int, link_bytes: int, service_ns: int) -> None:
    """A packet of L bytes takes L * 8 / (n * 512 kbit/s), rounded up to a nanosecond."""
    link = Link(library)
    link.join(0, config(slots=slots))
    link.arrive(0, 1000, link_bytes)
    link.advance(S)
    assert link.departures[0] == [1000 + service_ns]


@pytest.mark.parametrize(("slots", "cycles"), [(1, 190), (20, 10)])
def test_framed_packet_leaves_with_a_cycle(library: Path, slots: int, cycles: int) -> None:
    """A framed packet takes whole cycles: 1514 bytes 190 of one slot, 10 of twenty."""
    link = Link(library)
    link.join(0, config(slots=slots, framed=1))
    for _ in range(3):
        link.arrive(0, 77, 1514)
    link.advance(S)
    assert link.departures[0] == [77 + k * cycles * 125_000 for k in (1, 2, 3)]


def test_backlog_drains_at_the_exact_rate(library: Path) -> None:
    """Fractions of a nanosecond do not add up: packet k leaves at the ceiling of k * 1182812.5."""
    link = Link(library)
    link.join(0, config(slots=20))
    for _ in range(1000):
        link.arrive(0, 0, 1514)
    link.advance(2 * S)
    assert link.departures[0] == [math.ceil(Fraction(15625 * 1514 * k, 20)) for k in range(1, 1001)]


def test_reallocation_in_the_middle_of_a_packet(library: Path) -> None:
    """Half of a packet sent over 4 slots and half over 8 takes three quarters of the time."""
    link = Link(library)
    link.join(0, config(slots=4))
    link.arrive(0, 0, 1024)  # 4 ms over 4 slots
    link.set_slots(0, 2 * MS, 8)
    link.advance(S)
    assert link.departures[0] == [3 * MS]


class FractionalChannel:
    """An independent model of the transmission: time as fractions, slots as a list of changes."""

    def __init__(self, slots: int) -> None:
        self.changes = [(0, slots)]
        self.arrivals: list[tuple[int, int]] = []

    def departures(self) -> list[int]:
        """Ends of all transmissions, each rounded up."""
        ends: list[int] = []
        previous = Fraction(0)
        for arrival, link_bytes in self.arrivals:
            waits = bool(ends) and arrival < ends[-1]
            previous = self._end(previous if waits else Fraction(arrival), 15625 * link_bytes)
            ends.append(math.ceil(previous))
        return ends

    def _end(self, start: Fraction, work: int) -> Fraction:
        left = Fraction(work)
        for index, (since, slots) in enumerate(self.changes):
            last = index + 1 == len(self.changes)
            until = Fraction(10**18 if last else self.changes[index + 1][0])
            begin = max(start, Fraction(since))
            if until <= begin:
                continue
            if left <= (until - begin) * slots:
                return begin + left / slots
            left -= (until - begin) * slots
        raise AssertionError


def test_departures_equal_a_model_in_fractions(library: Path) -> None:
    """In 1000 random series of arrivals and reallocations every departure is exact."""
    rng = random.Random(1)
    for _ in range(1000):
        slots = rng.randint(1, 40)
        link, model = Link(library), FractionalChannel(slots)
        link.join(0, config(slots=slots))
        now = 0
        for _ in range(rng.randint(2, 40)):
            now += rng.choice((0, 1, rng.randint(0, 10**7)))
            if rng.random() < 0.7:
                link_bytes = rng.randint(1, 1600)
                link.arrive(0, now, link_bytes)
                model.arrivals.append((now, link_bytes))
            else:
                slots = rng.randint(1, 40)
                link.set_slots(0, now, slots)
                model.changes.append((now, slots))
        link.advance(now + 100 * S)
        assert link.departures[0] == model.departures()


# The rate allocator


def figure_1(
    samples: list[tuple[int, int | None]], settings: dict[str, int], slots: int
) -> list[tuple[int, int]]:
    """Times and slots of the changes that the paper's figure 1 makes.

    Args:
        samples: bytes that count in each interval, and when a packet was last dropped by then.
        settings: as of the kernel.
        slots: at the start.
    """
    current = lower = upper = settings["estimate"]
    half = settings["corridor"] * 512 // 2
    decided = effective = 0
    changes = []
    for number, (incoming, last_drop) in enumerate(samples, start=1):
        now = number * settings["sample_ns"]
        new = 8 * incoming * 10**9 // settings["sample_ns"]
        held = last_drop is not None and now - last_drop < settings["hold_ns"]
        if new >= current:
            current += (new - current) >> settings["shift_up"]
        elif not held:
            current -= (current - new) >> settings["shift_down"]
        once_in_a_while = now >= max(decided + max(settings["change_ns"], 125_000), effective)
        if not lower <= current <= upper and once_in_a_while:
            lower, upper = max(current - half, 0), current + half
            wanted = Fraction(current + settings["margin"] * 512 + half, SLOT_BIT)
            whole = (math.ceil(wanted), math.floor(wanted + Fraction(1, 2)), math.floor(wanted))
            want = whole[settings["rounding"]]
            want = min(max(want, settings["min_slots"]), settings["max_slots"])
            if want != slots:
                slots, decided = want, now
                effective = now + settings["signalling_ns"]
                changes.append((effective, slots))
    return changes


def _random_settings(rng: random.Random) -> dict[str, int]:
    return {
        "sample_ns": rng.choice((10 * MS, 100 * MS, 7_777_777)),
        "shift_up": rng.randint(0, 6),
        "shift_down": rng.randint(0, 6),
        "margin": rng.choice((0, 750, 333)),
        "corridor": rng.choice((0, 1, 2000, 5000)),
        "rounding": rng.randint(0, 2),
        "change_ns": rng.choice((0, S, 300 * MS)),
        "signalling_ns": rng.choice((0, 0, 50 * MS, 1_234_567)),
        "hold_ns": rng.choice((0, 0, 250 * MS)),
        "estimate": rng.choice((0, 5_000_000)),
        "min_slots": rng.choice((1, 3)),
        "max_slots": rng.choice((8192, 12)),
        "count": rng.randint(0, 1),
    }


@pytest.mark.slow
def test_estimator_equals_figure_1(library: Path) -> None:
    """Fed with 3000 random series, the kernel's code reallocates as the paper's figure 1 does."""
    rng = random.Random(2)
    changes = drops = 0
    for _ in range(3000):
        settings = _random_settings(rng)
        link = Link(library)
        slots = rng.randint(settings["min_slots"], min(30, settings["max_slots"]))
        link.join(0, config("rate", slots=slots, limit=4000, limit_bytes=60_000, **settings))
        samples: list[tuple[int, int | None]] = []
        last_drop = None
        load = rng.choice((0, 200, 2000))
        for number in range(rng.randint(5, 60)):
            load = rng.choice((0, 0, 200, 2000, 20_000, 60_000)) if rng.random() < 0.1 else load
            incoming = 0
            for share in sorted(rng.random() for _ in range(rng.randint(0, 4))):
                now = int((number + share) * settings["sample_ns"])
                link_bytes = rng.randint(1, load + 1)
                accepted = link.arrive(0, now, link_bytes)
                last_drop = last_drop if accepted else now
                drops += not accepted
                incoming += link_bytes if accepted or settings["count"] == 0 else 0
            samples.append((incoming, last_drop))
        link.advance(len(samples) * settings["sample_ns"] + settings["signalling_ns"])
        wanted = figure_1(samples, settings, slots)
        assert link.changes(0) == wanted
        assert link.samples(0) >= len(samples)
        changes += len(wanted)
    assert changes > 3000
    assert drops > 1000


def _steady(link: Link, rate_bit: int, start_ns: int, stop_ns: int, channel: int = 0) -> None:
    """Packets of 1000 bytes at a constant rate."""
    gap = 8000 * S // rate_bit
    for now in range(start_ns, stop_ns, gap):
        link.arrive(channel, now, 1000)


def test_step_response(library: Path) -> None:
    """With shift 3 the estimate of a step is 50, 63, 90, 99 % of it after 6, 8, 18, 35 samples.

    Without margin and corridor, 1000 slots of rate become as many slots as the estimate has.
    """
    rate_bit = 1000 * SLOT_BIT
    for samples in (6, 8, 18, 35):
        link = Link(library)
        link.join(0, config("rate", margin=0, corridor=0, change_ns=samples * 100 * MS))
        for number in range(samples):
            link.arrive(0, number * 100 * MS, rate_bit // 80)
        link.advance(samples * 100 * MS)
        expected = math.ceil(1000 * (1 - Fraction(7, 8) ** samples))
        assert link.slots(0) in (expected, expected - 1)  # each step rounds down by under 1 bit/s
        assert abs(link.slots(0) / 1000 - {6: 0.55, 8: 0.66, 18: 0.91, 35: 0.99}[samples]) < 0.005


def test_first_change_after_a_second(library: Path) -> None:
    """Estimates start after 100 ms, but nothing changes before the first second."""
    link = Link(library)
    link.join(0, config("rate", slots=20))
    _steady(link, 5_000_000, 0, 3 * S)
    assert link.changes(0)[0][0] == S


def test_allocation_above_a_steady_flow(library: Path) -> None:
    """A flow of 5 Mbit/s from the start on gets 9 slots after a second, and 11 after two.

    The estimates are 5 (1 - (7/8)^10) = 3.68 and 5 (1 - (7/8)^20) = 4.65 Mbit/s: 7.2 and 9.1 slots,
    to which margin and half a corridor add 1.75. What is missing to 5 stays in the corridor.
    """
    link = Link(library)
    link.join(0, config("rate", slots=20))
    _steady(link, 5_000_000, 0, 20 * S)
    assert link.changes(0) == [(S, 9), (2 * S, 11)]


def test_at_most_one_change_a_second(library: Path) -> None:
    """However wild the traffic, changes are at least a second apart, and on samples."""
    rng = random.Random(3)
    link = Link(library)
    link.join(0, config("rate", slots=20))
    for second in range(0, 60, 2):
        _steady(link, rng.randint(100_000, 9_000_000), second * S, (second + 2) * S)
    times = [time for time, _ in link.changes(0)]
    assert len(times) > 20
    assert all(b - a >= S for a, b in itertools.pairwise(times))
    assert all(time % (100 * MS) == 0 for time in times)


@pytest.mark.parametrize(("rate_bit", "changes"), [(5_150_000, 2), (5_180_000, 3)])
def test_corridor_hides_small_changes(library: Path, rate_bit: int, changes: int) -> None:
    """Half a corridor above the estimate of the last decision, 4.65 + 0.51 Mbit/s, is the edge."""
    link = Link(library)
    link.join(0, config("rate", slots=20))
    _steady(link, 5_000_000, 0, 20 * S)
    _steady(link, rate_bit, 20 * S, 60 * S)
    assert len(link.changes(0)) == changes


def test_hold_on_loss(library: Path) -> None:
    """While packets are dropped the estimate does not fall; without the option it does."""
    for hold_ns, kept in ((0, False), (2 * S, True)):
        link = Link(library)
        link.join(0, config("rate", slots=20, limit_bytes=100_000, hold_ns=hold_ns))
        _steady(link, 9_000_000, 0, 10 * S)
        slots = link.slots(0)
        for second in range(10, 20):
            link.arrive(0, second * S, 200_000)  # one drop a second
            _steady(link, 2_000_000, second * S, (second + 1) * S)
        assert (link.slots(0) >= slots) == kept


# Time that nobody looks at


def _bursts_and_gaps(library: Path, settings: Config, *, watched: bool) -> tuple[Any, ...]:
    """All that a channel tells of a series that is the same each time."""
    rng = random.Random(4)
    link = Link(library)
    link.join(0, settings)
    now = 0
    for _ in range(20):
        for _ in range(rng.randint(1, 50)):
            link.arrive(0, now, 1500)
            now += rng.randint(0, 3 * MS)
        idle_until = now + rng.randint(0, 5 * S)
        for at in range(now, idle_until if watched else now, MS):
            link.advance(at)
        now = idle_until
    return link.slot_ns(0, now), link.samples(0), link.events, link.departures


@pytest.mark.parametrize(
    "settings",
    [
        config("rate", signalling_ns=3 * MS),
        config("buffer", step=3),
        config("trace", n_steps=2, steps=(Step * 256)(Step(70_000, 9), Step(900_000, 7))),
    ],
    ids=["rate", "buffer", "trace"],
)
def test_idle_gaps_are_made_up_exactly(library: Path, settings: Config) -> None:
    """Looked at once or every millisecond, an idle channel has done the same at the same times."""
    watched = _bursts_and_gaps(library, settings, watched=True)
    assert watched == _bursts_and_gaps(library, settings, watched=False)
    assert len(watched[2]) > 3


def _denied_and_idle(library: Path, *, watched: bool) -> tuple[Any, ...]:
    """All that a channel tells which wants more than the one slot that it ever gets."""
    link = Link(library, slots=20)
    link.join(0, config(slots=19, pool=20, owned=19))
    link.join(1, config("rate", slots=1, pool=20, sample_ns=MS, signalling_ns=2 * MS))
    _steady(link, 400_000, 0, S, channel=1)
    for at in range(S, 100 * S if watched else S, MS):
        link.advance(at)
    link.advance(100 * S)
    return link.samples(1), link.denied(1), link.events


def test_denied_channel_asks_on_while_idle(library: Path) -> None:
    """Looked at or not, a channel that is denied asks again each time that it may."""
    watched = _denied_and_idle(library, watched=True)
    assert watched == _denied_and_idle(library, watched=False)
    assert watched[1] == 99  # once a second from the first on, each asked 2 ms before


def test_a_year_of_idleness(library: Path) -> None:
    """A channel idle for a year has made every one of its samples, and is told so at once."""
    link = Link(library)
    link.join(0, config("rate", slots=20))
    _steady(link, 5_000_000, 0, 2 * S)
    year = 365 * 86400 * S
    link.advance(year)
    assert link.samples(0) == year // (100 * MS)
    assert link.slots(0) == 3  # the corridor's lower edge is 0: nothing asks for fewer


# The other allocators


def test_buffer_allocator(library: Path) -> None:
    """A backlog above `high` for `rise` brings a step, one below `low` for `fall` takes it."""
    link = Link(library)
    link.join(0, config("buffer", slots=1, change_ns=0, step=2, high=3000, low=1000))
    for _ in range(4):  # 4000 bytes: 62.5 ms of one slot
        link.arrive(0, 0, 1000)
    link.advance(S)
    # Above from 0 on: 3 slots at 10 ms. They send the first 1000 bytes, less 10 ms of one slot,
    # by 11.875 ms; then the backlog is 3000, no more above high. It is below 1000 only when all
    # is gone, 15.625 ms of work later.
    gone = 10 * MS + 1_875_000 + 3 * 5_208_334 - 2
    assert link.departures[0][-1] == gone
    assert link.changes(0) == [(10 * MS, 3), (gone + 100 * MS, 1)]


def test_hysteresis_allocator(library: Path) -> None:
    """A level is entered at its backlog and left at the lower one, each after the hold."""
    levels = (Level * 32)(Level(1, 3000, 0), Level(4, 0, 1000))
    link = Link(library)
    link.join(0, config("hysteresis", slots=1, change_ns=5 * MS, n_levels=2, levels=levels))
    link.advance(20 * MS)
    for _ in range(3):
        link.arrive(0, 20 * MS, 1000)
    link.advance(S)
    # 4 slots at once, 3.90625 ms a packet; down at 1000 bytes left, after 7.8125 ms.
    assert link.changes(0) == [(20 * MS, 4), (27_812_500, 1)]


def test_trace_allocator(library: Path) -> None:
    """A trace's steps come at their times, whatever the traffic and the change interval."""
    steps = (Step * 256)(Step(1000, 7), Step(500, 3), Step(1, 250))
    link = Link(library)
    link.join(0, config("trace", slots=20, n_steps=3, steps=steps), 5 * S)
    link.advance(6 * S)
    assert link.changes(0) == [
        (5 * S + 1 * MS, 7),
        (5 * S + 1_500_000, 3),
        (5 * S + 1_501_000, 250),
    ]


def test_signalling_delay(library: Path) -> None:
    """A decision takes effect after the signalling delay, and no other is made in between."""
    link = Link(library)
    link.join(0, config("buffer", slots=1, change_ns=0, rise_ns=0, high=100, signalling_ns=20 * MS))
    for _ in range(10):
        link.arrive(0, 0, 1000)
    link.advance(50 * MS)
    # The first may be decided a cycle after the start, those after as soon as the last is in.
    assert link.changes(0) == [(20 * MS + 125_000, 2), (40 * MS + 125_000, 3)]


# The pool


def test_owner_gets_its_slots_back(library: Path) -> None:
    """Lent slots return at once, from borrowers in the order of joining, down to their own."""
    link = Link(library, slots=20)
    assert link.join(0, config(slots=4, pool=20, owned=10))
    assert link.join(1, config(slots=9, pool=20, owned=5))
    assert link.join(2, config(slots=7, pool=20, owned=1))
    link.set_slots(0, S, 12)
    assert [link.slots(i) for i in range(3)] == [10, 5, 5]
    assert [(e.channel, e.after, e.cause) for e in link.events[-3:]] == [
        (1, 5, "reclaimed"),
        (2, 5, "reclaimed"),
        (0, 10, "denied"),
    ]


def test_pool_refuses_to_guarantee_too_much(library: Path) -> None:
    """No channel joins if what is owned, or the minimum of those who own less, exceeds the link."""
    link = Link(library, slots=20)
    assert link.join(0, config(slots=4, pool=20, owned=18))
    assert link.join(1, config(slots=1, pool=20, min_slots=2))
    assert not link.join(2, config(slots=1, pool=20))


@pytest.mark.slow
def test_pool_is_conserved_under_random_operations(library: Path) -> None:
    """In 300 random histories slots in use are the members', and never more than the link's."""
    rng = random.Random(5)
    causes = set()
    for _ in range(300):
        size = rng.randint(8, 60)
        link = Link(library, slots=size)
        members: dict[int, Config] = {}
        now = 0
        for _ in range(150):
            now += rng.choice((0, rng.randint(0, 400 * MS)))
            _random_operation(rng, link, members, size, now)
            slots = {i: link.slots(i) for i in members}
            guaranteed = {i: max(c.owned, c.min_slots) for i, c in members.items()}
            assert link.used() == sum(slots.values()) <= size
            assert sum(guaranteed.values()) <= size
            assert all(n >= 1 for n in slots.values())
        # What a channel lost, it lost to an owner, and kept what it is guaranteed.
        for event in link.events:
            causes.add(event.cause)
            if event.cause == "reclaimed":
                assert event.after < event.before
            if event.cause == "denied":
                assert event.after < event.wanted
    assert causes == {"allocator", "denied", "reclaimed", "operator", "start"}


def _random_operation(
    rng: random.Random, link: Link, members: dict[int, Config], size: int, now: int
) -> None:
    channel = rng.randrange(8)
    if channel not in members:
        allocator = rng.choice(("static", "rate", "buffer"))
        owned = rng.choice((0, rng.randint(0, size // 2)))
        settings: dict[str, Any] = {"pool": size, "owned": owned, "slots": rng.randint(1, size)}
        chosen = config(allocator, change_ns=rng.choice((0, 100 * MS)), **settings)
        if link.join(channel, chosen, now):
            members[channel] = chosen
    elif rng.random() < 0.05:
        link.leave(channel, now)
        del members[channel]
    elif rng.random() < 0.2:
        want = rng.randint(1, size)
        link.set_slots(channel, now, want)
        assert link.slots(channel) >= min(want, max(members[channel].owned, 1))
    else:
        for _ in range(rng.randint(1, 40)):
            link.arrive(channel, now, 1500)
