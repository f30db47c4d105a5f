"""The roles of data and ACKs, by scenarios, and by a second tracker on any packets."""

from collections.abc import Iterable

import numpy as np
import pytest
from capture_analysis.columns import COLUMN_TYPES, FLAG_ACK, Packets, concatenate
from capture_analysis.tracking import (
    HOLES,
    SEGMENTS,
    SEGMENTS_AT_FIRST,
    TRACKED_TYPES,
    Kind,
    Tracked,
    Tracker,
)
from conversation import AnyTracker, Conversation, NewTracker, columns, each_tracker, flow_table
from hypothesis import given
from hypothesis import strategies as st
from reference.tracker import PythonTracker

# The roles of data and ACKs: a scenario for each kind and each column.


@each_tracker
def test_a_handshake(new_tracker: NewTracker) -> None:
    """SYN and SYN+ACK are control packets that carry no payload, and give the first RTTs."""
    tracked = Conversation().handshake().tracked(new_tracker())
    assert tracked.kind.tolist() == [Kind.CONTROL, Kind.CONTROL, Kind.ACK]
    assert tracked.seq_bytes.tolist() == [0, 0, 1]
    assert tracked.ack_bytes.tolist() == [-1, 1, 1]
    assert tracked.rtt_ns.tolist() == [-1, 10_000, 20_000]
    assert tracked.gap_ns.tolist() == [-1, -1, -1]
    for column in (tracked.new_bytes, tracked.acked_bytes, tracked.in_flight_bytes):
        assert column.tolist() == [0, 0, 0]


@each_tracker
def test_data_and_its_acks(new_tracker: NewTracker) -> None:
    """An ACK of two segments has the newer one's RTT; gaps are between packets of one kind."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 110, 1001, 500, ack=1)
    talk.send(1, 200, 1, ack=1501)
    talk.send(0, 210, 1501, 10, ack=1)
    talk.send(1, 300, 1, ack=1511)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    data, ack = Kind.NEW_DATA, Kind.ACK
    assert tracked.kind.tolist() == [data, data, ack, data, ack]
    assert tracked.seq_bytes.tolist() == [1, 1001, 1, 1501, 1]
    assert tracked.ack_bytes.tolist() == [1, 1, 1501, 1, 1511]
    assert tracked.rtt_ns.tolist() == [-1, -1, 90_000, -1, 90_000]
    assert tracked.gap_ns.tolist() == [-1, 10_000, -1, 100_000, 100_000]
    assert tracked.new_bytes.tolist() == [1000, 500, 0, 10, 0]
    assert tracked.acked_bytes.tolist() == [0, 0, 1500, 0, 10]
    assert tracked.in_flight_bytes.tolist() == [1000, 1500, 0, 10, 0]


@each_tracker
def test_data_both_ways(new_tracker: NewTracker) -> None:
    """A segment that also acknowledges is data, and has an RTT."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 150, 1, 700, ack=1001)
    talk.send(0, 190, 1001, 300, ack=701)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    assert tracked.kind.tolist() == [Kind.NEW_DATA] * 3
    assert tracked.rtt_ns.tolist() == [-1, 50_000, 40_000]
    assert tracked.acked_bytes.tolist() == [0, 1000, 700]
    assert tracked.in_flight_bytes.tolist() == [1000, 700, 300]


@each_tracker
def test_an_ack_amid_a_segment_gives_no_rtt(new_tracker: NewTracker) -> None:
    """Only the first acknowledgement of a whole segment gives an RTT."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 3000, ack=1)
    talk.send(1, 200, 1, ack=1501)
    talk.send(1, 210, 1, ack=3001)
    talk.send(0, 220, 3001, 3000, ack=1)
    talk.send(1, 300, 1, ack=4501)
    tracked = talk.tracked(new_tracker()).where(slice(4, None))
    assert tracked.rtt_ns.tolist() == [-1, 110_000, -1, -1]
    assert tracked.acked_bytes.tolist() == [1500, 1500, 0, 1500]
    assert tracked.in_flight_bytes.tolist() == [1500, 0, 3000, 1500]


@each_tracker
def test_a_loss_beyond_the_capture(new_tracker: NewTracker) -> None:
    """Payload seen twice is a retransmission after duplicate ACKs, and Karn's rule holds."""
    talk = Conversation().handshake()
    for k in range(4):
        talk.send(0, 100 + k, 1 + 1000 * k, 1000, ack=1)
    for k in range(1, 4):
        talk.sack(200 + k, 1, 1001, 1001 + 1000 * k)
    talk.send(0, 300, 1, 1000, ack=1)
    talk.send(1, 400, 1, ack=4001)
    talk.send(0, 500, 4001, 1000, ack=1)
    talk.send(1, 600, 1, ack=5001)
    tracked = talk.tracked(new_tracker()).where(slice(7, None))
    duplicate = Kind.DUPLICATE_ACK
    assert tracked.kind.tolist()[:5] == [duplicate] * 3 + [Kind.RETRANSMISSION, Kind.ACK]
    assert tracked.new_bytes.tolist()[3] == 0
    assert tracked.in_flight_bytes.tolist() == [4000] * 4 + [0, 1000, 0]
    assert tracked.rtt_ns.tolist() == [-1, -1, -1, -1, -1, -1, 100_000]


