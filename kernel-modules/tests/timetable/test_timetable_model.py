"""The arithmetic of sch_timetable, compiled for user space, against tags computed in Python."""

import random
from collections.abc import Sequence
from ctypes import CDLL, Structure, byref, c_char_p, c_long, c_uint8, c_uint32, c_uint64, c_void_p

import numpy as np
import pytest
from user_space import MODULES, compile_for_user_space

from twoway.links.timetable import Kind, Timetable

KINDS: tuple[Kind, ...] = ("rates", "opportunities", "delays")
MS, S = 10**6, 10**9
# The longest table allowed: with a byte less, a packet would need 2^20 steps in two laps.
LONG = ((0, 32768 - 1), *((at, 0) for at in range(1, 1 << 19)))
# Largest time from a packet's arrival to its departure; a later packet is dropped.
HORIZON_NS = 2**60 - 1
NEVER = 2**63 - 1
# The compiler has it called in each basic block but its own.
COUNTER = """
long blocks;
__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void) { blocks++; }
"""
Packets = Sequence[tuple[int, int]]


class Refusal(Structure):
    """struct netlink_ext_ack of user_space.h."""

    _fields_ = (("sentence", c_char_p),)


class Table(Structure):
    """struct timetable."""

    _fields_ = (
        ("kind", c_uint8),
        *((name, c_uint32) for name in ("n_steps", "room")),
        ("steps", c_void_p),
        *((name, c_uint64) for name in ("period", "lap")),
        ("step", c_uint32),
        *((name, c_uint64) for name in ("free_at", "rest")),
        ("carried", c_uint32),
        ("digest", c_uint64),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    """The compiled arithmetic, which counts its basic blocks in `blocks`."""
    folder = tmp_path_factory.mktemp("timetable")
    counter = folder / "counter.c"
    counter.write_text(COUNTER)
    flags = "-O1", "-fsanitize-coverage=trace-pc"
    made = compile_for_user_space(folder / "timetable.so", *flags, counter, MODULES / "timetable.c")
    library = CDLL(str(made))
    library.timetable_arrive.restype = c_uint64
    return library


def _run(
    library: CDLL,
    table: Timetable,
    packets: Packets,
    *,
    clock: tuple[int, int] = (0, 0),
    part: int = 0,
) -> tuple[list[str], int]:
    """Return the output of the kernel's arithmetic, and its cost in basic blocks.

    Args:
        library: the compiled arithmetic.
        table: the table.
        packets: times and sizes; 0 bytes: all packets are gone, which is no departure.
        clock: when the table starts, and the present.
        part: steps of a request; 0: all.
    """
    blocks = c_long.in_dll(library, "blocks")
    blocks.value = 0
    steps = np.array(table.steps, dtype=np.uint64)
    kind, total = KINDS.index(table.kind), len(table.steps)
    made, refusal = Table(kind=kind, steps=steps.ctypes.data, period=table.period_ns), Refusal()
    at = byref(made)
    while made.n_steps < total:
        checked = made.n_steps
        made.n_steps = min(checked + (part or total), total)
        if library.timetable_check(at, checked, byref(refusal)):
            return [refusal.sentence.decode()], blocks.value
    said = [str(made.digest)]
    library.timetable_start(at, *map(c_uint64, clock))
    for now, size in packets:
        if size:
            said.append(str(library.timetable_arrive(at, c_uint64(now), size)))
        else:
            library.timetable_clear(at, c_uint64(now))
    return said, blocks.value


def told(library: CDLL, table: Timetable, start: int, now: int, packets: Packets) -> list[str]:
    """Return the output of the kernel's arithmetic: digest and departures, or the problem."""
    return _run(library, table, packets, clock=(start, now))[0]


def departures(library: CDLL, table: Timetable, packets: Packets) -> list[int]:
    """Return departures by the kernel's arithmetic, from a table that starts with the clock."""
    return [int(each) for each in told(library, table, 0, 0, packets)[1:]]


def leaves(table: Timetable, start: int, packets: Packets) -> list[int]:
    """Return departures by Python's arithmetic."""
    arrived, size = np.array(packets, dtype=np.int64).T
    return [int(each) for each in table.leaves(start, arrived, size)]


def _random_table(kind: Kind, at_random: random.Random) -> Timetable:
    times = [0, *sorted(at_random.sample(range(1, 100), at_random.randint(0, 20)))]
    most = {"rates": 3 * 10**6, "opportunities": 6000, "delays": 50 * MS}[kind]
    values = [at_random.choice((0, at_random.randint(1, most))) for _ in times]
    values[-1] = most
    period = (times[-1] + at_random.randint(1, 50)) * MS
    repeated = kind == "opportunities" or at_random.random() < 0.5
    steps = tuple((MS * at, value) for at, value in zip(times, values, strict=True))
    return Timetable(kind, steps, period if repeated else 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_departures_are_those_of_tags(library: CDLL, kind: Kind) -> None:
    """For random tables and packets each departure equals that of the tags."""
    at_random = random.Random(kind)
    for _ in range(60):
        table, start = _random_table(kind, at_random), S + at_random.randint(0, S)
        now, packets = at_random.choice((start, start - 300 * MS, 3)), []
        for _ in range(100):
            now += at_random.choice((0, 1, at_random.randint(0, 5 * MS), 20 * MS, 500 * MS))
            packets.append((now, at_random.randint(1, 3000)))
        digest, *found = told(library, table, start, packets[0][0], packets)
        assert int(digest) == table.digest
        assert [int(each) for each in found] == leaves(table, start, packets)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (Timetable("rates", ((5, 1000),)), "the first step is at 0"),
        (Timetable("rates", ((0, 9), (7, 9), (7, 9))), "each step is later than the one before"),
        (Timetable("rates", ((0, 9), (7, 9)), 7), "the period is longer than the table"),
        (Timetable("rates", ((0, 10), (5, 0))), "the table ends without a rate"),
        (Timetable("rates", ((0, 1000),), S), "carries less than 1500 bytes"),
        (Timetable("opportunities", ((0, 1499),), S), "carries less than 1500 bytes"),
        (Timetable("opportunities", ((0, 1500),)), "opportunities need a period"),
        (Timetable("opportunities", LONG, len(LONG)), "too many steps for the little"),
    ],
)
def test_a_table_that_would_hold_packets_is_refused(
    library: CDLL, table: Timetable, said: str
) -> None:
    """A table that would let a packet leave too late, or never, is refused with a sentence."""
    (found,) = told(library, table, 0, 0, [])
    assert said in found


