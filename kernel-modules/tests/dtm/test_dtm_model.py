"""The arithmetic and the decisions of sch_dtm, in user space, against independent models."""

import math
import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from dtm_model import Config, Link, build, config
from user_space import TESTS, address_sanitizer

MS, S = 10**6, 10**9
SLOT_BIT = 512_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled model."""
    return build(tmp_path_factory.mktemp("dtm"))


# Service


@pytest.mark.parametrize("link_bytes", [1, 66, 1514, 9180, 65535, 2**20, 2**32 - 1])
def test_any_size_takes_its_time_on_any_slots(library: Path, link_bytes: int) -> None:
    """Packets of one byte and of 4 GiB take the exact time in ns, at any number of slots."""
    slots = 1
    while slots <= 65535:
        link = Link(library)
        link.join(0, config(initial=slots))
        link.arrive(0, 1000, link_bytes)
        link.advance(10**15)
        assert link.departures[0] == [1000 - (-15625 * link_bytes // slots)]
        slots += 1 + slots // 4


def test_an_idle_century_gives_no_credit(library: Path) -> None:
    """After a hundred idle years at 65535 slots a packet still takes its exact time: 361 ns."""
    link = Link(library)
    link.join(0, config(initial=65535))
    link.arrive(0, 0, 1514)
    years = 100 * 365 * 86400 * S
    link.arrive(0, years, 1514)
    link.advance(years + S)
    assert link.departures[0] == [361, years + 361]


CYCLE = 125_000


def _cycle_end(time: Fraction) -> int:
    return math.ceil(time / CYCLE) * CYCLE


class FractionalChannel:
    """An independent model of transmission: time as fractions, slots as a list of changes."""

    def __init__(self, slots: int, *, framed: bool = False) -> None:
        self.changes = [(0, slots)]
        self.arrivals: list[tuple[int, int]] = []
        self.looks: list[int] = []  # times at which sent packets were taken
        self.framed = framed

    def departures(self) -> list[int]:
        """Return the ends of all transmissions, rounded up to ns."""
        ends: list[int] = []
        previous = Fraction(0)
        for arrival, link_bytes in self.arrivals:
            start = max(previous, Fraction(arrival))
            carried = -(-link_bytes // 8) * 8 if self.framed else link_bytes
            previous = self._end(start, 15625 * carried)
            ends.append(_cycle_end(previous) if self.framed else math.ceil(previous))
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


def _series(rng: random.Random, link: Link, model: FractionalChannel, *, late: bool) -> int:
    """Make random arrivals and reallocations, a few ms apart; return the time of the last."""
    now = 0
    for _ in range(rng.randint(2, 40)):
        now += rng.choice((0, 1, rng.randint(0, 10**7)))
        if rng.random() < 0.7:
            link_bytes = rng.randint(1, 1600)
            link.arrive(0, now, link_bytes, late=late)
            model.arrivals.append((now, link_bytes))
        else:
            slots = rng.randint(1, 40)
            link.set_slots(0, now, slots, late=late)
            model.changes.append((now, slots))
        if late and rng.random() < 0.1:
            link.poll(now)
            model.looks.append(now)
    return now


def test_departures_equal_a_model_in_fractions(library: Path) -> None:
    """In 1000 random series of arrivals and reallocations every departure is exact."""
    rng = random.Random(1)
    for _ in range(1000):
        slots = rng.randint(1, 40)
        link, model = Link(library), FractionalChannel(slots)
        link.join(0, config(initial=slots))
        link.advance(_series(rng, link, model, late=False) + 100 * S)
        assert link.departures[0] == model.departures()


@pytest.mark.parametrize("framed", [False, True])
def test_a_late_look_delays_no_other_packet(library: Path, *, framed: bool) -> None:
    """However rarely a channel is polled, each packet is available from its exact end on.

    There are 1000 random series; a poll takes the packets whose end, by the model in fractions, has
    come.
    """
    rng = random.Random(6)
    late = 0
    for _ in range(1000):
        slots = rng.randint(1, 40)
        link, model = Link(library), FractionalChannel(slots, framed=framed)
        link.join(0, config(initial=slots, framed=framed))
        now = _series(rng, link, model, late=True)
        while now < 2 * S:
            now += rng.randint(0, 10**8)
            link.poll(now)
            model.looks.append(now)
        ends = model.departures()
        seen = [next(look for look in model.looks if look >= end) for end in ends]
        assert link.departures[0] == seen
        late += sum(look > end for look, end in zip(seen, ends, strict=True))
    assert late > 10_000


# The rate allocator


def figure_1(
    samples: list[tuple[int, int | None]], settings: dict[str, int], slots: int
) -> list[tuple[int, int]]:
    """Return times and slots of the changes that the paper's figure 1 makes.

    Args:
        samples: bytes in each interval, and the last time of a drop by then.
        settings: the kernel's settings.
        slots: slots at the start.
    """
    current = lower = upper = settings["estimate"]
    slot_bit, pace_ns = settings["slot_rate"], settings["change_ns"]
    half = settings["corridor"] * (slot_bit // 1000) // 2
    decided = effective = 0
    changes = []
    for number, (incoming, last_drop) in enumerate(samples, start=1):
        now = number * settings["sample_ns"]
        new = 8 * incoming * 10**9 // settings["sample_ns"]
        held = last_drop is not None and now - last_drop < settings["hold_ns"]
        if new >= current:
            current += (new - current) >> settings["shift_up"]
        elif not held or settings["hold"]:
            current -= (current - new) >> settings["shift_down"]
        counted = current - current % settings["grain"] if settings["grain"] else current
        earliest = max(decided + max(pace_ns, 125_000), effective)
        if settings["hold"] and last_drop is not None:
            earliest = max(earliest, last_drop + settings["hold_ns"])
        at = now // pace_ns * pace_ns if settings["pace"] and pace_ns else now
        once_in_a_while = earliest <= at > now - settings["sample_ns"]
        if not lower <= counted <= upper and once_in_a_while:
            lower, upper = max(counted - half, 0), counted + half
            wanted = Fraction(counted + settings["margin"] * (slot_bit // 1000) + half, slot_bit)
            whole = (math.ceil(wanted), math.floor(wanted + Fraction(1, 2)), math.floor(wanted))
            want = whole[settings["rounding"]]
            want = min(max(want, settings["min_slots"]), settings["max_slots"])
            if want != slots:
                slots, decided = want, now
                effective = now + settings["signalling_ns"]
                changes.append((effective, slots))
    return changes


def _random_settings(rng: random.Random) -> dict[str, Any]:
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
        "slot_rate": rng.choice((512_000, 512_000, 1000, 64_000)),
        "grain": rng.choice((0, 0, 512_000, 1000)),
        "pace": rng.randint(0, 1),
        "hold": rng.randint(0, 1),
    }


@pytest.mark.parametrize("rounding", [0, 1, 2])
def test_the_largest_sample_does_not_overflow(library: Path, rounding: int) -> None:
    """The estimate of 4000 packets of 4 GiB in a minute is exact; the channel gets all slots."""
    link = Link(library)
    options: dict[str, Any] = {
        "sample_ns": 60 * S,
        "shift_up": 0,
        "limit": 4000,
        "rounding": rounding,
    }
    link.join(0, config("rate", initial=1, margin=65_535_000, corridor=65_535_000, **options))
    for _ in range(4000):
        assert link.arrive(0, 0, 2**32 - 1)
    link.poll(60 * S)
    assert link.state(0).estimate == 4000 * (2**32 - 1) * 8 // 60
    assert link.state(0).slots == 65535


@pytest.mark.slow
def test_estimator_equals_figure_1(library: Path) -> None:
    """In 3000 random series the kernel's code reallocates as the paper's figure 1 does."""
    rng = random.Random(2)
    changes = drops = 0
    for _ in range(3000):
        settings = _random_settings(rng)
        link = Link(library)
        slots = rng.randint(settings["min_slots"], min(30, settings["max_slots"]))
        link.join(0, config("rate", initial=slots, limit=4000, limit_bytes=60_000, **settings))
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
        assert link.state(0).samples >= len(samples)
        changes += len(wanted)
    assert changes > 3000
    assert drops > 1000


def _steady(link: Link, rate_bit: int, start_ns: int, stop_ns: int, channel: int = 0) -> None:
    """Send packets of 1000 bytes at a constant rate."""
    gap = 8000 * S // rate_bit
    for now in range(start_ns, stop_ns, gap):
        link.arrive(channel, now, 1000)


# Time in which channels are not polled


def _random_member(rng: random.Random, size: int) -> Config:
    """Draw the options of a channel in a pool."""
    levels = [(1, 3000, 0), (4, 9000, 1000), (size, 0, 5000)]
    steps = [(rng.randint(1, 50) * MS, rng.randint(1, size)) for _ in range(9)]
    return config(
        rng.choice(("static", "rate", "rate", "buffer", "hysteresis", "trace")),
        initial=rng.randint(1, size),
        owned=rng.choice((0, rng.randint(0, size // 4))),
        change_ns=rng.choice((0, 30 * MS, S)),
        sample_ns=rng.choice((MS, 7_777_777, 100 * MS)),
        signalling_ns=rng.choice((0, 0, 2 * MS)),
        shift_up=rng.randint(0, 4),
        shift_down=rng.randint(0, 4),
        corridor=rng.choice((0, 2000)),
        max_slots=size,
        levels=levels,
        steps=steps,
    )


def _pool_of_three(library: Path, seed: int, *, watched: bool) -> tuple[Any, ...]:
    """Return all reports of a pool of three channels whose traffic has pauses."""
    rng = random.Random(seed)
    size = rng.randint(8, 60)
    link = Link(library, slots=size)
    for channel in range(3):
        link.join(channel, _random_member(rng, size))
    now = 0
    for _ in range(4):
        for _ in range(rng.randint(1, 100)):
            link.arrive(rng.randrange(3), now, 1500)
            now += rng.randint(0, MS)
        until = now + rng.randint(0, 2 * S)
        for at in range(now, until if watched else now, MS):
            link.advance(at)
        now = until
        link.advance(now)
        assert link.is_consistent()
    return (
        sorted((e.time_ns, e.channel, e.before, e.after, e.wanted, e.cause) for e in link.events),
        [(link.slot_ns(i, now), link.state(i).samples, link.state(i).estimate) for i in range(3)],
    )


@pytest.mark.slow
def test_idle_pools_are_made_up_exactly(library: Path) -> None:
    """Idle channels of a pool have the same events whether polled once or every millisecond.

    There are 300 pools of three channels with any allocators, which are lent, denied and granted
    slots.
    """
    causes: set[str] = set()
    for seed in range(300):
        watched = _pool_of_three(library, seed, watched=True)
        assert watched == _pool_of_three(library, seed, watched=False)
        causes |= {event[5] for event in watched[0]}
    assert causes == {"allocator", "denied", "reclaimed", "granted", "operator", "start"}


def test_a_year_of_idleness(library: Path) -> None:
    """After an idle year channels have all of their samples, computed at once."""
    link = Link(library)
    for channel in range(3):
        link.join(channel, config("rate", initial=20, sample_ns=(100, 10, 1)[channel] * MS))
        _steady(link, 5_000_000, channel * 2 * S, (channel + 1) * 2 * S, channel)
    year = 365 * 86400 * S
    link.advance(year)
    for channel in range(3):
        assert link.state(channel).samples == year // ((100, 10, 1)[channel] * MS)
        assert link.state(channel).slots == 2 + (channel == 0)  # the corridor's lower edge is 0


@pytest.mark.parametrize(
    ("channels", "denied", "idle_ns", "settings"),
    [
        (16, 0, 86400 * S, {}),
        (1000, 0, 3 * 86400 * S, {}),
        (1000, 0, 86400 * S, {"sample_ns": MS}),
        (1000, 500, 86400 * S, {"change_ns": 0, "sample_ns": MS}),
        (1000, 1000, 365 * 86400 * S, {"change_ns": 0, "sample_ns": MS, "corridor": 0}),
        (200, 100, 86400 * S, {"shift_up": 0, "shift_down": 10, "corridor": 0, "change_ns": 0}),
    ],
)
def test_catching_up_ends(
    library: Path, channels: int, denied: int, idle_ns: int, settings: dict[str, Any]
) -> None:
    """Many idle channels catch up at once after a long pause, though some were denied slots.

    Sample by sample that would take hours, and the test would not end.
    """
    link = Link(library, slots=2 * channels)
    for channel in range(channels):
        link.join(channel, config("rate", initial=1 if channel else channels, **settings))
    for channel in range(channels):
        link.arrive(channel, MS, 10_000_000 if channel < denied else 3000, late=True)
    link.poll(idle_ns)
    assert link.is_consistent()
    assert sum(link.state(i).samples for i in range(channels)) == channels * (
        idle_ns // settings.get("sample_ns", 100 * MS)
    )


def test_a_hold_is_passed_over(library: Path) -> None:
    """Samples of an idle channel during a hold are skipped, except for the first.

    Sample 1 rises to an eighth of 1.6 Gbit/s; then the estimate falls by 2^-10 a sample, until the
    last sample taken no longer moves it. The lock is released after each 4096.
    """
    estimate, falls = 1_600_000_000 >> 3, 0
    while estimate >> 10:
        estimate -= estimate >> 10
        falls += 1
    taken = 1 + falls + 1
    work = []
    for hold_ns in (0, 60 * S):
        link = Link(library)
        options = config(
            "rate",
            sample_ns=MS,
            shift_down=10,
            hold_ns=hold_ns,
            limit_bytes=100_000,
            change_ns=7200 * S,
        )
        link.join(0, options)
        for size in (100_000, 100_000):  # the second is dropped
            link.arrive(0, 0, size, late=True)
        link.poll(3600 * S)
        assert link.is_consistent()
        assert link.state(0).samples == 3_600_000
        assert link.state(0).estimate == estimate
        work.append(link.state().work)
    assert work == [n + n // 4096 + 1 for n in (taken, taken + 1)]


def test_denied_levels_are_not_asked_for_again(library: Path) -> None:
    """A channel whose level the pool cannot give is denied once, and waits."""
    levels = [(1, 1000, 0), (10, 0, 500)]
    link = Link(library, slots=20)
    link.join(0, config(initial=19, owned=19))
    link.join(1, config("hysteresis", initial=1, change_ns=0, levels=levels))
    link.arrive(1, 0, 3000, late=True)
    link.poll(3600 * S)
    found = link.state(1)
    assert (found.denied, found.slots, found.target) == (1, 1, 10)


# The other allocators


def test_buffer_allocator(library: Path) -> None:
    """A backlog above `high` for `rise` adds a step; one below `low` for `fall` removes a step."""
    link = Link(library)
    link.join(0, config("buffer", initial=1, change_ns=0, step=2, high=3000, low=1000))
    for _ in range(4):  # 4000 bytes: 62.5 ms of one slot
        link.arrive(0, 0, 1000)
    link.advance(S)
    # The backlog is above `high` from 0 on, so there are 3 slots at 10 ms. The first 1000 bytes,
    # less 10 ms at one slot, are sent by 11.875 ms. Then the backlog is 3000, no longer above
    # `high`. It falls below 1000 only when it is empty, 15.625 ms of work later.
    gone = 10 * MS + 1_875_000 + 3 * 5_208_334 - 2
    assert link.departures[0][-1] == gone
    assert link.changes(0) == [(10 * MS, 3), (gone + 100 * MS, 1)]


def test_hysteresis_allocator(library: Path) -> None:
    """A level starts at its upper backlog and ends at its lower one, each after the hold time."""
    levels = [(1, 3000, 0), (4, 0, 1000)]
    link = Link(library)
    link.join(0, config("hysteresis", initial=1, change_ns=5 * MS, levels=levels))
    link.advance(20 * MS)
    for _ in range(3):
        link.arrive(0, 20 * MS, 1000)
    link.advance(S)
    # 4 slots at once, so 3.90625 ms a packet; a lower level at 1000 bytes left, after 7.8125 ms.
    assert link.changes(0) == [(20 * MS, 4), (27_812_500, 1)]


def test_trace_allocator(library: Path) -> None:
    """A trace's steps come at their times, for any traffic and change interval."""
    steps = [(MS, 7), (500_000, 3), (1000, 250)]
    link = Link(library)
    link.join(0, config("trace", initial=20, steps=steps), 5 * S)
    link.advance(6 * S)
    assert link.changes(0) == [
        (5 * S + 1 * MS, 7),
        (5 * S + 1_500_000, 3),
        (5 * S + 1_501_000, 250),
    ]