@each_tracker
def test_a_loss_before_the_capture(new_tracker: NewTracker) -> None:
    """Data that fills a hole is late, is new bytes once, and its ACK gives no RTT."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 101, 2001, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(1, 201, 1, ack=1001)
    talk.send(0, 300, 1001, 1000, ack=1)
    talk.send(1, 400, 1, ack=3001)
    talk.send(0, 450, 1001, 1000, ack=1)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    assert tracked.kind.tolist() == [
        *(Kind.NEW_DATA, Kind.NEW_DATA, Kind.ACK, Kind.DUPLICATE_ACK),
        *(Kind.LATE_DATA, Kind.ACK, Kind.RETRANSMISSION),
    ]
    assert tracked.new_bytes.tolist() == [1000, 1000, 0, 0, 1000, 0, 0]
    assert tracked.rtt_ns.tolist() == [-1, -1, 100_000, -1, -1, -1, -1]
    assert tracked.in_flight_bytes.tolist() == [1000, 3000, 2000, 2000, 2000, 0, 0]


@each_tracker
def test_a_segment_over_holes_and_new_bytes(new_tracker: NewTracker) -> None:
    """Bytes in holes and beyond all bytes seen are new, even if others of the segment repeat."""
    talk = Conversation()
    for seq in (1000, 1020, 1040):
        talk.send(0, seq, seq, 10)
    talk.send(0, 2000, 1005, 30)  # fills 1010..1020 and 1030..1035
    talk.send(0, 2001, 990, 100)  # 990..1000, 1035..1040 and 1050..1090
    talk.send(0, 2002, 980, 5)  # below all others, with a hole up to 990
    talk.send(0, 2003, 980, 20)
    tracked = talk.tracked(new_tracker())
    assert tracked.seq_bytes.tolist() == [0, 20, 40, 5, -10, -20, -20]
    assert tracked.new_bytes.tolist() == [10, 10, 10, 15, 55, 5, 5]
    late = Kind.LATE_DATA
    assert tracked.kind.tolist() == [Kind.NEW_DATA] * 3 + [late, Kind.NEW_DATA, late, late]


@each_tracker
@given(segments=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=40))
def test_new_bytes_by_marking(new_tracker: NewTracker, segments: list[tuple[int, int]]) -> None:
    """New bytes, late data and retransmissions equal those found by marking each byte."""
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
    tracked = talk.tracked(new_tracker())
    assert list(zip(tracked.new_bytes.tolist(), tracked.kind.tolist(), strict=True)) == expected


@each_tracker
def test_only_so_many_holes_are_remembered(new_tracker: NewTracker) -> None:
    """Beyond a limit the lowest hole is dropped and counted, and data in it counts as repeated."""
    talk = Conversation()
    for k in range(HOLES + 2):
        talk.send(0, k, 20 * k, 10)
    talk.send(0, 500, 10, 10)
    talk.send(0, 501, 30, 10)
    follower = new_tracker()
    kinds = talk.tracked(follower).kind.tolist()
    assert kinds[-2:] == [Kind.RETRANSMISSION, Kind.LATE_DATA]
    assert follower.forgotten.holes == 1


@each_tracker
@pytest.mark.slow
def test_only_so_many_segments_are_remembered(new_tracker: NewTracker) -> None:
    """If too many segments are outstanding, the newest have no RTT, which is counted."""
    talk = Conversation().handshake()
    for k in range(SEGMENTS + 3):
        talk.send(0, 100 + k, 1 + k, 1, ack=1)
    talk.send(1, 100 + SEGMENTS + 100, 1, ack=SEGMENTS + 1)
    talk.send(1, 100 + SEGMENTS + 200, 1, ack=SEGMENTS + 4)
    talk.send(0, 100 + SEGMENTS + 300, SEGMENTS + 4, 1, ack=1)
    talk.send(1, 100 + SEGMENTS + 400, 1, ack=SEGMENTS + 5)
    follower = new_tracker()
    assert talk.tracked(follower).rtt_ns.tolist()[-4:] == [101_000, -1, -1, 100_000]
    assert follower.forgotten.segments == 3


@each_tracker
def test_one_direction_takes_little_memory(new_tracker: NewTracker) -> None:
    """Segments without any acknowledgement are not kept, and do not count as discarded."""
    talk = Conversation()
    for k in range(SEGMENTS_AT_FIRST + 10):
        talk.send(0, k, k, 1)
    talk.send(1, 1000, 0, ack=SEGMENTS_AT_FIRST)
    talk.send(1, 2000, 0, ack=SEGMENTS_AT_FIRST + 10)
    follower = new_tracker()
    tracked = talk.tracked(follower)
    assert tracked.rtt_ns.tolist()[-2:] == [(1000 - SEGMENTS_AT_FIRST + 1) * 1000, -1]
    assert follower.forgotten.segments == 0


@each_tracker
def test_keep_alives(new_tracker: NewTracker) -> None:
    """A keep-alive, with its byte or without, is a probe, and its answer is an old ACK."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(0, 1000, 1000, ack=1)
    talk.send(1, 1100, 1, ack=1001)
    talk.send(0, 2000, 1000, 1, ack=1)
    talk.send(1, 2100, 1, ack=1001)
    tracked = talk.tracked(new_tracker()).where(slice(5, None))
    assert tracked.kind.tolist() == [Kind.PROBE, Kind.OLD_ACK] * 2
    assert tracked.in_flight_bytes.tolist() == [0] * 4
    assert tracked.new_bytes.tolist() == [0] * 4


