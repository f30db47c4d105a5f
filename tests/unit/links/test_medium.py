"""A half-duplex medium: the order of sending, in small numbers."""

import numpy as np
import pytest

from twoway.links.half_duplex import HalfDuplex, Hold, Medium, bits_ns


def _holds(medium: Medium, first: list[int], second: list[int], bits: int = 10) -> list[Hold]:
    """Return the holds of packets of one size, from their arrivals at both ends."""
    arrived = [np.array(each, dtype=np.int64) for each in (first, second)]
    return [*medium.holds(arrived, [np.full(len(each), bits) for each in arrived])]


def test_ends_take_turns() -> None:
    """Packets of two ends alternate; each takes a gap and its bits after the one before."""
    found = _holds(Medium(100, 1), [0, 0], [0, 0])
    assert found == [(0, 0, 110), (1, 110, 220), (0, 220, 330), (1, 330, 440)]


def test_a_turn_pays_one_gap() -> None:
    """Three packets at one end are sent as a turn of two and a turn of one."""
    assert [hold.sent_ns for hold in _holds(Medium(100, 2), [0, 0, 0], [])] == [110, 120, 230]


def test_what_arrives_as_another_has_been_sent_is_of_its_turn() -> None:
    """A packet at 110 continues the turn; a packet one ns later waits for the other end's turn."""
    assert [hold.sent_ns for hold in _holds(Medium(100, 8), [0, 110], [])] == [110, 120]
    assert _holds(Medium(100, 8), [0, 111], [111]) == [(0, 0, 110), (1, 111, 221), (0, 221, 331)]


def test_at_first_it_is_the_turn_of_the_first_end() -> None:
    """The end that gets a packet first sends first; if both get one at once, the first end does."""
    assert [hold.end for hold in _holds(Medium(0, 1), [5], [4])] == [1, 0]
    assert [hold.end for hold in _holds(Medium(0, 1), [5], [5])] == [0, 1]


def test_an_idle_medium_remembers_whose_turn_was_the_last() -> None:
    """After a pause, if both ends get a packet at once, the end that did not send last is first."""
    assert [hold.end for hold in _holds(Medium(0, 1), [0, 500], [500])] == [0, 1, 0]


def test_bits_are_cut_upwards() -> None:
    """1500 bytes at 20 Mbit/s take 600 us; a byte at 3 Gbyte/s takes a ns."""
    assert bits_ns(np.array([1500, 40]), 20_000_000).tolist() == [600_000, 16_000]
    assert bits_ns(np.array([1, 3, 4]), 24_000_000_000).tolist() == [1, 1, 2]


@pytest.mark.parametrize(("gap_us", "gap_ns"), [(0, 0), (0.001, 1), (16.004, 16_004)])
def test_a_profile_has_microseconds(gap_us: float, gap_ns: int) -> None:
    """The gap is a whole number of ns."""
    assert HalfDuplex(gap_us=gap_us, turn_packets=3).medium == Medium(gap_ns, 3)