def test_signalling_delay(library: Path) -> None:
    """A decision takes effect after the signalling delay, and no other is made in between."""
    link = Link(library)
    link.join(
        0, config("buffer", initial=1, change_ns=0, rise_ns=0, high=100, signalling_ns=20 * MS)
    )
    for _ in range(10):
        link.arrive(0, 0, 1000)
    link.advance(50 * MS)
    # The first decision may come a cycle after the start, the next ones once the last takes effect.
    assert link.changes(0) == [(20 * MS + 125_000, 2), (40 * MS + 125_000, 3)]


# The pool


def test_owner_gets_its_slots_back(library: Path) -> None:
    """An owner's lent slots return at once, from borrowers in the order of joining.

    A borrower keeps its own slots.
    """
    link = Link(library, slots=20)
    assert link.join(0, config(initial=4, owned=10))
    assert link.join(1, config(initial=9, owned=5))
    assert link.join(2, config(initial=7, owned=1))
    link.set_slots(0, S, 12)
    assert link.slots(0, 1, 2) == [10, 5, 5]
    assert [(e.channel, e.after, e.cause) for e in link.events[-3:]] == [
        (1, 5, "reclaimed"),
        (2, 5, "reclaimed"),
        (0, 10, "denied"),
    ]


def test_freed_slots_go_to_who_has_waited_longest(library: Path) -> None:
    """Free slots go at once to channels in the order in which they were denied."""
    link = Link(library, slots=20)
    link.join(0, config(initial=18))
    link.join(1, config(initial=1))
    link.join(2, config(initial=1))
    link.set_slots(2, S, 6)
    link.set_slots(1, 2 * S, 4)
    assert link.slots(0, 1, 2) == [18, 1, 1]
    link.set_slots(0, 3 * S, 12)
    assert link.slots(0, 1, 2) == [12, 2, 6]
    link.leave(0, 4 * S)
    assert link.slots(1, 2) == [4, 6]
    assert [(e.time_ns, e.channel, e.before, e.after, e.cause) for e in link.events[-7:]] == [
        (S, 2, 1, 1, "denied"),
        (2 * S, 1, 1, 1, "denied"),
        (3 * S, 0, 18, 12, "operator"),
        (3 * S, 2, 1, 6, "granted"),
        (3 * S, 1, 1, 2, "granted"),
        (4 * S, 0, 12, 0, "left"),
        (4 * S, 1, 2, 4, "granted"),
    ]