@each_tracker
def test_a_closed_window_is_probed(new_tracker: NewTracker) -> None:
    """A byte beyond a closed window is a probe, even if repeated; no answer is a duplicate ACK."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001, window=0)
    talk.send(0, 1000, 1001, 1, ack=1)
    talk.send(1, 1100, 1, ack=1001, window=0)
    talk.send(0, 3000, 1001, 1, ack=1)
    talk.send(1, 3100, 1, ack=1001, window=50)
    talk.send(0, 3200, 1001, 1000, ack=1)
    talk.send(1, 3300, 1, ack=2001, window=50)
    tracked = talk.tracked(new_tracker()).where(slice(5, None))
    assert tracked.kind.tolist() == [
        *(Kind.PROBE, Kind.OLD_ACK, Kind.PROBE, Kind.WINDOW_UPDATE),
        *(Kind.NEW_DATA, Kind.ACK),
    ]
    assert tracked.new_bytes.tolist() == [1, 0, 0, 0, 999, 0]
    assert tracked.rtt_ns.tolist() == [-1] * 6


@each_tracker
def test_window_updates_and_duplicates(new_tracker: NewTracker) -> None:
    """A repeated ACK is an update if its window changes, and a duplicate if it has a SACK block."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 101, 1001, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(1, 201, 1, ack=1001, window=120)
    talk.send(1, 202, 1, ack=1001, window=120)
    talk.sack(203, 1001, 1501, 2001)
    talk.send(1, 204, 1, ack=501, window=7)
    talk.send(1, 205, 1, ack=1001, window=100)
    tracked = talk.tracked(new_tracker()).where(slice(5, None))
    duplicate, update = Kind.DUPLICATE_ACK, Kind.WINDOW_UPDATE
    kinds = [Kind.ACK, update, duplicate, duplicate, Kind.OLD_ACK, duplicate]
    assert tracked.kind.tolist() == kinds
    assert tracked.acked_bytes.tolist() == [1000] + [0] * 5