@pytest.mark.slow
def test_the_longest_table_is_taken(library: CDLL) -> None:
    """With a table just within the bound the largest packet has a departure."""
    table = Timetable("opportunities", ((0, 32768), *LONG[1:]), len(LONG))
    _, leaves_at = told(library, table, 0, 0, [(1, 65536)])
    assert int(leaves_at) == 2 * len(LONG)


@pytest.mark.parametrize(
    ("table", "bytes_", "lasts_ns"),
    [
        # A stab can make a packet count as 1 MiB; this table gives a byte per second.
        (Timetable("rates", ((0, 1),)), 2**20, 2**20 * S),
        (Timetable("opportunities", ((0, 1500),), 2**59), 1500, 2**59),
    ],
)
def test_no_packet_leaves_beyond_the_horizon(
    library: CDLL, table: Timetable, bytes_: int, lasts_ns: int
) -> None:
    """Packets that would leave 2^60 ns or more after their arrival have no departure."""
    found = departures(library, table, [(1, bytes_)] * 9000)
    first = found[0]
    fit = (1 + HORIZON_NS - first) // lasts_ns + 1
    assert found[:fit] == [first + lasts_ns * each for each in range(fit)]
    assert found[fit:] == [NEVER] * (9000 - fit)


@pytest.mark.parametrize("period_ns", [0, 1 << 20])
def test_a_pause_costs_no_more_in_a_long_table(library: CDLL, period_ns: int) -> None:
    """After a pause, a packet's step in a table of 2^20 steps is found by bisection."""
    table = Timetable("delays", tuple((at, at % 7) for at in range(1 << 20)), period_ns)
    packets = [(at, 1500) for at in range(1, 1 << 20, 1 << 10)]
    found, cost = _run(library, table, packets)
    assert [int(each) for each in found[1:]] == leaves(table, 0, packets)
    _, checked = _run(library, table, [])
    assert cost - checked < 200 * len(packets)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_are_added_cost_no_more_in_a_long_table(library: CDLL, kind: Kind) -> None:
    """A table that comes in parts is checked as cheaply as a whole one, with the same digest."""
    period_ns = 0 if kind == "delays" else 10**6
    table = Timetable(kind, tuple((at, 10**9 + at) for at in range(1 << 15)), period_ns)
    packets = [(5, 1500), (10**5, 700)]
    whole, at_once = _run(library, table, packets)
    parts, one_by_one = _run(library, table, packets, part=100)
    assert parts == whole
    assert one_by_one < 1.1 * at_once


