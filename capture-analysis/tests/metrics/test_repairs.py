"""Reasons for sending segments again, in connections written down packet by packet."""

import numpy as np
import pytest
from capture_analysis.columns import Mark
from capture_analysis.one_capture.single import measure
from capture_analysis.tracking import Repair
from conversation import Conversation, NewTracker, each_tracker
from measured_captures import arriving, capture_of, compressed, values

MS = 1000


def sending() -> Conversation:
    """Make a connection whose source has sent five segments of 100 bytes, the last at 104 us."""
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(0, 100 + k, 1 + 100 * k, 100, ack=1)
    return talk


def repairs(talk: Conversation, new_tracker: NewTracker) -> list[Repair]:
    """Return the kinds of its retransmissions, in order."""
    found = talk.tracked(new_tracker()).repair
    return [Repair(each) for each in found[found > 0].tolist()]


@each_tracker
def test_repair_after_duplicate_ack_is_fast(new_tracker: NewTracker) -> None:
    """After a duplicate ACK a retransmission is fast, and so is the next in the same repair."""
    talk = sending()
    talk.send(1, 200, 1, ack=101)
    talk.send(1, 210, 1, ack=101)
    talk.send(0, 220, 101, 100, ack=1)
    talk.send(1, 300, 1, ack=301)
    talk.send(0, 310, 301, 100, ack=1)
    assert repairs(talk, new_tracker) == [Repair.FAST] * 2


@each_tracker
def test_fast_by_sack(new_tracker: NewTracker) -> None:
    """A SACK block above its ACK reports a gap, even if the ACK also acknowledges new data."""
    talk = sending()
    talk.sack(200, 101, 201, 301)
    talk.send(0, 220, 101, 100, ack=1)
    assert repairs(talk, new_tracker) == [Repair.FAST]


@each_tracker
def test_repair_after_silence_is_a_timeout(new_tracker: NewTracker) -> None:
    """After 0.2 s of silence a time-out starts a repair, whatever earlier ACKs reported."""
    talk = sending()
    talk.send(1, 200, 1, ack=101)
    talk.send(1, 210, 1, ack=101)
    talk.send(0, 210 + 200 * MS, 101, 100, ack=1)
    talk.send(1, 300 * MS, 1, ack=201)
    talk.send(0, 301 * MS, 201, 100, ack=1)
    assert repairs(talk, new_tracker) == [Repair.TIMEOUT] * 2


@each_tracker
def test_timeout_amid_a_fast_repair(new_tracker: NewTracker) -> None:
    """If a retransmission is lost, the time-out after it starts another repair."""
    talk = sending()
    talk.send(1, 200, 1, ack=101)
    talk.send(1, 210, 1, ack=101)
    talk.send(0, 220, 101, 100, ack=1)
    talk.send(0, 219 * MS, 101, 100, ack=1)
    talk.send(0, 420 * MS, 101, 100, ack=1)
    assert repairs(talk, new_tracker) == [Repair.FAST, Repair.TIMEOUT, Repair.TIMEOUT]


@each_tracker
def test_acknowledged_data_sent_again_is_spurious(new_tracker: NewTracker) -> None:
    """A retransmission of acknowledged data is spurious, and starts no repair."""
    talk = sending()
    talk.send(1, 200, 1, ack=501)
    talk.send(0, 300 * MS, 401, 100, ack=1)
    talk.send(0, 301 * MS, 501, 100, ack=1)
    talk.send(0, 302 * MS, 501, 100, ack=1)
    assert repairs(talk, new_tracker) == [Repair.SPURIOUS, Repair.OTHER]


@each_tracker
def test_repair_without_silence_or_gap_is_other(new_tracker: NewTracker) -> None:
    """A retransmission with neither silence nor dupACKs since the last new ACK is "other"."""
    talk = sending()
    talk.send(1, 200, 1, ack=101)
    talk.send(1, 210, 1, ack=101)
    talk.send(1, 220, 1, ack=201)
    talk.send(0, 150 * MS, 401, 100, ack=1)
    assert repairs(talk, new_tracker) == [Repair.OTHER]


def test_kinds_sum_to_retransmissions() -> None:
    """Each retransmission near its sender is of one kind."""
    exchange = compressed(cycles=200)
    exchange.first = exchange.first.copy()
    exchange.first[500::97] = exchange.first[490:-10:97]
    found = values(measure(capture_of(exchange)), 0)
    kinds = ("fast", "timeout", "spurious", "other")
    counts = [getattr(found, f"retransmissions_{kind}") for kind in kinds]
    assert sum(counts) == found.retransmissions > 20


def test_elsewhere_it_cannot_be_told() -> None:
    """Near the receiver the kinds of retransmissions are undefined, with a reason."""
    found = values(measure(capture_of(arriving())), 0)
    assert "not captured near the data's sender" in found.retransmissions_fast


@pytest.mark.parametrize(("left", "counted"), [(-200, 3), (1448, 0)])
def test_duplicate_sack_tells_of_data_twice(left: int, counted: int) -> None:
    """A first SACK block below the ACK's number reports data that arrived twice."""
    capture = capture_of(compressed())
    whole = capture.whole
    rows = np.flatnonzero(whole.half == 1)[50:53]
    whole.marks[rows] |= np.uint8(Mark.SACK)
    whole.sack_left[rows] = whole.ack[rows].astype(np.int64) + left
    whole.sack_right[rows] = whole.sack_left[rows] + 200
    assert values(measure(capture), 0).duplicates_told == counted