@each_tracker
def test_a_duplicate_sack_with_nothing_outstanding(new_tracker: NewTracker) -> None:
    """If all data is acknowledged, a D-SACK for a needless retransmission is an old ACK."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(0, 210, 1, 1000, ack=1)
    talk.sack(300, 1001, 1, 1001)
    tracked = talk.tracked(new_tracker()).where(slice(5, None))
    assert tracked.kind.tolist() == [Kind.RETRANSMISSION, Kind.OLD_ACK]


@each_tracker
def test_a_needless_retransmission_spoils_no_rtt(new_tracker: NewTracker) -> None:
    """Karn's rule applies to unacknowledged data only; data sent later has an RTT."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(0, 210, 1, 1000, ack=1)
    talk.send(0, 220, 1001, 1000, ack=1)
    talk.send(1, 330, 1, ack=2001)
    assert talk.tracked(new_tracker()).rtt_ns.tolist()[-1] == 110_000


@each_tracker
def test_acks_below_what_was_sent_again_keep_their_rtt(new_tracker: NewTracker) -> None:
    """If a tail is sent again, only ACKs that reach it have no RTT."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 1000, ack=1)
    talk.send(0, 110, 1001, 1000, ack=1)
    talk.send(0, 150, 1001, 1000, ack=1)
    talk.send(1, 200, 1, ack=1001)
    talk.send(1, 210, 1, ack=2001)
    assert talk.tracked(new_tracker()).rtt_ns.tolist()[-2:] == [100_000, -1]


@each_tracker
def test_time_that_runs_backward(new_tracker: NewTracker) -> None:
    """If time runs backward, gap and RTT are undefined instead of negative."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1, 100, ack=1)
    talk.send(0, 90, 101, 100, ack=1)
    talk.send(1, 80, 1, ack=201)
    tracked = talk.tracked(new_tracker()).where(slice(3, None))
    assert tracked.gap_ns.tolist() == [-1, -1, -1]
    assert tracked.rtt_ns.tolist() == [-1, -1, -1]


@each_tracker
def test_times_far_apart(new_tracker: NewTracker) -> None:
    """A gap that exceeds 64 bits is the longest that fits."""
    talk = Conversation().handshake()
    talk.send(0, 0, 1, 100, ack=1, time_ns=-(2**62))
    talk.send(0, 0, 101, 100, ack=1, time_ns=2**63 - 1)
    assert talk.tracked(new_tracker()).gap_ns.tolist()[-1] == 2**63 - 1


@each_tracker
def test_a_packet_without_flags(new_tracker: NewTracker) -> None:
    """A packet without flags acknowledges nothing, and is an old ACK."""
    talk = Conversation().handshake()
    talk.send(0, 100, 1)
    tracked = talk.tracked(new_tracker())
    assert tracked.kind.tolist()[-1] == Kind.OLD_ACK
    assert tracked.ack_bytes.tolist()[-1] == -1


@each_tracker
def test_connections_share_nothing(new_tracker: NewTracker) -> None:
    """A connection's rows do not depend on which others the tracker sees."""
    talk = Conversation().handshake()
    for k in range(5):
        talk.send(k % 2, 100 + k, 1 + 10 * k, 10, ack=1)
    both = [p | {"flow": flow} for p in talk.packets for flow in (0, 2)]
    tracked = new_tracker().track(columns(both), flow_table(3))
    for name, column in vars(talk.tracked(new_tracker())).items():
        assert getattr(tracked, name).tolist() == np.repeat(column, 2).tolist()


@each_tracker
def test_a_flow_that_is_not_in_the_table_is_refused(new_tracker: NewTracker) -> None:
    """A packet of a connection that does not exist is an error."""
    with pytest.raises(ValueError, match="not in the table"):
        new_tracker().track(columns([{"flow": 1, "flags": FLAG_ACK}]), flow_table(1))


@each_tracker
def test_no_packets_no_rows(new_tracker: NewTracker) -> None:
    """No packets give no rows."""
    assert len(new_tracker().track(columns([]), flow_table(0))) == 0


# The trackers in C and in Python agree on any packets; chunks and other flows do not matter.

FLOWS = 3
# Few numbers, so that they coincide: near 0, near the sign bit, and anywhere.
NUMBERS = st.one_of(
    st.integers(0, 12),
    st.integers(2**32 - 8, 2**32 - 1),
    st.integers(2**31 - 4, 2**31 + 4),
    st.integers(0, 2**32 - 1),
)
PACKETS = st.lists(
    st.fixed_dictionaries(
        {
            "time_ns": st.one_of(
                st.integers(0, 3_000_000), st.sampled_from([0, 10**9, 2**63 - 1, -(2**62)])
            ),
            "flow": st.integers(0, FLOWS - 1),
            "half": st.integers(0, 1),
            "seq": NUMBERS,
            "ack": NUMBERS,
            "payload_bytes": st.one_of(st.integers(0, 6), st.sampled_from([1448, 2**32 - 1])),
            "flags": st.sampled_from([16, 16, 16, 24, 17, 2, 18, 4, 20, 1, 0, 511]),
            "window": st.sampled_from([0, 100, 100, 200]),
            "ip_id": st.sampled_from([0, 0, 1, 2]),
            "marks": st.sampled_from([0, 0, 2]),
            "sack_left": st.integers(0, 1),
            "ts_value": st.integers(0, 1),
        }
    ),
    max_size=60,
)


