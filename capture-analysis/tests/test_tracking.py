"""What a packet means to its connection: a scenario for each kind and each edge of a column."""

from collections.abc import Callable

import numpy as np
import pytest
from capture_analysis import native
from capture_analysis.columns import FLAG_ACK, FLAG_FIN, FLAG_RST, FLAG_SYN
from capture_analysis.tracking import HOLES, SEGMENTS, SEGMENTS_AT_FIRST, Kind, Tracker, tracker
from capture_analysis.tracking_fallback import PythonTracker
from capture_analysis.tracking_native import NativeTracker
from conversation import Conversation, columns, flow_table
from hypothesis import given
from hypothesis import strategies as st

NewTracker = Callable[[], Tracker]


@pytest.fixture(params=[PythonTracker, NativeTracker])
def new(request: pytest.FixtureRequest) -> NewTracker:
    """Each tracker there is."""
    made: NewTracker = request.param
    if made is NativeTracker and not native.available():
        pytest.skip("the library is not built (pip install, with a C compiler)")
    return made


def test_a_handshake(new: NewTracker) -> None:
    """SYN and SYN+ACK are control packets that carry no payload, and give the first RTTs."""
    tracked = Conversation().handshake().tracked(new())
    assert tracked.kind.tolist() == [Kind.CONTROL, Kind.CONTROL, Kind.ACK]
    assert tracked.seq_bytes.tolist() == [0, 0, 1]
    assert tracked.ack_bytes.tolist() == [-1, 1, 1]
    assert tracked.rtt_ns.tolist() == [-1, 10_000, 20_000]
    assert tracked.gap_ns.tolist() == [-1, -1, -1]
    for column in (tracked.new_bytes, tracked.acked_bytes, tracked.in_flight_bytes):
        assert column.tolist() == [0, 0, 0]


def test_data_and_its_acks(new: NewTracker) -> None:
    """An ACK of two segments has the newer one's RTT; gaps are between like packets."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 110, 1001, 500, ack=1)
    talk.send(1, 200, 1, ack=1501)
    talk.send(0, 210, 1501, 10, ack=1)
    talk.send(1, 300, 1, ack=1511)
    tracked = talk.tracked(new()).where(slice(3, None))
    data, ack = Kind.NEW_DATA, Kind.ACK
    assert tracked.kind.tolist() == [data, data, ack, data, ack]
    assert tracked.seq_bytes.tolist() == [1, 1001, 1, 1501, 1]
    assert tracked.ack_bytes.tolist() == [1, 1, 1501, 1, 1511]
    assert tracked.rtt_ns.tolist() == [-1, -1, 90_000, -1, 90_000]
    assert tracked.gap_ns.tolist() == [-1, 10_000, -1, 100_000, 100_000]
    assert tracked.new_bytes.tolist() == [1000, 500, 0, 10, 0]
    assert tracked.acked_bytes.tolist() == [0, 0, 1500, 0, 10]
    assert tracked.in_flight_bytes.tolist() == [1000, 1500, 0, 10, 0]


def test_data_both_ways(new: NewTracker) -> None:
    """A segment that acknowledges is data, with an RTT of its own."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 150, 1, 700, ack=1001)
    talk.send(0, 190, 1001, 300, ack=701)
    tracked = talk.tracked(new()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.NEW_DATA] * 3
    assert tracked.rtt_ns.tolist() == [-1, 50_000, 40_000]
    assert tracked.acked_bytes.tolist() == [0, 1000, 700]
    assert tracked.in_flight_bytes.tolist() == [1000, 700, 300]


