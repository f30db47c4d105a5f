"""Start and end of connections, wrap-around, and captures that lose or repeat packets."""

import numpy as np
import pytest
from capture_analysis.columns import FLAG_FIN, FLAG_RST, FLAG_SYN
from capture_analysis.tracking import Kind
from conversation import Conversation, NewTracker, each_tracker

pytestmark = each_tracker


def test_a_syn_sent_again(new_tracker: NewTracker) -> None:
    """A retransmitted SYN is a control packet, and its answer gives no RTT."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(0, 1_000_000, 0, flags=FLAG_SYN)
    talk.send(1, 1_000_010, 0, ack=1, flags=FLAG_SYN)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.CONTROL] * 3
    assert tracked.rtt_ns.tolist() == [-1, -1, -1]


def test_simultaneous_open(new_tracker: NewTracker) -> None:
    """Two SYNs that cross are each answered by a SYN with ACK, and no payload is counted."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(1, 5, 0, flags=FLAG_SYN)
    talk.send(0, 20, 0, ack=1, flags=FLAG_SYN)
    talk.send(1, 25, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 50, 1, 100, ack=1)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.CONTROL] * 4 + [Kind.NEW_DATA]
    assert tracked.acked_bytes.sum() == 0
    assert tracked.in_flight_bytes.tolist() == [0, 0, 0, 0, 100]


def test_data_that_overtook_the_syn(new_tracker: NewTracker) -> None:
    """If data overtook the SYN, the SYN has number -1, and its byte is no payload."""
    talk = Conversation()
    talk.send(0, 0, 1, 100, ack=1)
    talk.send(0, 5, 0, flags=FLAG_SYN)
    talk.send(1, 10, 0, ack=101, flags=FLAG_SYN)
    talk.send(0, 20, 101, 50, ack=1)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.NEW_DATA, Kind.CONTROL, Kind.CONTROL, Kind.NEW_DATA]
    assert tracked.seq_bytes.tolist() == [0, -1, 0, 100]
    assert tracked.acked_bytes.tolist() == [0, 0, 100, 0]
    assert tracked.in_flight_bytes.tolist() == [100, 0, 0, 50]


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


def test_what_is_acknowledged_and_not_in_the_capture(new_tracker: NewTracker) -> None:
    """Bytes that were not captured count once, at their first acknowledgement."""
    talk = Conversation().handshake()
    talk.send(0, 40, 1, 100, ack=1)
    talk.send(0, 50, 201, 100, ack=1)
    talk.send(1, 60, 1, ack=151)
    talk.send(1, 70, 1, ack=301)
    talk.send(1, 80, 1, ack=701)
    talk.send(1, 90, 1, ack=701)
    talk.send(0, 95, 401, 100, ack=1)
    talk.send(0, 98, 701, 100, ack=1)
    talk.send(1, 99, 1, ack=801)
    tracked = talk.tracked(new_tracker())
    assert tracked.unseen_bytes.tolist()[3:] == [0, 0, 50, 50, 400, 0, 0, 0, 0]


def test_a_challenge_ack_proves_no_hole(new_tracker: NewTracker) -> None:
    """An answer to a SYN without a SYN of its own does not show missing packets."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(1, 10, 1, ack=1 << 29)
    assert not talk.tracked(new_tracker()).unseen_bytes.any()


def test_data_in_the_syn(new_tracker: NewTracker) -> None:
    """Payload of a SYN (TCP Fast Open) counts, whether the SYN-ACK acknowledges it or not."""
    talk = Conversation()
    talk.send(0, 0, 0, 100, flags=FLAG_SYN)
    talk.send(1, 10, 0, ack=101, flags=FLAG_SYN)
    talk.send(0, 20, 101, 50, ack=1)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.CONTROL, Kind.CONTROL, Kind.NEW_DATA]
    assert tracked.new_bytes.tolist() == [100, 0, 50]
    assert tracked.acked_bytes.tolist() == [0, 100, 0]
    assert tracked.in_flight_bytes.tolist() == [100, 0, 50]


def test_data_in_a_syn_that_was_not_taken(new_tracker: NewTracker) -> None:
    """A SYN's data that is sent again after the handshake is a retransmission."""
    talk = Conversation()
    talk.send(0, 0, 0, 100, flags=FLAG_SYN)
    talk.send(1, 10, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 20, 1, 100, ack=1)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.CONTROL, Kind.CONTROL, Kind.RETRANSMISSION]
    assert tracked.in_flight_bytes.tolist() == [100, 100, 100]