def test_of_one_instant_who_joined_first_goes_first(library: Path) -> None:
    """Channels that want the last slots at the same time get them in the order of joining."""
    link = Link(library, slots=20)
    steps = [(S, 15)]
    for channel in (2, 0, 1):
        link.join(channel, config("trace", initial=1, steps=steps))
    link.advance(2 * S)
    assert link.slots(2, 0, 1) == [15, 4, 1]


def test_who_wants_less_waits_no_more(library: Path) -> None:
    """A smaller request replaces the one that waits."""
    link = Link(library, slots=20)
    link.join(0, config(initial=19))
    link.join(1, config(initial=1))
    link.set_slots(1, S, 15)
    link.set_slots(1, 2 * S, 3)
    link.set_slots(0, 3 * S, 10)
    assert link.slots(0, 1) == [10, 3]


def _reclaimed_while_signalled(library: Path) -> Link:
    """Make a channel that decides for 70 slots at 1 s, and loses 20 of 50 while signalling 5 s."""
    levels = [(50, 1000, 0), (70, 0, 0)]
    link = Link(library, slots=80)
    options = config("hysteresis", initial=50, change_ns=0, signalling_ns=5 * S, levels=levels)
    link.join(0, options)
    link.join(1, config(initial=30, owned=50))
    link.arrive(0, S, 3000, late=True)
    link.set_slots(1, 2 * S, 50, late=True)
    return link


