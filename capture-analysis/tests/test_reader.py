"""What the reader makes of a capture file, whole or broken."""

import struct
from pathlib import Path

import numpy as np
import pytest
from capture_analysis.errors import AnalysisError
from capture_analysis.reader import Packets, merge, read_capture
from hypothesis import given
from hypothesis import strategies as st
from packet_columns import packets
from pcap_files import EPOCH_NS, pcap, tcp_frame
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw


def read(folder: Path, content: bytes) -> Packets:
    """What the reader makes of a file with this content."""
    path = folder / "x.pcap"
    path.write_bytes(content)
    return read_capture(path)


def payloads(folder: Path, *frames: Packet, **settings: int) -> list[int]:
    """Payload sizes of those frames that the reader keeps."""
    content = pcap([(EPOCH_NS, frame) for frame in frames], **settings)  # type: ignore[arg-type]
    return [int(size) for size in read(folder, content).payload_bytes]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("nanoseconds", "expected_ns"), [(True, 123_456_789), (False, 123_456_000)]
)
def test_columns(tmp_path: Path, order: str, nanoseconds: bool, expected_ns: int) -> None:
    """Every column comes out exactly, whatever the byte order and the precision of the file."""
    frame = tcp_frame(100, ip_id=7, sport=1, dport=2, seq=(1 << 32) - 1, ack=5, flags="FA")
    content = pcap([(EPOCH_NS + 123_456_789, frame)], order=order, nanoseconds=nanoseconds)
    assert read(tmp_path, content) == packets(
        time_ns=[EPOCH_NS + expected_ns],
        frame_bytes=[154],
        payload_bytes=[100],
        source=[0x0A000102],
        destination=[0x0A000202],
        source_port=[1],
        destination_port=[2],
        seq=[0xFFFFFFFF],
        ack=[5],
        flags=[0x11],
        ip_id=[7],
    )


@given(
    sent=st.lists(
        st.tuples(
            st.integers(0, (1 << 32) * 10**9 - 1),
            st.integers(0, 300),
            st.integers(0, (1 << 32) - 1),
            st.integers(0, 65535),
        ),
        max_size=5,
    ),
    snap_bytes=st.integers(54, 400),
)
def test_any_tcp(
    tmp_path_factory: pytest.TempPathFactory,
    sent: list[tuple[int, int, int, int]],
    snap_bytes: int,
) -> None:
    """What is written is read, for any time, size, sequence number and snapshot length."""
    frames = [(t, tcp_frame(size, seq=seq, ip_id=number)) for t, size, seq, number in sent]
    content = pcap(frames, snap_bytes=snap_bytes)
    got = read(tmp_path_factory.mktemp("any"), content)
    columns = (got.time_ns, got.payload_bytes, got.seq, got.ip_id)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == sent
    assert got.frame_bytes.tolist() == [54 + size for _, size, _, _ in sent]


def test_other_protocols_are_left_out(tmp_path: Path) -> None:
    """Of ARP, UDP, IPv6, VLAN-tagged and TCP/IPv4 frames only the last are packets."""
    tagged = Ether() / Dot1Q(vlan=5) / IP() / TCP() / Raw(bytes(4))
    others = [
        Ether() / ARP(),
        Ether() / IP() / UDP() / Raw(bytes(50)),
        Ether() / IPv6() / TCP() / Raw(bytes(50)),
        tagged,
    ]
    assert payloads(tmp_path, others[0], tcp_frame(3), *others[1:], tcp_frame(9)) == [3, 9]


def test_later_fragments_are_left_out(tmp_path: Path) -> None:
    """A fragment without a TCP header is not taken for a packet."""
    fragment = Ether() / IP(proto=6, frag=185) / Raw(bytes(100))
    assert payloads(tmp_path, fragment, tcp_frame(3)) == [3]


def test_ip_options_are_left_out(tmp_path: Path) -> None:
    """A packet with IP options, whose fields are elsewhere, is not misread."""
    routed = Ether() / IP(options=b"\x94\x04\x00\x00") / TCP() / Raw(bytes(30))
    assert payloads(tmp_path, routed, tcp_frame(3)) == [3]


def test_version_is_checked(tmp_path: Path) -> None:
    """A frame that claims IPv4 and holds another version is not misread."""
    content = bytearray(bytes(tcp_frame(10)))
    content[14] = 0x65
    assert len(read(tmp_path, pcap([(EPOCH_NS, bytes(content))]))) == 0


def test_ethernet_padding_is_no_payload(tmp_path: Path) -> None:
    """A pure ACK padded to Ethernet's minimum carries nothing."""
    assert payloads(tmp_path, tcp_frame() / Raw(bytes(6))) == [6]
    padded = bytes(tcp_frame()) + bytes(6)
    got = read(tmp_path, pcap([(EPOCH_NS, padded)]))
    assert (got.frame_bytes.tolist(), got.payload_bytes.tolist()) == ([60], [0])


def test_tcp_options_are_no_payload(tmp_path: Path) -> None:
    """TCP options, which vary in length, are not counted as payload."""
    stamped = tcp_frame(10, options=[("NOP", None), ("NOP", None), ("Timestamp", (1, 2))])
    assert payloads(tmp_path, stamped, tcp_frame(10)) == [10, 10]


