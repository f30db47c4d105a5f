"""Start and end of connections, wrap-around, and captures that lose or repeat packets."""

import numpy as np
import pytest
from capture_analysis.columns import FLAG_RST, FLAG_SYN
from capture_analysis.tracking import Kind
from conversation import Conversation, NewTracker, each_tracker

pytestmark = each_tracker


@pytest.mark.parametrize("offset", [1 << 29, -1 << 29])
def test_a_challenge_ack_to_the_syn(new_tracker: NewTracker, offset: int) -> None:
    """If a SYN's answer has an earlier connection's numbers, the next SYN-ACK replaces them."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(1, 10, -offset, ack=offset)
    talk.send(0, 20, offset, flags=FLAG_RST)
    talk.send(0, 1000, 0, flags=FLAG_SYN)
    talk.send(1, 1010, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 1020, 1, 100, ack=1)
    talk.send(1, 1030, 1, 200, ack=101)
    talk.send(0, 1040, 101, ack=201)
    tracked = talk.tracked(new_tracker()).where(slice(4, None))
    kinds = [Kind.CONTROL, Kind.NEW_DATA, Kind.NEW_DATA, Kind.ACK]
    assert tracked.kind.tolist() == kinds
    assert tracked.acked_bytes.tolist() == [0, 0, 100, 200]
    assert tracked.in_flight_bytes.tolist() == [0, 100, 200, 0]
    assert tracked.rtt_ns.tolist()[2:] == [10_000, 10_000]


@pytest.mark.parametrize("offset", [1 << 20, (1 << 31) + 5, -(1 << 29)])
def test_a_second_answer_with_another_number(new_tracker: NewTracker, offset: int) -> None:
    """After the acknowledged SYN-ACK, one with another initial number changes nothing."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(1, 10, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 20, 1, ack=1)
    talk.send(1, 30, offset, ack=1, flags=FLAG_SYN)
    talk.send(1, 40, 1, 100, ack=1)
    talk.send(0, 50, 1, ack=101)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist()[3:] == [Kind.CONTROL, Kind.NEW_DATA, Kind.ACK]
    assert tracked.seq_bytes.tolist()[4:] == [1, 1]
    assert tracked.acked_bytes.tolist() == [0, 0, 0, 0, 0, 100]
    assert tracked.in_flight_bytes.tolist()[4:] == [100, 0]
    assert tracked.rtt_ns.tolist()[4:] == [-1, 10_000]
    assert not tracked.unseen_bytes.any()


@pytest.mark.parametrize("offset", [1 << 20, (1 << 31) + 5, -(1 << 29)])
def test_the_answer_that_is_acknowledged(new_tracker: NewTracker, offset: int) -> None:
    """If two SYN-ACKs have different numbers, the first one acknowledged counts."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(1, 10, -offset, ack=1, flags=FLAG_SYN)
    talk.send(1, 20, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 30, 1, ack=1)
    talk.send(1, 40, 1, 100, ack=1)
    talk.send(0, 50, 1, ack=101)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.ACK, Kind.NEW_DATA, Kind.ACK]
    assert tracked.seq_bytes.tolist() == [1, 1, 1]
    assert tracked.new_bytes.tolist() == [0, 100, 0]
    assert tracked.acked_bytes.tolist() == [0, 0, 100]
    assert not tracked.unseen_bytes.any()


def test_a_reset_changes_nothing(new_tracker: NewTracker) -> None:
    """Whatever numbers a RST has, later packets count as if it had not come."""
    with_reset, without = (Conversation().handshake() for _ in range(2))
    for talk in (with_reset, without):
        talk.send(0, 100, 1, 100, ack=1)
        if talk is with_reset:
            talk.send(1, 110, 2_000_000, 5, ack=1_000_000_000, flags=FLAG_RST, window=0)
        talk.send(1, 200, 1, ack=101)
        talk.send(0, 210, 101, 10, ack=1)
    tracked = with_reset.tracked(new_tracker())
    assert tracked.kind.tolist()[4] == Kind.CONTROL
    rest = np.arange(len(tracked)) != 4
    reference = without.tracked(new_tracker())
    for name, column in vars(tracked.where(rest)).items():
        assert column.tolist() == getattr(reference, name).tolist()


@pytest.mark.parametrize("start", [2**32 - 1500, 2**31 - 1500])
def test_numbers_wrap_around(new_tracker: NewTracker, start: int) -> None:
    """Sequence numbers that wrap at 0, or at the sign bit, change nothing."""
    usual, wrapping = (Conversation(isn).handshake() for isn in ((1000, 5000), (start, start)))
    for talk in (usual, wrapping):
        for k in range(5):
            talk.send(0, 100 + k, 1 + 1000 * k, 1000, ack=1)
            talk.send(1, 200 + k, 1 + 500 * k, 500, ack=1001 + 1000 * k)
        talk.send(0, 300, 2001, 1000, ack=2501)
    rows = [talk.tracked(new_tracker()) for talk in (usual, wrapping)]
    for name in vars(rows[0]):
        assert getattr(rows[0], name).tolist() == getattr(rows[1], name).tolist()


def test_many_wraps(new_tracker: NewTracker) -> None:
    """Eight segments of a GiB count as eight GiB, in order, all acknowledged."""
    talk = Conversation().handshake()
    for k in range(8):
        talk.send(0, 100 + 2 * k, 1 + (k << 30), 1 << 30, ack=1)
        talk.send(1, 101 + 2 * k, 1, ack=1 + ((k + 1) << 30))
    tracked = talk.tracked(new_tracker())
    assert tracked.seq_bytes.tolist()[-2] == 1 + (7 << 30)
    assert tracked.ack_bytes.tolist()[-1] == 1 + (8 << 30)
    assert tracked.acked_bytes.sum(dtype=np.int64) == 8 << 30


def test_acks_alone_for_gigabytes(new_tracker: NewTracker) -> None:
    """Acknowledgements that wrap continue to count, and fit the other half once it appears."""
    talk = Conversation()
    for k in range(10):
        talk.send(1, 100 + k, 1, ack=k << 30)
    talk.send(0, 200, 9 << 30, 10, ack=1)
    tracked = talk.tracked(new_tracker())
    assert tracked.acked_bytes.sum(dtype=np.int64) == 9 << 30
    assert tracked.in_flight_bytes.tolist()[-1] == 10


@pytest.mark.parametrize("interleaved", [False, True])
def test_packets_captured_four_times(new_tracker: NewTracker, interleaved: bool) -> None:
    """A packet captured four times counts once, for data and for ACKs."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 101, 1001, 1000, ack=1)
    first, second = talk.packets[3:]
    order = [first, second] * 4 if interleaved else [first] * 4 + [second] * 4
    talk.packets[3:] = [p | {"time_ns": 100_000 + k} for k, p in enumerate(order)]
    talk.send(1, 200, 1, ack=2001)
    for k in range(3):
        talk.again(201 + k)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    kinds = tracked.kind.tolist()
    assert kinds.count(Kind.NEW_DATA) == 2
    assert kinds[8:] == [Kind.ACK] + [Kind.COPY] * 3
    assert kinds.count(Kind.COPY) == 9
    assert tracked.new_bytes.sum() == tracked.acked_bytes.sum() == 2000
    assert (tracked.rtt_ns >= 0).sum() == 1
    assert (tracked.gap_ns[tracked.kind == Kind.COPY] == -1).all()
    assert (tracked.seq_bytes[:8][tracked.kind[:8] == Kind.COPY] >= 1).all()