def test_slots_do_not_come_before_they_are_signalled(library: Path) -> None:
    """Slots that return during signalling restore lost ones; the request waits for its signal."""
    link = _reclaimed_while_signalled(library)
    link.set_slots(1, 3 * S, 10, late=True)
    assert link.is_consistent()
    link.advance(6 * S)
    assert [(e.time_ns, e.before, e.after, e.cause) for e in link.events if e.channel == 0][2:] == [
        (2 * S, 50, 30, "reclaimed"),
        (3 * S, 30, 50, "granted"),
        (6 * S, 50, 70, "allocator"),
    ]
    assert link.is_consistent()


@pytest.mark.parametrize(("most", "restored"), [(60, 50), (45, 45), (30, 30), (20, 20)])
def test_bounds_apply_to_slots_awaited_during_signalling(
    library: Path, most: int, restored: int
) -> None:
    """A new maximum bounds a request that waits, but not one that is being signalled."""
    link = _reclaimed_while_signalled(library)
    levels = [(10, 1000, 0), (most, 0, 0)]
    options = config("hysteresis", change_ns=0, signalling_ns=5 * S, max_slots=most, levels=levels)
    assert link.reconfigure(0, options, 2_500 * MS)
    assert link.is_consistent()
    link.set_slots(1, 3 * S, 10, late=True)
    assert link.state(0).slots == restored
    link.poll(6 * S)
    assert link.state(0).slots == most
    assert link.is_consistent()