def table(parts: Iterable[Tracked]) -> dict[str, list[int]]:
    """Return all rows of a tracker, which it overwrites, with checked types."""
    rows: dict[str, list[int]] = {name: [] for name in TRACKED_TYPES}
    for part in parts:
        for name, kind in TRACKED_TYPES.items():
            column = getattr(part, name)
            assert column.dtype == kind
            rows[name] += column.tolist()
    return rows


def in_chunks(tracker: AnyTracker, packets: Packets, size: int) -> Iterable[Tracked]:
    """Track a number of packets at a time."""
    for first in range(0, len(packets), size):
        yield tracker.track(packets.where(slice(first, first + size)), flow_table(FLOWS))


@pytest.mark.slow
@given(PACKETS, st.integers(1, 60))
def test_any_packets(packets: list[dict[str, int]], size: int) -> None:
    """Both trackers agree on any packets, valid or not, in chunks or not."""
    rows = columns(packets)
    python, c = PythonTracker(), Tracker()
    expected = table(in_chunks(python, rows, 60))
    assert table(in_chunks(c, rows, size)) == expected
    assert c.forgotten == python.forgotten


@pytest.mark.slow
@given(PACKETS, st.integers(0, FLOWS - 1))
def test_any_connection_alone(packets: list[dict[str, int]], flow: int) -> None:
    """A tracker that gets only one of several connections has the same rows for it."""
    rows = columns(packets)
    mine = rows.flow == flow
    whole = table([Tracker().track(rows, flow_table(FLOWS)).where(mine)])
    assert table([Tracker().track(rows.where(mine), flow_table(FLOWS))]) == whole


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_rough_path(seed: int) -> None:
    """Both trackers agree on thousands of packets: lost, reordered, copied, acknowledged."""
    rows = rough_path(seed, 8000)
    python, c = PythonTracker(), Tracker()
    expected = table(in_chunks(python, rows, 8000))
    assert table(in_chunks(c, rows, 777)) == expected
    assert c.forgotten == python.forgotten
    assert len(set(expected["kind"])) == 9  # all kinds but CONTROL


@pytest.mark.slow
def test_wide_columns_are_taken_too() -> None:
    """Columns widened to int64 (`read_capture`) give the same rows."""
    rows = rough_path(1, 500)
    expected = table([Tracker().track(rows, flow_table(FLOWS))])
    assert table([Tracker().track(rows.widen(), flow_table(FLOWS))]) == expected


def rough_path(seed: int, packets: int) -> Packets:
    """Make connections whose halves send and acknowledge at random around a moving window."""
    random = np.random.default_rng(seed)
    at = np.arange(packets)
    front = at * random.integers(1, 40)
    behind = np.where(random.random(packets) < 0.7, 0, random.integers(-3000, 200, packets))
    payload = random.choice([0, 0, 0, 1, 10, 100], packets)
    chosen = {
        "time_ns": at * 20_000 + random.integers(-50_000, 50_000, packets),
        "flow": random.integers(0, FLOWS, packets),
        "half": random.integers(0, 2, packets),
        "payload_bytes": payload,
        "seq": (2**32 - 30_000 + front + behind) % 2**32,
        "ack": (2**32 - 30_000 + front + random.integers(-900, 0, packets)) // 90 * 90 % 2**32,
        "window": random.choice([0, 50, 50, 50, 50, 60], packets),
        "ip_id": random.choice([0, 7], packets),
        "flags": np.full(packets, 16),
        "marks": random.choice([0, 0, 0, 2], packets),
    }
    rows = columns([{}] * packets)
    rows = Packets(**vars(rows) | {k: v.astype(COLUMN_TYPES[k]) for k, v in chosen.items()})
    repeated = np.sort(np.concatenate((at, at[random.random(packets) < 0.1])))
    return concatenate([rows.where(repeated)])