@pytest.mark.parametrize(
    ("ip_id", "after_us", "kind"),
    [
        (7, 199_999, Kind.COPY),
        (7, 200_000, Kind.RETRANSMISSION),
        (0, 999, Kind.COPY),
        (0, 1_000, Kind.RETRANSMISSION),
        (0, -999, Kind.COPY),
    ],
)
def test_copies_by_identification_and_time(
    new_tracker: NewTracker, ip_id: int, after_us: int, kind: Kind
) -> None:
    """A copy comes within 0.2 s with an equal IP identification, within 1 ms without one."""
    talk = Conversation().handshake()
    talk.send(0, 2000, 1, 1000, ack=1, ip_id=ip_id)
    talk.again(2000 + after_us)
    assert talk.tracked(new_tracker()).kind.tolist()[-1] == kind


@pytest.mark.parametrize(
    "column", ["ip_id", "window", "ts_value", "ts_echo", "sack_left", "sack_right", "ack", "flags"]
)
def test_what_differs_is_no_copy(new_tracker: NewTracker, column: str) -> None:
    """Packets that differ in any number are two packets."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.again(101, **{column: talk.packets[-1].get(column, 0) ^ 8})
    assert talk.tracked(new_tracker()).kind.tolist()[-1] == Kind.RETRANSMISSION


def test_a_copy_of_long_ago_is_none(new_tracker: NewTracker) -> None:
    """The first copy of a half is recognised only among its last four packets."""
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(0, 100 + k, 1 + 10 * k, 10, ack=1)
    talk.packets.append(talk.packets[3])
    assert talk.tracked(new_tracker()).kind.tolist()[-1] == Kind.RETRANSMISSION


@pytest.mark.parametrize(("burst", "copies"), [(4, 4), (64, 64), (65, 0)])
def test_copies_behind_a_burst(new_tracker: NewTracker, burst: int, copies: int) -> None:
    """Once a half has a copy, its other packets may be 64 packets away from theirs."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.again(1)
    for k in range(burst):
        talk.send(0, 100 + k, 1 + 10 * k, 10, ack=1)
    talk.packets += talk.packets[2:]
    assert talk.tracked(new_tracker()).kind.tolist().count(Kind.COPY) == 1 + copies


def test_copies_ever_later_are_recognised(new_tracker: NewTracker) -> None:
    """If copies come later and later, as behind a queue, twice as many packets are remembered."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.again(1)
    for burst in (40, 80, 160, 320, 640):
        seq, at_us = 1 + 10 * len(talk.packets), 1000 * len(talk.packets)
        sent = [{"at_us": at_us + k, "seq": seq + 10 * k, "payload": 10} for k in range(burst)]
        for packet in sent:
            talk.send(0, ack=1, **packet)
        talk.packets += talk.packets[-burst:]
    kinds = talk.tracked(new_tracker()).kind.tolist()
    assert kinds.count(Kind.COPY) == 1 + 40 + 80 + 160 + 320 + 640