def test_an_ack_amid_a_segment_gives_no_rtt(new: NewTracker) -> None:
    """Only a segment acknowledged in full does, and only the first time."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 3000, ack=1)
    talk.send(1, 200, 1, ack=1501)
    talk.send(1, 210, 1, ack=3001)
    talk.send(0, 220, 3001, 3000, ack=1)
    talk.send(1, 300, 1, ack=4501)
    tracked = talk.tracked(new()).where(slice(4, None))
    assert tracked.rtt_ns.tolist() == [-1, 110_000, -1, -1]
    assert tracked.acked_bytes.tolist() == [1500, 1500, 0, 1500]
    assert tracked.in_flight_bytes.tolist() == [1500, 0, 3000, 1500]


def test_a_loss_beyond_the_capture(new: NewTracker) -> None:
    """What is seen twice is a retransmission; the ACKs before it are duplicates; Karn's rule."""
    talk = Conversation().handshake()
    for k in range(4):
        talk.send(0, 100 + k, 1 + 1000 * k, 1000, ack=1)
    for k in range(1, 4):
        talk.sack(200 + k, 1, 1001, 1001 + 1000 * k)
    talk.send(0, 300, 1, 1000, ack=1)
    talk.send(1, 400, 1, ack=4001)
    talk.send(0, 500, 4001, 1000, ack=1)
    talk.send(1, 600, 1, ack=5001)
    tracked = talk.tracked(new()).where(slice(7, None))
    duplicate = Kind.DUPLICATE_ACK
    assert tracked.kind.tolist()[:5] == [duplicate] * 3 + [Kind.RETRANSMISSION, Kind.ACK]
    assert tracked.new_bytes.tolist()[3] == 0
    assert tracked.in_flight_bytes.tolist() == [4000] * 4 + [0, 1000, 0]
    assert tracked.rtt_ns.tolist() == [-1, -1, -1, -1, -1, -1, 100_000]


