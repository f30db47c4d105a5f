"""Packets as columns, and connections with common numbers in several captures."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import hand_built as built
import numpy as np
import pytest
from capture_analysis import columns
from capture_analysis.columns import (
    COLUMN_TYPES,
    IntArray,
    Keyed,
    Packets,
    compact_chunks,
    empty_columns,
    merge,
)
from capture_analysis.common_flows import CommonFlows
from capture_analysis.flow_table import TCP, UDP, FlowTable
from capture_analysis.reading.capture import read_capture
from conversation import packets
from hand_built import ACK, SYN, ethernet, ipv4, ipv6, tcp, udp

THERE = {"source": 1, "destination": 2}
BACK = {"source": 2, "destination": 1}


def sent(options: bytes = b"", flags: int = ACK, seq: int = 1) -> bytes:
    """Make a frame from 10.0.0.1:1000 to 10.0.0.2:2000."""
    return ethernet(ipv4(tcp(options, flags, seq=seq), **THERE))


def answered(flags: int = ACK, seq: int = 1) -> bytes:
    """Make a frame from 10.0.0.2:2000 to 10.0.0.1:1000."""
    return ethernet(ipv4(tcp(b"", flags, source=2000, destination=1000, seq=seq), **BACK))


def datagram(content: bytes) -> bytes:
    """Make a UDP frame from 10.0.0.1:1000 to 10.0.0.2:2000."""
    return ethernet(ipv4(udp(content, 2000, 1000), 17, **THERE))


def read(folder: Path, *frames: bytes, every_protocol: bool = False) -> tuple[Packets, FlowTable]:
    """Read a capture of these frames."""
    path = folder / "x.pcap"
    path.write_bytes(built.pcap(frames))
    return read_capture(path, every_protocol=every_protocol)


def test_every_protocol(tmp_path: Path) -> None:
    """On demand UDP packets and fragments are rows, in flows of their protocol."""
    frames = [
        sent(),
        datagram(b"12345"),
        ethernet(ipv4(b"\x08\0echo", 1, **THERE)),
        ethernet(ipv4(b"the rest", 17, fragment=5, **THERE)),
        datagram(b"12346"),
    ]
    found, flows = read(tmp_path, *frames, every_protocol=True)
    assert found.payload_bytes.tolist() == [0, 5, 6, 8, 5]
    assert flows.rows["protocol"].tolist() == [TCP, UDP, 1, UDP]
    assert found.flow.tolist() == [0, 1, 2, 3, 1]
    ends = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
    assert flows.find(*ends) == [(0, 0)]
    assert flows.find(*ends, UDP) == [(1, 0)]
    assert len(set(found.key().tolist())) == len(frames)
    assert len(read(tmp_path, *frames)[0]) == 1


def test_common_flows_by_protocol(tmp_path: Path) -> None:
    """Flows of two protocols between the same ports stay two in a common table."""
    tables = [
        read(tmp_path, *frames, every_protocol=True)[1]
        for frames in ([sent(), datagram(b"1")], [datagram(b"1"), sent()])
    ]
    common = CommonFlows()
    (first, _), (second, _) = map(common.add, tables)
    assert len(common.table) == 2
    assert (first.tolist(), second.tolist()) == ([0, 1], [1, 0])


def test_key_survives_the_path() -> None:
    """A packet's key is the same at any time and on any link."""
    columns = {"seq": [5, 6], "ip_id": [1, 2], "payload_bytes": [9, 9]}
    here = packets(time_ns=[1, 2], frame_bytes=[63, 63], interface=[0, 0], marks=[0, 0], **columns)
    there = packets(time_ns=[7, 9], frame_bytes=[67, 67], interface=[1, 1], marks=[8, 8], **columns)
    assert (here.key() == there.key()).all()


@pytest.mark.parametrize(
    "column",
    [
        "flow",
        "half",
        "seq",
        "ack",
        "ip_id",
        "payload_bytes",
        "ts_value",
        "ts_echo",
        "sack_left",
        "sack_right",
        "window",
        "flags",
    ],
)
def test_key_tells_apart(column: str) -> None:
    """Packets that differ in one identifying column, like a retransmission, have different keys."""
    first, second = packets(**{column: [40001, 40002]}).key().tolist()
    assert first != second


def test_keys_do_not_depend_on_blocks() -> None:
    """A packet's key is the same among many packets and alone."""
    count = 3 * columns._BLOCK // 2
    many = packets(seq=range(count), flow=[1] * count)
    key = many.key()
    assert len(set(key.tolist())) == count
    for row in (0, columns._BLOCK - 1, columns._BLOCK, count - 1):
        assert many.where(np.array([row])).key() == key[row]


