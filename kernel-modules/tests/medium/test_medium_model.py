"""The arithmetic of sch_medium, compiled for user space, against a replay in Python."""

import random
from collections.abc import Sequence
from ctypes import CDLL, Structure, byref, c_int, c_uint32, c_uint64

import numpy as np
import pytest
from user_space import MODULES, compile_for_user_space

from twoway.links.half_duplex import Hold, Medium, bits_ns

US, MS = 10**3, 10**6
NO_END = -1
# Rates of the two ends, bytes/s.
RATES = (2_500_000, 750_001)
Packets = Sequence[tuple[int, int, int]]


class Turns(Structure):
    """struct medium_turns."""

    _fields_ = (
        ("gap", c_uint64),
        ("turn_packets", c_uint32),
        ("waiting", c_uint32 * 2),
        *((name, c_uint64) for name in ("start_at", "end_at")),
        ("end", c_int),
        ("sent", c_uint32),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> CDLL:
    """The compiled arithmetic."""
    made = tmp_path_factory.mktemp("medium") / "medium.so"
    library = CDLL(str(compile_for_user_space(made, "-O1", MODULES / "medium.c")))
    for name in ("bits", "send"):
        getattr(library, f"medium_{name}").restype = c_uint64
    return library


def told(library: CDLL, medium: Medium, packets: Packets) -> list[tuple[int, int]]:
    """Return ends and departures by the kernel's arithmetic, in the order of sending.

    As in sch_medium, a transmission that starts before an arrival is booked before it. A packet
    of 0 bytes empties its end.
    """
    turns, sent = Turns(), list[tuple[int, int]]()
    waiting: tuple[list[int], list[int]] = [], []
    at = byref(turns)
    library.medium_begin(at, c_uint64(medium.gap_ns), medium.turn_packets)
    for now, end, size in (*packets, (2**64 - 1, 0, 0)):
        while (first := library.medium_next(at)) != NO_END and turns.start_at < now:
            bits = library.medium_bits(waiting[first].pop(0), c_uint64(RATES[first]))
            sent.append((first, library.medium_send(at, first, c_uint64(bits))))
        if size:
            waiting[end].append(size)
            library.medium_arrive(at, end, c_uint64(now))
        else:
            waiting[end].clear()
            library.medium_clear(at, end, c_uint64(now))
    return sent


def replayed(medium: Medium, packets: Packets) -> list[Hold]:
    """Return ends and departures by the Python model of the theory."""
    arrived, bits = [], []
    for end in (0, 1):
        mine = np.array([(t, size) for t, e, size in packets if e == end], dtype=np.int64)
        time, size = mine.reshape(-1, 2).T
        arrived.append(time)
        bits.append(bits_ns(size, 8 * RATES[end]))
    return [*medium.holds(arrived, bits)]


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, 2, 5, 64])
@pytest.mark.parametrize("gap", [0, 1, 100 * US])
def test_departures_are_those_of_a_replay(library: CDLL, gap: int, turn: int) -> None:
    """The kernel's and Python's departures agree for random packets, bunches and ties.

    Some packets arrive just as another one has been sent.
    """
    at_random, medium = random.Random(turn + gap), Medium(gap, turn)
    for _ in range(20):
        now, packets = MS, []
        for _ in range(200):
            now += at_random.choice((0, 0, 1, at_random.randint(0, MS), 5 * MS))
            # Sizes take whole us at the first end's rate, so some packets arrive just as another
            # leaves.
            size = at_random.choice((5, 250, 1500, at_random.randint(1, 3000)))
            packets.append((now, at_random.randint(0, 1), size))
        # Further packets arrive exactly at times of departures.
        times = [hold.sent_ns for hold in replayed(medium, packets)]
        late = [(at_random.choice(times), end, size) for _, end, size in packets]
        for each in (packets, sorted(late, key=lambda packet: packet[0])):
            assert told(library, medium, each) == [
                (h.end, h.sent_ns) for h in replayed(medium, each)
            ]


def test_the_order_of_arrivals_at_one_time_does_not_matter(library: CDLL) -> None:
    """If both ends get packets in the same ns, departures do not depend on their order."""
    packets = [(MS, end, 1500) for end in (0, 1, 0, 1)]
    turned = [(MS, end, 1500) for end in (1, 1, 0, 0)]
    assert told(library, Medium(US, 2), packets) == told(library, Medium(US, 2), turned)


def test_an_emptied_end_does_not_hold_the_medium(library: CDLL) -> None:
    """If an end's queue is emptied amid a packet, the other end's turn begins at once."""
    long, other = 600 * US, 1_999_998  # 1500 bytes at each rate, rounded up
    packets = [(MS, 0, 1500), (MS, 0, 1500), (MS, 1, 1500)]
    cleared = MS + 100 * US
    assert told(library, Medium(US, 1), [*packets, (cleared, 0, 0)]) == [
        (0, MS + US + long),
        (1, cleared + US + other),
    ]
    assert told(library, Medium(US, 1), [*packets, (cleared, 1, 0)]) == [
        (0, MS + US + long),
        (0, MS + 2 * US + 2 * long),
    ]
