"""Matching the same packets in two captures, also with equal times."""

import json

import numpy as np
import pytest
from capture_analysis.columns import COLUMN_TYPES, IntArray, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FlowTable
from capture_analysis.metrics.compression_factor import NO_BOTTLENECK
from capture_analysis.one_capture.document import document as capture_document
from capture_analysis.one_capture.single import measure
from capture_analysis.two_captures.match_rows import ROW, Rows, rows_of
from capture_analysis.two_captures.matching import CaptureReader, join, match, partners
from capture_analysis.two_captures.packet_key import FACTORS, Identity, PacketKeys
from capture_analysis.two_captures.pair import PairOfCaptures
from capture_analysis.two_captures.pair_document import document
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_captures import ColumnCapture
from two_vantage import CYCLE_NS, PROPAGATION_NS, TwoWayPath, at, columns, flow_table


def plain_rows(
    packets: Packets,
    time_ns: IntArray,
    kind: IntArray | None,
    keys: PacketKeys,
    *,
    flows: FlowTable,
    first_order: int,
) -> Rows:
    """Make rows of packets and their keys in numpy; clib/match.c must equal them."""
    rows = np.empty(len(packets), dtype=ROW)
    rows["time_ns"], rows["key"] = time_ns, _keys(packets, keys, flows)
    rows["order"] = np.arange(first_order, first_order + len(packets))
    rows["kind"] = 0 if kind is None else kind
    for name in ("flow", "seq", "ack", "payload_bytes", "frame_bytes", "flags", "half"):
        rows[name] = getattr(packets, name)
    return rows


def _keys(packets: Packets, keys: PacketKeys, flows: FlowTable) -> IntArray:
    words = [
        (packets.seq, packets.ack),
        (packets.ts_value, packets.ts_echo),
        (packets.sack_left, packets.sack_right),
        (packets.payload_bytes, packets.window),
    ]
    last = packets.flags.astype(np.uint32)
    if keys.identity.ip_id:
        last |= packets.ip_id.astype(np.uint32) << np.uint32(16)
    ends = keys.lanes(flows)
    mixed = last * FACTORS[0]
    if ends is not None:
        mixed += ends[packets.flow.astype(np.int64) * 2 + packets.half]
    for factor, (high, low) in zip(FACTORS[1:], words, strict=False):
        mixed += (high.astype(np.uint64) << np.uint64(32) | low) * factor
    mixed ^= mixed >> np.uint64(29)
    mixed *= FACTORS[-1]
    key: IntArray = mixed.view(np.int64)
    return key


# Matching the same packets in two captures.

MS = 1_000_000
FLOWS = flow_table(3)