def test_stored_keys_stay_with_their_packets() -> None:
    """Columns that only keys need can be left out: keys are selected and merged with packets."""
    all_columns = packets(time_ns=[1, 2, 3], seq=[4, 5, 6], ip_id=[7, 8, 9])
    key = all_columns.key()
    stored = Keyed.from_packets(all_columns, ["ip_id"])
    assert stored.ip_id.tolist() == [0, 0, 0]
    assert stored.ip_id.strides == stored.where(np.array([0, 2])).ip_id.strides == (0,)
    assert stored.key().tolist() == key.tolist()
    last_two = np.array([False, True, True])
    assert stored.where(last_two).key().tolist() == key[1:].tolist()
    assert stored.widen().where(slice(1)).key().tolist() == key[:1].tolist()
    later = stored.compute_later(lambda column: column[1:])
    assert later.key().tolist() == key[1:].tolist()
    assert later.where(np.array([1])).key().tolist() == key[2:].tolist()
    assert all_columns.compute_later(lambda column: column[1:]).key().tolist() == key[1:].tolist()
    both = merge([stored.where(last_two), stored.where(~last_two)])
    assert (both.seq.tolist(), both.key().tolist()) == ([4, 5, 6], key.tolist())


def test_merge_is_stable() -> None:
    """Merged captures are in time order; equal times keep the order of the captures."""
    merged = merge([packets(time_ns=[1, 5], seq=[1, 2]), packets(time_ns=[0, 5, 6], seq=[3, 4, 5])])
    assert merged.time_ns.tolist() == [0, 1, 5, 5, 6]
    assert merged.seq.tolist() == [3, 1, 2, 4, 5]
    # An unstable sort may keep the order of few packets, but not of many.
    many = [packets(time_ns=[7, 8] * 50, seq=range(n, n + 100)) for n in (0, 100)]
    assert merge(many).seq.tolist() == [*range(0, 200, 2), *range(1, 200, 2)]


def test_a_column_of_one_value_takes_its_memory() -> None:
    """A column of a single value takes the memory of one, and reads the same."""
    small = compact_chunks([packets(seq=[1, 2], ack=[7, 7]), packets(seq=[3], ack=[7])])
    assert small.ack.tolist() == [7, 7, 7]
    assert (small.ack.strides, small.seq.strides) == ((0,), (8,))
    assert small.where(np.array([2])).ack.tolist() == [7]
    assert len(compact_chunks([])) == 0


def test_a_column_has_the_smallest_type_of_its_values() -> None:
    """A column of unsigned numbers has the size of its largest; chunks are copied into it."""
    chunk = empty_columns(2)
    for name in COLUMN_TYPES:
        getattr(chunk, name)[:] = [1, 2]
    whole = compact_chunks(_overwritten(chunk, seq=[(1, 255), (256, 2), (3, 1 << 16)]))
    assert whole.seq.tolist() == [1, 255, 256, 2, 3, 1 << 16]
    assert whole.ack.tolist() == [1, 2] * 3
    assert (whole.time_ns.itemsize, whole.seq.itemsize, whole.ack.itemsize) == (8, 4, 1)


def _overwritten(chunk: Packets, seq: list[tuple[int, int]]) -> Iterator[Packets]:
    """Yield one chunk repeatedly, like a reader, with other sequence numbers each time."""
    for numbers in seq:
        chunk.seq[:] = numbers
        yield chunk


def test_common_numbers_beyond_a_capture_s_own() -> None:
    """Renumbering widens the column, so a connection may get a larger number."""
    seen = compact_chunks([packets(flow=[0, 1, 1], half=[0, 1, 0])])
    found = seen.renumber(np.array([7, 70_000]), np.array([0, 1]))
    assert (found.flow.tolist(), found.half.tolist()) == ([7, 70_000, 70_000], [0, 0, 1])


def test_one_sorted_capture_is_merged_without_a_copy() -> None:
    """A single capture in time order is merged without a copy; an unordered one is sorted."""
    seen = packets(time_ns=[1, 5, 5], seq=[1, 2, 3])
    assert merge([seen]) is seen
    assert merge([packets(time_ns=[5, 1], seq=[1, 2])]).seq.tolist() == [2, 1]


def test_where_takes_rows_or_mask() -> None:
    """Packets are selected by a mask, or by row numbers in any order."""
    three = packets(seq=[10, 20, 30], ack=[1, 2, 3])
    assert three.where(np.array([True, False, True])).ack.tolist() == [1, 3]
    assert three.where(np.array([2, 0])).seq.tolist() == [30, 10]