def test_a_loss_before_the_capture(new: NewTracker) -> None:
    """What fills a hole is late data, counted as new bytes once; its ACK gives no RTT."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 101, 2001, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(1, 201, 1, ack=1001)
    talk.send(0, 300, 1001, 1000, ack=1)
    talk.send(1, 400, 1, ack=3001)
    talk.send(0, 450, 1001, 1000, ack=1)
    tracked = talk.tracked(new()).where(slice(3, None))
    assert tracked.kind.tolist() == [
        *(Kind.NEW_DATA, Kind.NEW_DATA, Kind.ACK, Kind.DUPLICATE_ACK),
        *(Kind.LATE_DATA, Kind.ACK, Kind.RETRANSMISSION),
    ]
    assert tracked.new_bytes.tolist() == [1000, 1000, 0, 0, 1000, 0, 0]
    assert tracked.rtt_ns.tolist() == [-1, -1, 100_000, -1, -1, -1, -1]
    assert tracked.in_flight_bytes.tolist() == [1000, 3000, 2000, 2000, 2000, 0, 0]


def test_a_segment_over_holes_and_new_bytes(new: NewTracker) -> None:
    """New bytes are those of holes, above and below what was seen, whatever else it repeats."""
    talk = Conversation()
    for seq in (1000, 1020, 1040):
        talk.send(0, seq, seq, 10)
    talk.send(0, 2000, 1005, 30)  # fills 1010..1020 and 1030..1035
    talk.send(0, 2001, 990, 100)  # 990..1000, 1035..1040 and 1050..1090
    talk.send(0, 2002, 980, 5)  # below everything: leaves a hole to 990
    talk.send(0, 2003, 980, 20)
    tracked = talk.tracked(new())
    assert tracked.seq_bytes.tolist() == [0, 20, 40, 5, -10, -20, -20]
    assert tracked.new_bytes.tolist() == [10, 10, 10, 15, 55, 5, 5]
    late = Kind.LATE_DATA
    assert tracked.kind.tolist() == [Kind.NEW_DATA] * 3 + [late, Kind.NEW_DATA, late, late]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=40))
def test_new_bytes_by_marking(segments: list[tuple[int, int]]) -> None:
    """Bytes are new, and data late or sent again, just as marking each byte tells."""
    talk = Conversation()
    marked: set[int] = set()
    expected = []
    for at, (first, length) in enumerate(segments):
        talk.send(0, 2000 * at, first, length)
        payload = set(range(first, first + length))
        fresh = payload - marked
        above = not marked or max(payload) > max(marked)
        kind = Kind.NEW_DATA if above else Kind.LATE_DATA if fresh else Kind.RETRANSMISSION
        expected.append((len(fresh), kind))
        marked |= payload
    tracked = talk.tracked(PythonTracker())
    assert list(zip(tracked.new_bytes.tolist(), tracked.kind.tolist(), strict=True)) == expected


def test_only_so_many_holes_are_remembered(new: NewTracker) -> None:
    """The lowest of too many holes is forgotten, which is counted: it fills up unnoticed."""
    talk = Conversation()
    for k in range(HOLES + 2):
        talk.send(0, k, 20 * k, 10)
    talk.send(0, 500, 10, 10)
    talk.send(0, 501, 30, 10)
    follower = new()
    kinds = talk.tracked(follower).kind.tolist()
    assert kinds[-2:] == [Kind.RETRANSMISSION, Kind.LATE_DATA]
    assert follower.forgotten.holes == 1


def test_only_so_many_segments_are_remembered(new: NewTracker) -> None:
    """Of too many segments outstanding the newest have no RTT, which is counted."""
    talk = Conversation().handshake()
    for k in range(SEGMENTS + 3):
        talk.send(0, 100 + k, 1 + k, 1, ack=1)
    talk.send(1, 100 + SEGMENTS + 100, 1, ack=SEGMENTS + 1)
    talk.send(1, 100 + SEGMENTS + 200, 1, ack=SEGMENTS + 4)
    talk.send(0, 100 + SEGMENTS + 300, SEGMENTS + 4, 1, ack=1)
    talk.send(1, 100 + SEGMENTS + 400, 1, ack=SEGMENTS + 5)
    follower = new()
    assert talk.tracked(follower).rtt_ns.tolist()[-4:] == [101_000, -1, -1, 100_000]
    assert follower.forgotten.segments == 3


def test_one_direction_takes_little_memory(new: NewTracker) -> None:
    """Segments that nothing acknowledges are not kept, nor counted as forgotten."""
    talk = Conversation()
    for k in range(SEGMENTS_AT_FIRST + 10):
        talk.send(0, k, k, 1)
    talk.send(1, 1000, 0, ack=SEGMENTS_AT_FIRST)
    talk.send(1, 2000, 0, ack=SEGMENTS_AT_FIRST + 10)
    follower = new()
    tracked = talk.tracked(follower)
    assert tracked.rtt_ns.tolist()[-2:] == [(1000 - SEGMENTS_AT_FIRST + 1) * 1000, -1]
    assert follower.forgotten.segments == 0


def test_keep_alives(new: NewTracker) -> None:
    """A keep-alive, with or without its byte, is a probe, and what answers it an old ACK."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(0, 1000, 1000, ack=1)
    talk.send(1, 1100, 1, ack=1001)
    talk.send(0, 2000, 1000, 1, ack=1)
    talk.send(1, 2100, 1, ack=1001)
    tracked = talk.tracked(new()).where(slice(5, None))
    assert tracked.kind.tolist() == [Kind.PROBE, Kind.OLD_ACK] * 2
    assert tracked.in_flight_bytes.tolist() == [0] * 4
    assert tracked.new_bytes.tolist() == [0] * 4