def test_steps_that_are_added_belong_to_the_table(library: CDLL) -> None:
    """An added step must be later than the last one, and its work counts with the others."""
    carries = Timetable("opportunities", tuple((at, 100) for at in range(30)), 30)
    repeats = Timetable("rates", ((0, 9), (5, 9), (5, 9)))
    for table, part, said in (
        (carries, 20, str(carries.digest)),
        (repeats, 2, "each step is later than the one before"),
    ):
        assert _run(library, table, [], part=part)[0] == [said]


def test_the_longest_delay(library: CDLL) -> None:
    """A delay may be at most 2^53 ns, 104 days."""
    assert departures(library, Timetable("delays", ((0, 2**53),)), [(5, 100)]) == [5 + 2**53]


def test_a_packet_that_is_dropped_leaves_no_trace(library: CDLL) -> None:
    """A packet that is dropped beyond the horizon does not affect later packets."""
    table = Timetable("opportunities", ((0, 1500),), 2**59)
    late = 2**59 + 1
    assert departures(library, table, [(1, 4500), (late, 1500)]) == [NEVER, 2**60]


def test_a_packet_needs_no_more_steps_than_a_table_has(library: CDLL) -> None:
    """A packet that a stab makes larger than the largest allowed has no departure."""
    table = Timetable("opportunities", ((0, 32768), *LONG[1:]), len(LONG))
    assert departures(library, table, [(1, 2**20), (1, 65536)]) == [NEVER, 2 * len(LONG)]


@pytest.mark.parametrize("period_ns", [0, 40 * MS])
@pytest.mark.parametrize("kind", KINDS)
def test_an_emptied_queue_leaves_the_link_free(library: CDLL, kind: Kind, period_ns: int) -> None:
    """After all packets are gone, the next packet leaves as from an idle link, at any step."""
    period_ns = period_ns or (200 * MS if kind == "opportunities" else 0)
    steps = {
        "rates": ((0, 10**6), (15 * MS, 10**4), (30 * MS, 2 * 10**6)),
        "opportunities": ((0, 3000), (15 * MS, 1000), (30 * MS, 1500)),
        "delays": ((0, 20 * MS), (15 * MS, 500 * MS), (30 * MS, MS)),
    }[kind]
    table = Timetable(kind, steps, period_ns)
    for now in (1, 14 * MS, 16 * MS, 50 * MS):
        later = [(now + 100, 1500), (now + 5 * MS, 700)]
        before = [(1, 1500), (now, 64_000)]
        found = departures(library, table, [*before, (now + 10, 0), *later])
        assert found[2:] == leaves(table, 0, later)