def pairs_of(
    a: Packets, b: Packets, chunk: int = 1000, horizon_ns: int = 100 * MS
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Return pairs of file positions, and positions in only one capture."""
    captures = [
        CaptureReader(
            ColumnCapture(p, FLOWS, chunk), PacketKeys(Identity.ADDRESSES_AND_ID), lambda t: t
        )
        for p in (a, b)
    ]
    pairs, a_alone, b_alone = [], [], []
    for step in match(captures[0], captures[1], horizon_ns):
        pairs += list(zip(step.a["order"].tolist(), step.b["order"].tolist(), strict=True))
        a_alone += step.a_alone["order"].tolist()
        b_alone += step.b_alone["order"].tolist()
    return sorted(pairs), sorted(a_alone), sorted(b_alone)


def traffic(count: int, seed: int = 1) -> Packets:
    """Make two-way packets of three connections, a millisecond apart and all different."""
    random = np.random.default_rng(seed)
    return columns(
        count,
        time_ns=np.arange(count) * MS,
        flow=random.integers(0, 3, count),
        half=random.integers(0, 2, count),
        seq=(np.arange(count) * 1460 + (1 << 32) - 5000) % (1 << 32),
        payload_bytes=1460,
    )


def delayed(packets: Packets) -> IntArray:
    """Return times 20 ms later for half 0 and 30 ms earlier for half 1."""
    return np.asarray(packets.time_ns + np.where(packets.half == 0, 20 * MS, -30 * MS))


@pytest.mark.parametrize("chunk", [7, 100, 5000])
def test_every_packet_meets_itself_or_is_alone(chunk: int) -> None:
    """Exactly the common packets are pairs, with losses in both captures and any chunks."""
    sent = traffic(2000)
    random = np.random.default_rng(2)
    in_a, in_b = random.random((2, 2000)) > 0.1
    arrived = delayed(sent)
    order = np.argsort(arrived[in_b], kind="stable")
    a_position = np.cumsum(in_a) - 1
    expected = [
        (int(a_position[row]), b) for b, row in enumerate(np.flatnonzero(in_b)[order]) if in_a[row]
    ]
    pairs, a_alone, b_alone = pairs_of(sent.where(in_a), at(sent.where(in_b), arrived[in_b]), chunk)
    assert pairs == sorted(expected)
    assert len(a_alone) == (in_a & ~in_b).sum()
    assert len(b_alone) == (in_b & ~in_a).sum()


def test_fourfold_packets_pair_in_order() -> None:
    """The k-th of four equal packets in one capture pairs with the k-th in the other."""
    once = traffic(50)
    four = once.where(np.repeat(np.arange(50), 4))
    four = at(four, four.time_ns + np.tile(np.arange(4), 50))
    at_b = at(four, delayed(four))
    pairs, a_alone, b_alone = pairs_of(four, at_b, 64)
    assert not a_alone
    assert not b_alone
    assert all(at_b.time_ns[b] - four.time_ns[a] in {20 * MS, -30 * MS} for a, b in pairs)


def test_the_horizon_bounds_a_pair() -> None:
    """An equal header after more than the horizon is another packet."""
    one = columns(1, time_ns=[0], seq=[1])
    assert pairs_of(one, at(one, [100 * MS])) == ([(0, 0)], [], [])
    assert pairs_of(one, at(one, [100 * MS + 1])) == ([], [0], [0])


def test_what_is_alone_does_not_shift_the_rest() -> None:
    """If one of several equal headers a second apart is lost, only its pair is missing."""
    same = columns(5, time_ns=np.arange(5) * 1000 * MS, seq=7)
    kept = same.where(np.array([0, 2, 3, 4]))
    pairs, a_alone, b_alone = pairs_of(same, at(kept, kept.time_ns + 10 * MS), 2)
    assert (pairs, a_alone, b_alone) == ([(0, 0), (2, 1), (3, 2), (4, 3)], [1], [])


EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=25)


@settings(deadline=None)
@given(EVENTS, EVENTS)
def test_join_is_first_in_first_out(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    """Packets join as by a FIFO queue per key in each capture."""
    a_rows, b_rows = _rows(a), _rows(b)
    expected = set()
    for key in range(4):
        mine, theirs = (np.flatnonzero(rows["key"] == key).tolist() for rows in (a_rows, b_rows))
        while mine and theirs:
            delay = b_rows["time_ns"][theirs[0]] - a_rows["time_ns"][mine[0]]
            if abs(delay) <= 15:
                expected.add((mine.pop(0), theirs.pop(0)))
            else:
                (mine if delay > 15 else theirs).pop(0)
    found = [column.tolist() for column in join(a_rows, b_rows, 15)]
    assert found[0] == sorted(found[0])
    assert set(zip(*found, strict=True)) == expected


KEYS = st.lists(st.sampled_from([-(1 << 63), -1, 0, 7]), max_size=25)


@given(KEYS, KEYS)
def test_partners_have_the_same_occurrence(a: list[int], b: list[int]) -> None:
    """The k-th packet of a key pairs with the k-th in the other capture, if there is one."""
    expected = []
    for row, key in enumerate(a):
        rows = [at for at, theirs in enumerate(b) if theirs == key]
        earlier = a[:row].count(key)
        expected.append(rows[earlier] if earlier < len(rows) else -1)
    found = partners(np.array(a, dtype=np.int64), np.array(b, dtype=np.int64))
    assert found.tolist() == expected


def _rows(events: list[tuple[int, int]]) -> Rows:
    rows = np.zeros(len(events), dtype=ROW)
    ordered = sorted(events, key=lambda event: event[1])
    rows["key"] = [key for key, _ in ordered]
    rows["time_ns"] = [time for _, time in ordered]
    return rows


@pytest.mark.parametrize("identity", list(Identity))
def test_rows_are_alike(identity: Identity) -> None:
    """Rows made in C equal those made by numpy, byte for byte, with their keys."""
    random = np.random.default_rng(5)
    packets = columns(
        1000,
        **{
            name: random.integers(0, np.iinfo(kind).max, 1000, dtype=kind, endpoint=True)
            for name, kind in COLUMN_TYPES.items()
            if name not in ("flow", "half")
        },
        flow=random.integers(0, 3, 1000),
        half=random.integers(0, 2, 1000),
    )
    kind = random.integers(0, 10, 1000)
    for given_kind in (kind, None):
        made = [
            make(
                packets,
                packets.time_ns,
                given_kind,
                PacketKeys(identity),
                flows=FLOWS,
                first_order=77,
            )
            for make in (plain_rows, rows_of)
        ]
        assert made[0].tobytes() == made[1].tobytes()


def test_a_packet_of_no_connection_is_refused() -> None:
    """The C code refuses a connection that is not in the table, and reads nothing beyond it."""
    packets, keys = columns(2, flow=[0, 3]), PacketKeys(Identity.ADDRESSES)
    with pytest.raises(IndexError, match="not in the table"):
        rows_of(packets, packets.time_ns, None, keys, flows=FLOWS, first_order=0)


def test_ipv6_without_identification_matches() -> None:
    """Three equal duplicate ACKs without IP identification pair in order."""
    acks = columns(3, time_ns=[0, 1000, 2000], ack=5, half=1)
    assert pairs_of(acks, at(acks, acks.time_ns + 5 * MS))[0] == [(0, 0), (1, 1), (2, 2)]


def test_an_unordered_capture_matches() -> None:
    """Packets that are out of time order in a file still match."""
    sent = traffic(500)
    order = np.random.default_rng(3).permutation(500)
    pairs, a_alone, b_alone = pairs_of(sent.where(order), at(sent, delayed(sent)), 50, 1000 * MS)
    assert (len(pairs), a_alone, b_alone) == (500, [], [])


# Captures in which packets have equal times: coarse clocks, traces, grants.

PATH = TwoWayPath()
# One ns, an ACK's time, opportunities of a trace, a cycle, a clock of whole seconds, an hour.
UNITS_NS = (1, 66_000, 1_000_000, 10_000_000, CYCLE_NS, 10**9, 3600 * 10**9)


def coarse(time_ns: IntArray, unit_ns: int) -> IntArray:
    """Round times up to a unit: packets that leave in one opportunity have one time."""
    return np.asarray(-(-time_ns // unit_ns) * unit_ns)


def reasons(a_ns: IntArray, b_ns: IntArray) -> set[str]:
    """Measure two captures; return the reasons why compression factors have no bound."""
    a, b = (ColumnCapture(at(PATH.packets, each), PATH.flows) for each in (a_ns, b_ns))
    found = document(PairOfCaptures(("a", "b"), lambda: a, lambda: b).measure(one_clock=True))
    json.dumps(found, allow_nan=False)
    both = (each[name] for each in found["flows"] for name in ("forward", "backward"))
    return {each["compression_factor_bound"].get("why", "") for each in both if each}


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(UNITS_NS), st.sampled_from(UNITS_NS), st.integers(0, PROPAGATION_NS))
def test_equal_times_are_measured(a_unit_ns: int, b_unit_ns: int, later_ns: int) -> None:
    """Any resolution of the times of either capture ends in a document of finite numbers."""
    a_ns, b_ns = coarse(PATH.a_ns, a_unit_ns), coarse(PATH.b_ns + later_ns, b_unit_ns)
    reasons(a_ns, b_ns)
    for time_ns in (a_ns, b_ns):
        one = ColumnCapture(at(PATH.packets, time_ns), PATH.flows)
        json.dumps(capture_document(measure(one)), allow_nan=False)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 60),
    st.sampled_from(UNITS_NS),
    st.sets(st.integers(0, 59), max_size=8),
    st.sets(st.integers(0, 59), max_size=8),
)
def test_few_packets_are_measured(count: int, unit_ns: int, a: set[int], b: set[int]) -> None:
    """Captures that each lack some of a few packets end in a document, or in a sentence."""
    rows = np.argsort(np.minimum(PATH.a_ns, PATH.b_ns), kind="stable")[:count]
    both = []
    for time_ns, missing in ((PATH.a_ns, a), (PATH.b_ns, b)):
        mine = rows[[row for row in range(len(rows)) if row not in missing]]
        both.append(
            ColumnCapture(at(PATH.packets.where(mine), coarse(time_ns[mine], unit_ns)), PATH.flows)
        )
    try:
        found = PairOfCaptures(("a", "b"), lambda: both[0], lambda: both[1]).measure(one_clock=True)
    except AnalysisError:
        return
    json.dumps(document(found), allow_nan=False)


@pytest.mark.parametrize("unit_ns", [4_000_000, 20_000_000])
def test_acks_of_one_instant_have_no_transmission_time(unit_ns: int) -> None:
    """ACKs that leave in one opportunity give a compression factor no bound."""
    a_ns = np.where(PATH.way == 1, coarse(PATH.a_ns, unit_ns), PATH.a_ns)
    assert reasons(a_ns, PATH.b_ns) == {NO_BOTTLENECK}


@pytest.mark.parametrize("unit_ns", [CYCLE_NS, 10**9, 10**15])
def test_times_that_contradict_the_path_are_refused(unit_ns: int) -> None:
    """If one capture's times are coarser than the path, a sentence says so, whichever it is."""
    whole, rounded = (ColumnCapture(at(PATH.packets, each), PATH.flows) for each in (
        PATH.a_ns, coarse(PATH.b_ns, unit_ns)
    ))  # fmt: skip
    for a, b in ((whole, rounded), (rounded, whole)):
        with pytest.raises(AnalysisError, match="before it was sent"):
            PairOfCaptures(("a", "b"), lambda a=a: a, lambda b=b: b).measure()  # type: ignore[misc]