def test_a_closed_window_is_probed(new: NewTracker) -> None:
    """A byte beyond a closed window is a probe, new or again; answers and opening told apart."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001, window=0)
    talk.send(0, 1000, 1001, 1, ack=1)
    talk.send(1, 1100, 1, ack=1001, window=0)
    talk.send(0, 3000, 1001, 1, ack=1)
    talk.send(1, 3100, 1, ack=1001, window=50)
    talk.send(0, 3200, 1001, 1000, ack=1)
    talk.send(1, 3300, 1, ack=2001, window=50)
    tracked = talk.tracked(new()).where(slice(5, None))
    assert tracked.kind.tolist() == [
        *(Kind.PROBE, Kind.OLD_ACK, Kind.PROBE, Kind.WINDOW_UPDATE),
        *(Kind.NEW_DATA, Kind.ACK),
    ]
    assert tracked.new_bytes.tolist() == [1, 0, 0, 0, 999, 0]
    assert tracked.rtt_ns.tolist() == [-1] * 6


def test_window_updates_and_duplicates(new: NewTracker) -> None:
    """The same number with another window is an update, with a SACK block a duplicate."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 101, 1001, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(1, 201, 1, ack=1001, window=120)
    talk.send(1, 202, 1, ack=1001, window=120)
    talk.sack(203, 1001, 1501, 2001)
    talk.send(1, 204, 1, ack=501, window=7)
    talk.send(1, 205, 1, ack=1001, window=100)
    tracked = talk.tracked(new()).where(slice(5, None))
    duplicate, update = Kind.DUPLICATE_ACK, Kind.WINDOW_UPDATE
    kinds = [Kind.ACK, update, duplicate, duplicate, Kind.OLD_ACK, duplicate]
    assert tracked.kind.tolist() == kinds
    assert tracked.acked_bytes.tolist() == [1000] + [0] * 5


def test_a_duplicate_sack_with_nothing_outstanding(new: NewTracker) -> None:
    """A D-SACK for a needless retransmission is an old ACK once everything is acknowledged."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(0, 210, 1, 1000, ack=1)
    talk.sack(300, 1001, 1, 1001)
    tracked = talk.tracked(new()).where(slice(5, None))
    assert tracked.kind.tolist() == [Kind.RETRANSMISSION, Kind.OLD_ACK]


def test_a_needless_retransmission_spoils_no_rtt(new: NewTracker) -> None:
    """Karn's rule concerns what is not acknowledged yet; what is sent after it is measured."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(0, 210, 1, 1000, ack=1)
    talk.send(0, 220, 1001, 1000, ack=1)
    talk.send(1, 330, 1, ack=2001)
    assert talk.tracked(new()).rtt_ns.tolist()[-1] == 110_000