def test_the_end_of_a_connection(new_tracker: NewTracker) -> None:
    """A FIN with payload is data, one without is control, and its ACK acknowledges no payload."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 100, ack=1, flags=FLAG_FIN)
    talk.send(1, 200, 1, ack=102)
    talk.send(1, 210, 1, ack=102, flags=FLAG_FIN)
    talk.send(0, 250, 102, ack=2)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.NEW_DATA, Kind.ACK, Kind.CONTROL, Kind.ACK]
    assert tracked.new_bytes.tolist() == [100, 0, 0, 0]
    assert tracked.acked_bytes.tolist() == [0, 100, 0, 0]
    assert tracked.rtt_ns.tolist() == [-1, 100_000, -1, 40_000]
    assert tracked.in_flight_bytes.tolist() == [100, 0, 0, 0]


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


def test_a_capture_that_begins_amid_a_connection(new_tracker: NewTracker) -> None:
    """ACKs of data before the capture count, without a number; flight is right from then on."""
    talk = Conversation()
    talk.send(0, 100, 100_000, 1000, ack=1)
    talk.send(1, 110, 1, ack=98_000)
    talk.send(1, 120, 1, ack=99_000)
    talk.send(1, 130, 1, ack=101_000)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.NEW_DATA] + [Kind.ACK] * 3
    assert tracked.seq_bytes.tolist() == [0, 0, 0, 0]
    assert tracked.ack_bytes.tolist() == [-1, -1, -1, 1000]
    assert tracked.acked_bytes.tolist() == [0, 0, 1000, 2000]
    assert tracked.in_flight_bytes.tolist() == [1000, 3000, 2000, 0]


def test_acks_alone(new_tracker: NewTracker) -> None:
    """Without the other direction ACKs have no number, but their steps and kinds are known."""
    talk = Conversation()
    talk.send(1, 100, 1, ack=1000)
    talk.send(1, 110, 1, ack=3000)
    talk.send(1, 120, 1, ack=3000)
    talk.send(1, 130, 1, ack=2000)
    talk.send(0, 140, 5000, 10, ack=1)
    talk.send(1, 150, 1, ack=5010)
    tracked = talk.tracked(new_tracker())
    ack = Kind.ACK
    kinds = [ack, ack, Kind.DUPLICATE_ACK, Kind.OLD_ACK, Kind.NEW_DATA, ack]
    assert tracked.kind.tolist() == kinds
    assert tracked.ack_bytes.tolist() == [-1, -1, -1, -1, 0, 10]
    assert tracked.acked_bytes.tolist() == [0, 2000, 0, 0, 0, 2010]
    assert tracked.in_flight_bytes.tolist() == [0, 0, 0, 0, 2010, 0]


def test_acks_alone_for_gigabytes(new_tracker: NewTracker) -> None:
    """Acknowledgements that wrap continue to count, and fit the other half once it appears."""
    talk = Conversation()
    for k in range(10):
        talk.send(1, 100 + k, 1, ack=k << 30)
    talk.send(0, 200, 9 << 30, 10, ack=1)
    tracked = talk.tracked(new_tracker())
    assert tracked.acked_bytes.sum(dtype=np.int64) == 9 << 30
    assert tracked.in_flight_bytes.tolist()[-1] == 10


def test_what_the_capture_lost_is_acknowledged(new_tracker: NewTracker) -> None:
    """An ACK of unseen bytes counts them, gives no RTT, and makes the flight 0."""
    talk = Conversation().handshake()
    talk.send(1, 200, 1, ack=5001)
    talk.send(0, 210, 4001, 500, ack=1)
    talk.send(0, 220, 5001, 500, ack=1)
    talk.send(1, 320, 1, ack=5501)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.ACK, Kind.NEW_DATA, Kind.NEW_DATA, Kind.ACK]
    assert tracked.acked_bytes.tolist() == [5000, 0, 0, 500]
    assert tracked.rtt_ns.tolist() == [-1, -1, -1, 100_000]
    assert tracked.in_flight_bytes.tolist() == [0, 0, 500, 0]


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
    "column",
    ["ip_id", "window", "ts_value", "ts_echo", "sack_left", "sack_right", "ack", "flags"],
)
def test_what_differs_is_no_copy(new_tracker: NewTracker, column: str) -> None:
    """Packets that differ in any number are two packets."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.again(101, **{column: talk.packets[-1].get(column, 0) ^ 8})
    assert talk.tracked(new_tracker()).kind.tolist()[-1] == Kind.RETRANSMISSION


def test_a_copy_of_long_ago_is_none(new_tracker: NewTracker) -> None:
    """A copy is recognised only among the last four packets of its half."""
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(0, 100 + k, 1 + 10 * k, 10, ack=1)
    talk.packets.append(talk.packets[3])
    assert talk.tracked(new_tracker()).kind.tolist()[-1] == Kind.RETRANSMISSION