def test_slots_given_cancel_what_was_signalled(library: Path) -> None:
    """Slots that the operator sets cancel any pending request, even if they change nothing."""
    levels = [(10, 1000, 0), (60, 0, 500)]
    link = Link(library)
    options = config("hysteresis", initial=10, change_ns=0, signalling_ns=5 * S, levels=levels)
    link.join(0, options)
    link.arrive(0, S, 3000)
    link.set_slots(0, S + MS, 10, late=True)
    link.poll(6 * S)
    assert link.state(0).slots == 10


def test_an_equal_change_changes_nothing(library: Path) -> None:
    """Setting equal options again keeps the slots, the estimate and a pending request."""

    def history(*, fed_back: bool) -> tuple[Any, ...]:
        link = Link(library)
        options = config("rate", initial=20, signalling_ns=300 * MS)
        link.join(0, options)
        for second in range(10):
            _steady(link, 5_000_000, second * S, (second + 1) * S)
            if fed_back:
                link.reconfigure(0, options, (second + 1) * S + 10 * MS)
            else:
                link.advance((second + 1) * S + 10 * MS)
        return link.events, link.departures, link.state(0).samples, link.state(0).estimate

    assert history(fed_back=True) == history(fed_back=False)
    assert len(history(fed_back=True)[0]) > 3