def test_acks_below_what_was_sent_again_keep_their_rtt(new: NewTracker) -> None:
    """A tail sent again spoils only the RTT of ACKs that reach it."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 110, 1001, 1000, ack=1)
    talk.send(0, 150, 1001, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(1, 210, 1, ack=2001)
    assert talk.tracked(new()).rtt_ns.tolist()[-2:] == [100_000, -1]


@pytest.mark.parametrize("start", [2**32 - 1500, 2**31 - 1500])
def test_numbers_wrap_around(new: NewTracker, start: int) -> None:
    """Nothing is different where sequence numbers begin again at 0, nor where signs would."""
    usual, wrapping = (Conversation(isn).handshake() for isn in ((1000, 5000), (start, start)))
    for talk in (usual, wrapping):
        for k in range(5):
            talk.send(0, 100 + k, 1 + 1000 * k, 1000, ack=1)
            talk.send(1, 200 + k, 1 + 500 * k, 500, ack=1001 + 1000 * k)
        talk.send(0, 300, 2001, 1000, ack=2501)
    rows = [talk.tracked(new()) for talk in (usual, wrapping)]
    for name in vars(rows[0]):
        assert getattr(rows[0], name).tolist() == getattr(rows[1], name).tolist()


def test_many_wraps(new: NewTracker) -> None:
    """Eight GiB in segments of a GiB are as many bytes, in order, all acknowledged."""
    talk = Conversation().handshake()
    for k in range(8):
        talk.send(0, 100 + 2 * k, 1 + (k << 30), 1 << 30, ack=1)
        talk.send(1, 101 + 2 * k, 1, ack=1 + ((k + 1) << 30))
    tracked = talk.tracked(new())
    assert tracked.seq_bytes.tolist()[-2] == 1 + (7 << 30)
    assert tracked.ack_bytes.tolist()[-1] == 1 + (8 << 30)
    assert tracked.acked_bytes.sum(dtype=np.int64) == 8 << 30


def test_a_capture_that_begins_amid_a_connection(new: NewTracker) -> None:
    """ACKs of what came before have no number, but count; flight is right from the first ACK."""
    talk = Conversation()
    talk.send(0, 100, 100_000, 1000, ack=1)
    talk.send(1, 110, 1, ack=98_000)
    talk.send(1, 120, 1, ack=99_000)
    talk.send(1, 130, 1, ack=101_000)
    tracked = talk.tracked(new())
    assert tracked.kind.tolist() == [Kind.NEW_DATA] + [Kind.ACK] * 3
    assert tracked.seq_bytes.tolist() == [0, 0, 0, 0]
    assert tracked.ack_bytes.tolist() == [-1, -1, -1, 1000]
    assert tracked.acked_bytes.tolist() == [0, 0, 1000, 2000]
    assert tracked.in_flight_bytes.tolist() == [1000, 3000, 2000, 0]


def test_acks_alone(new: NewTracker) -> None:
    """Without the other direction ACKs have no number, but their steps and kinds are known."""
    talk = Conversation()
    talk.send(1, 100, 1, ack=1000)
    talk.send(1, 110, 1, ack=3000)
    talk.send(1, 120, 1, ack=3000)
    talk.send(1, 130, 1, ack=2000)
    talk.send(0, 140, 5000, 10, ack=1)
    talk.send(1, 150, 1, ack=5010)
    tracked = talk.tracked(new())
    ack = Kind.ACK
    kinds = [ack, ack, Kind.DUPLICATE_ACK, Kind.OLD_ACK, Kind.NEW_DATA, ack]
    assert tracked.kind.tolist() == kinds
    assert tracked.ack_bytes.tolist() == [-1, -1, -1, -1, 0, 10]
    assert tracked.acked_bytes.tolist() == [0, 2000, 0, 0, 0, 2010]
    assert tracked.in_flight_bytes.tolist() == [0, 0, 0, 0, 2010, 0]


def test_acks_alone_for_gigabytes(new: NewTracker) -> None:
    """Acknowledgements that go round count on, and the other half still fits when it comes."""
    talk = Conversation()
    for k in range(10):
        talk.send(1, 100 + k, 1, ack=k << 30)
    talk.send(0, 200, 9 << 30, 10, ack=1)
    tracked = talk.tracked(new())
    assert tracked.acked_bytes.sum(dtype=np.int64) == 9 << 30
    assert tracked.in_flight_bytes.tolist()[-1] == 10


def test_what_the_capture_lost_is_acknowledged(new: NewTracker) -> None:
    """An ACK of bytes never seen counts them, gives no RTT, and flight is 0, not below."""
    talk = Conversation().handshake()
    talk.send(1, 200, 1, ack=5001)
    talk.send(0, 210, 4001, 500, ack=1)
    talk.send(0, 220, 5001, 500, ack=1)
    talk.send(1, 320, 1, ack=5501)
    tracked = talk.tracked(new()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.ACK, Kind.NEW_DATA, Kind.NEW_DATA, Kind.ACK]
    assert tracked.acked_bytes.tolist() == [5000, 0, 0, 500]
    assert tracked.rtt_ns.tolist() == [-1, -1, -1, 100_000]
    assert tracked.in_flight_bytes.tolist() == [0, 0, 500, 0]


@pytest.mark.parametrize("interleaved", [False, True])
def test_packets_captured_four_times(new: NewTracker, interleaved: bool) -> None:
    """Three of four likenesses are copies, of data and of ACKs, and change nothing."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 101, 1001, 1000, ack=1)
    first, second = talk.packets[3:]
    order = [first, second] * 4 if interleaved else [first] * 4 + [second] * 4
    talk.packets[3:] = [p | {"time_ns": 100_000 + k} for k, p in enumerate(order)]
    talk.send(1, 200, 1, ack=2001)
    for k in range(3):
        talk.again(201 + k)
    tracked = talk.tracked(new()).where(slice(3, None))
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
        (7, 999_999, Kind.COPY),
        (7, 1_000_000, Kind.RETRANSMISSION),
        (0, 999, Kind.COPY),
        (0, 1_000, Kind.RETRANSMISSION),
        (0, -999, Kind.COPY),
    ],
)
def test_copies_by_identification_and_time(
    new: NewTracker, ip_id: int, after_us: int, kind: Kind
) -> None:
    """With an identification the same within a second is a copy, without within a millisecond."""
    talk = Conversation().handshake()
    talk.send(0, 2000, 1, 1000, ack=1, ip_id=ip_id)
    talk.again(2000 + after_us)
    assert talk.tracked(new()).kind.tolist()[-1] == kind


