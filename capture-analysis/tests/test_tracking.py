"""The roles of data and ACKs, by scenarios, and by a second tracker on any packets."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from capture_analysis.columns import (
    COLUMN_TYPES,
    FLAG_ACK,
    FLAG_FIN,
    FLAG_RST,
    FLAG_SYN,
    Packets,
    concatenate,
)
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

_, *SCENARIOS = Path(__file__).with_name("tracking.txt").read_text("utf-8").split("\n\n")
FLAGS = {"syn": FLAG_SYN, "fin": FLAG_FIN, "rst": FLAG_RST}


def packet(talk: Conversation, row: str) -> None:
    """Add the packet on the left of a scenario's line."""
    end, at_us, seq, payload, ack, *more = row.partition("|")[0].split()
    fields = {name: value for name, _, value in (word.partition("=") for word in more)}
    if edges := fields.get("sack"):
        talk.sack(int(at_us), int(ack), *map(int, edges.split("-")))
        return
    window, flags = int(fields.get("window", 100)), sum(FLAGS.get(name, 0) for name in fields)
    acked = None if ack == "-" else int(ack)
    talk.send(
        "AB".index(end), int(at_us), int(seq), int(payload), acked, flags=flags, window=window
    )


def shown(tracked: Tracked) -> list[list[str]]:
    """Return each row as it is on the right of a scenario's lines."""
    columns_of = (
        [Kind(kind).name.lower() for kind in tracked.kind.tolist()],
        tracked.seq_bytes.tolist(),
        ["-" if number == -1 else number for number in tracked.ack_bytes.tolist()],
        *(
            ["-" if v == -1 else v // 1000 for v in column.tolist()]
            for column in (tracked.gap_ns, tracked.rtt_ns)
        ),
        tracked.new_bytes.tolist(),
        tracked.acked_bytes.tolist(),
        tracked.in_flight_bytes.tolist(),
        tracked.unseen_bytes.tolist(),
    )
    return [[str(value) for value in row] for row in zip(*columns_of, strict=True)]


@each_tracker
def test_scenarios(new_tracker: NewTracker) -> None:
    """Each packet of a scenario in tracking.txt has the row that stands beside it."""
    wrong = []
    for scenario in SCENARIOS:
        sentence, *rows = scenario.splitlines()
        talk = Conversation()
        if rows[0] == "handshake":
            talk.handshake()
            del rows[0]
        for row in rows:
            packet(talk, row)
        found = shown(talk.tracked(new_tracker()))[-len(rows) :]
        wanted = [row.partition("|")[2].split() for row in rows]
        wrong += [
            (sentence, pair) for pair in zip(found, wanted, strict=True) if pair[0] != pair[1]
        ]
    assert wrong == []
    assert len(SCENARIOS) > 20


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
def test_times_far_apart(new_tracker: NewTracker) -> None:
    """A gap that exceeds 64 bits is the longest that fits."""
    talk = Conversation().handshake()
    talk.send(0, 0, 1, 100, ack=1, time_ns=-(2**62))
    talk.send(0, 0, 101, 100, ack=1, time_ns=2**63 - 1)
    assert talk.tracked(new_tracker()).gap_ns.tolist()[-1] == 2**63 - 1


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