def test_later_computes_a_column_when_it_is_read() -> None:
    """A deferred column is computed at its first reading, and only then."""
    computed: list[list[int]] = []

    def first_two(column: IntArray) -> IntArray:
        computed.append(column.tolist())
        return column[:2]

    chosen = packets(seq=[10, 20, 30], ack=[1, 2, 3]).compute_later(first_two)
    assert computed == []
    assert (chosen.ack.tolist(), chosen.ack.tolist(), computed) == ([1, 2], [1, 2], [[1, 2, 3]])
    assert replace(chosen, seq=chosen.ack).seq.tolist() == [1, 2]
    assert not hasattr(chosen, "sequence")


def test_connection_named_by_its_ends(tmp_path: Path) -> None:
    """A connection's name is its two ends, with the first sender first."""
    _, flows = read(tmp_path, answered(), sent(), ethernet(ipv6(), 0x86DD))
    assert [flows.name(flow) for flow in (0, 1)] == [
        "10.0.0.2:2000 > 10.0.0.1:1000",
        "[::1]:1000 > [::2]:2000",
    ]
    assert flows.source(1) == ("::1", 1000)


def test_connections_found_between_two_ends(tmp_path: Path) -> None:
    """All connections between two ends are found, each with the sender's half."""
    _, flows = read(tmp_path, answered(), sent(flags=SYN, seq=5), sent(flags=SYN, seq=9))
    one, two = ("10.0.0.1", 1000), ("10.0.0.2", 2000)
    assert flows.find(one, two) == [(0, 1), (1, 0)]
    assert flows.find(two, one) == [(0, 0), (1, 1)]
    assert flows.find(one, ("10.0.0.2", 2001)) == []


def test_mapped_addresses(tmp_path: Path) -> None:
    """An IPv4-mapped IPv6 address differs from its IPv4 address, in print and in search."""
    six = bytearray(ipv6(tcp()))
    six[8:24] = bytes(10) + b"\xff\xff\x0a\0\0\1"
    six[24:40] = bytes(10) + b"\xff\xff\x0a\0\0\2"
    _, flows = read(tmp_path, sent(), ethernet(bytes(six), 0x86DD))
    assert flows.name(0) == "10.0.0.1:1000 > 10.0.0.2:2000"
    assert flows.name(1) == "[::ffff:10.0.0.1]:1000 > [::ffff:10.0.0.2]:2000"
    assert flows.find(flows.source(0), flows.destination(0)) == [(0, 0)]
    assert flows.find(flows.source(1), flows.destination(1)) == [(1, 0)]


def test_common_flows_by_ends(tmp_path: Path) -> None:
    """If captures see different ends first, it is one connection with reversed halves."""
    six = ethernet(ipv6(), 0x86DD)
    here, first = read(tmp_path, sent(), answered(), six)
    there, second = read(tmp_path, six, answered(), sent())
    common = CommonFlows()
    mappings = [common.add(first), common.add(second)]
    flows = common.table
    assert [flows.name(flow) for flow in range(len(flows))] == [first.name(0), first.name(1)]
    seen = [
        packets.renumber(*mapping) for packets, mapping in zip((here, there), mappings, strict=True)
    ]
    assert [(each.flow.tolist(), each.half.tolist()) for each in seen] == [
        ([0, 0, 1], [0, 1, 0]),
        ([1, 0, 0], [0, 1, 0]),
    ]


def test_common_flows_by_syn(tmp_path: Path) -> None:
    """Connections on the same ports are the same if their SYNs are equal."""
    _, first = read(tmp_path, sent(flags=SYN, seq=5), sent(flags=SYN, seq=9))
    _, second = read(tmp_path, sent(flags=SYN, seq=9))
    common = CommonFlows()
    mappings = [common.add(first), common.add(second)]
    assert len(common.table) == 2
    assert mappings[1][0].tolist() == [1]


def test_wireshark_filter(tmp_path: Path) -> None:
    """A connection's filter has its addresses by IP version, and its ports."""
    _, flows = read(tmp_path, sent(), ethernet(ipv6(tcp()), 0x86DD))
    four, six = (flows.wireshark_filter(flow) for flow in (0, 1))
    ports = "tcp.port == 1000 && tcp.port == 2000"
    assert four == f"ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2 && {ports}"
    assert six == f"ipv6.addr == ::1 && ipv6.addr == ::2 && {ports}"