@pytest.mark.parametrize(
    "column",
    ["ip_id", "window", "ts_value", "ts_echo", "sack_left", "sack_right", "ack", "flags"],
)
def test_what_differs_is_no_copy(new: NewTracker, column: str) -> None:
    """Any number that differs shows that the packet was sent twice."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.again(101, **{column: talk.packets[-1].get(column, 0) ^ 8})
    assert talk.tracked(new()).kind.tolist()[-1] == Kind.RETRANSMISSION


def test_a_copy_of_long_ago_is_none(new: NewTracker) -> None:
    """Of a half the last four packets are remembered."""
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(0, 100 + k, 1 + 10 * k, 10, ack=1)
    talk.packets.append(talk.packets[3])
    assert talk.tracked(new()).kind.tolist()[-1] == Kind.RETRANSMISSION


def test_a_syn_sent_again(new: NewTracker) -> None:
    """It is a control packet, and the answer tells no RTT."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(0, 1_000_000, 0, flags=FLAG_SYN)
    talk.send(1, 1_000_010, 0, ack=1, flags=FLAG_SYN)
    tracked = talk.tracked(new())
    assert tracked.kind.tolist() == [Kind.CONTROL] * 3
    assert tracked.rtt_ns.tolist() == [-1, -1, -1]


def test_simultaneous_open(new: NewTracker) -> None:
    """Two SYNs that cross are answered each by a SYN with ACK; no payload comes of it."""
    talk = Conversation()
    talk.send(0, 0, 0, flags=FLAG_SYN)
    talk.send(1, 5, 0, flags=FLAG_SYN)
    talk.send(0, 20, 0, ack=1, flags=FLAG_SYN)
    talk.send(1, 25, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 50, 1, 100, ack=1)
    tracked = talk.tracked(new())
    assert tracked.kind.tolist() == [Kind.CONTROL] * 4 + [Kind.NEW_DATA]
    assert tracked.acked_bytes.sum() == 0
    assert tracked.in_flight_bytes.tolist() == [0, 0, 0, 0, 100]


def test_data_in_the_syn(new: NewTracker) -> None:
    """Payload of a SYN (TCP Fast Open) counts, and is acknowledged with it or not."""
    talk = Conversation()
    talk.send(0, 0, 0, 100, flags=FLAG_SYN)
    talk.send(1, 10, 0, ack=101, flags=FLAG_SYN)
    talk.send(0, 20, 101, 50, ack=1)
    tracked = talk.tracked(new())
    assert tracked.kind.tolist() == [Kind.CONTROL, Kind.CONTROL, Kind.NEW_DATA]
    assert tracked.new_bytes.tolist() == [100, 0, 50]
    assert tracked.acked_bytes.tolist() == [0, 100, 0]
    assert tracked.in_flight_bytes.tolist() == [100, 0, 50]


def test_data_in_a_syn_that_was_not_taken(new: NewTracker) -> None:
    """It is sent again after the handshake, which is a retransmission."""
    talk = Conversation()
    talk.send(0, 0, 0, 100, flags=FLAG_SYN)
    talk.send(1, 10, 0, ack=1, flags=FLAG_SYN)
    talk.send(0, 20, 1, 100, ack=1)
    tracked = talk.tracked(new())
    assert tracked.kind.tolist() == [Kind.CONTROL, Kind.CONTROL, Kind.RETRANSMISSION]
    assert tracked.in_flight_bytes.tolist() == [100, 100, 100]