def test_snapshot_keeps_headers(tmp_path: Path) -> None:
    """A frame cut to its headers still tells its size on the wire and its payload."""
    got = read(tmp_path, pcap([(EPOCH_NS, tcp_frame(1000))], snap_bytes=54))
    assert (got.frame_bytes.tolist(), got.payload_bytes.tolist()) == ([1054], [1000])


def test_snapshot_too_short(tmp_path: Path) -> None:
    """A frame of which too little was kept is an error that names it, not a missing packet."""
    content = pcap([(EPOCH_NS, tcp_frame(1000))] * 2, snap_bytes=53)
    with pytest.raises(AnalysisError, match=r"record 1 kept 53 bytes of 1054; .* at least 54$"):
        read(tmp_path, content)


def test_offloaded_packet(tmp_path: Path) -> None:
    """A packet too large for IP's length field has its payload taken from the frame."""
    content = bytearray(bytes(tcp_frame(2000)))
    content[16:18] = b"\0\0"
    assert read(tmp_path, pcap([(EPOCH_NS, bytes(content))])).payload_bytes.tolist() == [2000]


def test_empty_capture(tmp_path: Path) -> None:
    """A capture of nothing is no packets, not an error."""
    assert len(read(tmp_path, pcap([]))) == 0


WHOLE = pcap([(EPOCH_NS, tcp_frame(3)), (EPOCH_NS, tcp_frame(4))])
SECOND = 24 + 16 + 57  # where the second record starts


@pytest.mark.parametrize(
    ("length", "record"), [(SECOND + 1, 2), (SECOND + 15, 2), (SECOND + 16, 2), (SECOND - 1, 1)]
)
def test_cut_off(tmp_path: Path, length: int, record: int) -> None:
    """A file that ends inside a record, header or frame, is an error that names the record."""
    with pytest.raises(AnalysisError, match=rf"x\.pcap: ends inside record {record};"):
        read(tmp_path, WHOLE[:length])


def test_cut_between_records(tmp_path: Path) -> None:
    """A file that ends where a record does is whole: the format has no count."""
    assert len(read(tmp_path, WHOLE[:SECOND])) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "0 bytes is too short"),
        (WHOLE[:23], "23 bytes is too short"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), r"not a pcap file \(magic 0a0d0d0a\)"),
        (pcap([], link_type=113), "link type 113 is not Ethernet"),
        (pcap([], link_type=113, order=">"), "link type 113 is not Ethernet"),
    ],
)
def test_not_such_a_capture(tmp_path: Path, content: bytes, complaint: str) -> None:
    """A file of another format is an error that says what it is instead."""
    with pytest.raises(AnalysisError, match=complaint):
        read(tmp_path, content)


def test_frame_check_sequence_bits(tmp_path: Path) -> None:
    """The link type's upper bits, which tell a trailer's length, do not make it another type."""
    content = bytearray(pcap([(EPOCH_NS, tcp_frame(3))]))
    content[20:24] = struct.pack("<I", 0x24000001)
    assert read(tmp_path, bytes(content)).payload_bytes.tolist() == [3]


def test_no_file(tmp_path: Path) -> None:
    """A file that does not exist is an error with its name."""
    with pytest.raises(AnalysisError, match=r"absent\.pcap: cannot be read: No such file"):
        read_capture(tmp_path / "absent.pcap")


def test_key_survives_the_path() -> None:
    """The key of a packet does not depend on when, or on which link, it was captured."""
    columns = {"seq": [5, 6], "ip_id": [1, 2], "payload_bytes": [9, 9]}
    here = packets(time_ns=[1, 2], frame_bytes=[63, 63], **columns)
    there = packets(time_ns=[7, 9], frame_bytes=[67, 67], **columns)
    assert (here.key() == there.key()).all()


@pytest.mark.parametrize(
    "column",
    [
        "source",
        "destination",
        "source_port",
        "destination_port",
        "seq",
        "ack",
        "ip_id",
        "payload_bytes",
    ],
)
def test_key_tells_apart(column: str) -> None:
    """Packets that differ in one identifying column, as a retransmission does, differ in key."""
    first, second = packets(**{column: [40001, 40002]}).key().tolist()
    assert first != second


def test_merge_is_stable() -> None:
    """Merged captures are in time order, and equal times keep the order of the captures."""
    merged = merge([packets(time_ns=[1, 5], seq=[1, 2]), packets(time_ns=[0, 5, 6], seq=[3, 4, 5])])
    assert merged.time_ns.tolist() == [0, 1, 5, 5, 6]
    assert merged.seq.tolist() == [3, 1, 2, 4, 5]
    # An unstable sort keeps the order of a few, but not of many.
    many = [packets(time_ns=[7, 8] * 50, seq=range(n, n + 100)) for n in (0, 100)]
    assert merge(many).seq.tolist() == [*range(0, 200, 2), *range(1, 200, 2)]


def test_where_takes_rows_or_mask() -> None:
    """Packets are selected by a mask, or by row numbers in any order."""
    three = packets(seq=[10, 20, 30], ack=[1, 2, 3])
    assert three.where(np.array([True, False, True])).ack.tolist() == [1, 3]
    assert three.where(np.array([2, 0])).seq.tolist() == [30, 10]