def test_pool_refuses_to_guarantee_too_much(library: Path) -> None:
    """A channel may not join if guarantees (own slots or minimum) would exceed the link."""
    link = Link(library, slots=20)
    assert link.join(0, config(initial=4, owned=18))
    assert link.join(1, config(initial=1, min_slots=2))
    assert not link.join(2, config(initial=1))


@pytest.mark.slow
def test_pool_is_conserved_under_random_operations(library: Path) -> None:
    """In 300 random histories the slots in use are the members' sum and never exceed the link."""
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
            slots = {i: link.state(i).slots for i in members}
            guaranteed = {i: max(c.owned, c.min_slots) for i, c in members.items()}
            assert link.state().used == sum(slots.values()) <= size
            assert sum(guaranteed.values()) <= size
            assert all(n >= 1 for n in slots.values())
            assert link.is_consistent()
        # A channel loses slots only to an owner, and keeps its guaranteed slots.
        for event in link.events:
            causes.add(event.cause)
            if event.cause == "reclaimed":
                assert event.after < event.before
            if event.cause == "denied":
                assert event.after < event.wanted
            if event.cause == "granted":
                assert event.before < event.after <= event.wanted
    assert causes == {"allocator", "denied", "reclaimed", "operator", "start", "granted", "left"}


def _random_operation(
    rng: random.Random, link: Link, members: dict[int, Config], size: int, now: int
) -> None:
    channel = rng.randrange(8)
    if channel not in members:
        chosen = _random_member(rng, size)
        if link.join(channel, chosen, now):
            members[channel] = chosen
    elif rng.random() < 0.05:
        link.leave(channel, now)
        del members[channel]
    elif rng.random() < 0.1:
        chosen = _random_member(rng, size)
        if link.reconfigure(channel, chosen, now, restart=True):
            members[channel] = chosen
    elif rng.random() < 0.2:
        want = rng.randint(1, size)
        link.set_slots(channel, now, want)
        assert link.state(channel).slots >= min(want, max(members[channel].owned, 1))
    else:
        for _ in range(rng.randint(1, 40)):
            link.arrive(channel, now, 1500)


@pytest.mark.long
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="is being run there")
def test_no_model_reads_or_writes_beside_its_memory() -> None:
    """The tests of dtm, medium and timetable pass in a process with the address sanitizer."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    words += [str(TESTS / "medium"), str(TESTS / "timetable")]
    found = {"LD_PRELOAD": address_sanitizer(), "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        words, env={**os.environ, **found}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