def test_the_end_of_a_connection(new: NewTracker) -> None:
    """FIN with payload is data, without a control packet; its ACK acknowledges no payload."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 100, ack=1, flags=FLAG_FIN)
    talk.send(1, 200, 1, ack=102)
    talk.send(1, 210, 1, ack=102, flags=FLAG_FIN)
    talk.send(0, 250, 102, ack=2)
    tracked = talk.tracked(new()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.NEW_DATA, Kind.ACK, Kind.CONTROL, Kind.ACK]
    assert tracked.new_bytes.tolist() == [100, 0, 0, 0]
    assert tracked.acked_bytes.tolist() == [0, 100, 0, 0]
    assert tracked.rtt_ns.tolist() == [-1, 100_000, -1, 40_000]
    assert tracked.in_flight_bytes.tolist() == [100, 0, 0, 0]


def test_a_reset_changes_nothing(new: NewTracker) -> None:
    """Whatever numbers a RST has, what comes after is judged as without it."""
    with_reset, without = (Conversation().handshake() for _ in range(2))
    for talk in (with_reset, without):
        talk.send(0, 100, 1, 100, ack=1)
        if talk is with_reset:
            talk.send(1, 110, 2_000_000, 5, ack=1_000_000_000, flags=FLAG_RST, window=0)
        talk.send(1, 200, 1, ack=101)
        talk.send(0, 210, 101, 10, ack=1)
    tracked = with_reset.tracked(new())
    assert tracked.kind.tolist()[4] == Kind.CONTROL
    rest = np.arange(len(tracked)) != 4
    reference = without.tracked(new())
    for name, column in vars(tracked.where(rest)).items():
        assert column.tolist() == getattr(reference, name).tolist()


def test_time_that_runs_backward(new: NewTracker) -> None:
    """Neither a gap nor an RTT is negative: there is none."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 100, ack=1)
    talk.send(0, 90, 101, 100, ack=1)
    talk.send(1, 80, 1, ack=201)
    tracked = talk.tracked(new()).where(slice(3, None))
    assert tracked.gap_ns.tolist() == [-1, -1, -1]
    assert tracked.rtt_ns.tolist() == [-1, -1, -1]


def test_times_far_apart(new: NewTracker) -> None:
    """A gap that 64 bits cannot hold is the longest that they can."""
    talk = Conversation().handshake()
    talk.send(0, 0, 1, 100, ack=1, time_ns=-(2**62))
    talk.send(0, 0, 101, 100, ack=1, time_ns=2**63 - 1)
    assert talk.tracked(new()).gap_ns.tolist()[-1] == 2**63 - 1


def test_a_packet_without_flags(new: NewTracker) -> None:
    """It acknowledges nothing, and is an ACK of no account."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1)
    tracked = talk.tracked(new())
    assert tracked.kind.tolist()[-1] == Kind.OLD_ACK
    assert tracked.ack_bytes.tolist()[-1] == -1


def test_connections_share_nothing(new: NewTracker) -> None:
    """The rows of a connection are the same whichever others the tracker sees."""
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(k % 2, 100 + k, 1 + 10 * k, 10, ack=1)
    both = [p | {"flow": flow} for p in talk.packets for flow in (0, 2)]
    tracked = new().track(columns(both), flow_table(3))
    for name, column in vars(talk.tracked(new())).items():
        assert getattr(tracked, name).tolist() == np.repeat(column, 2).tolist()


def test_a_flow_that_is_not_in_the_table_is_refused(new: NewTracker) -> None:
    """A packet of a connection that does not exist is an error."""
    with pytest.raises(ValueError, match="not in the table"):
        new().track(columns([{"flow": 1, "flags": FLAG_ACK}]), flow_table(1))


def test_the_switch_chooses_the_tracker(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CAPTURE_ANALYSIS_NATIVE=0 the tracker is Python's, otherwise the library's if built."""
    assert isinstance(tracker(), NativeTracker if native.available() else PythonTracker)
    monkeypatch.setenv(native.SWITCH, "0")
    native.load.cache_clear()
    assert isinstance(tracker(), PythonTracker)
    native.load.cache_clear()


def test_nothing(new: NewTracker) -> None:
    """No packets, no rows."""
    assert len(new().track(columns([]), flow_table(0))) == 0
